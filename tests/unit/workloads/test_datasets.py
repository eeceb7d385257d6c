"""What is particular to each dataset."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crossover.errors import InputError
from crossover.workloads import build, read_prompts
from crossover.workloads.datasets.sharegpt import PRESETS
from crossover.workloads.datasets.sharegpt_shaped import turn_tokens
from crossover.workloads.streams import Stream

COMMON = {
    "the",
    "a",
    "and",
    "of",
    "to",
    "in",
    "is",
    "it",
    "that",
    "for",
    "you",
    "was",
    "with",
    "be",
    "are",
    "not",
}


def _prompts(spec: dict[str, Any], out: Path) -> list[dict[str, Any]]:
    build(spec, out)
    return list(read_prompts(out))


def _share_of_common_words(text: str) -> float:
    words = [word.strip(".,;?:").lower() for word in text.split()]
    return sum(word in COMMON for word in words) / len(words)


def test_made_up_text_reads_like_english_and_random_text_does_not(tmp_path: Path) -> None:
    # These sixteen words are about a third of English prose.
    base = {"input_tokens": 5000, "output_tokens": 1, "requests": 1}
    (shaped,) = _prompts({**base, "dataset": "sharegpt-shaped"}, tmp_path / "a")
    (random,) = _prompts({**base, "dataset": "random"}, tmp_path / "b")
    assert _share_of_common_words(shaped["text"]) > 0.3
    assert _share_of_common_words(random["text"]) == 0.0
    assert max(Counter(random["text"].split()).values()) < 5


def test_turns_have_the_lengths_of_sharegpt() -> None:
    stream = Stream("lengths")
    lengths = sorted(turn_tokens(stream) for _ in range(40_000))
    for quantile, wanted in ((0.5, 149), (0.9, 795), (0.99, 2680)):
        assert lengths[int(quantile * len(lengths))] == pytest.approx(wanted, rel=0.06)


def test_without_lengths_single_turns_are_made(tmp_path: Path) -> None:
    prompts = _prompts({"dataset": "sharegpt-shaped", "requests": 300}, tmp_path)
    lengths = sorted(prompt["prompt_tokens"] for prompt in prompts)
    assert 100 < lengths[150] < 240
    assert all(prompt["output_tokens"] >= 1 for prompt in prompts)


# One conversation a row: words of the first prompt and of its answer. What passes is worked out by hand.
SHAREGPT = [(1, 9), (3, 9), (4, 3), (10, 10), (1024, 1024), (1024, 1025), (1025, 5), (5000, 5000), (2, 2)]


@pytest.fixture
def sharegpt(tmp_path: Path) -> Path:
    """The shape of the usual file, with a conversation of one turn that every benchmark leaves out."""
    rows = [{"id": "alone", "conversations": [{"from": "human", "value": "alone"}]}]
    for number, (prompt, answer) in enumerate(SHAREGPT):
        words = [f"p{number}"] * prompt, [f"a{number}"] * answer
        turns = [{"from": who, "value": " ".join(text)} for who, text in zip(("human", "gpt"), words, strict=True)]
        rows.append({"id": str(number), "conversations": turns})
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps(rows), "utf-8")
    return path


@pytest.mark.parametrize(
    ("preset", "output_tokens", "passing"),
    [
        ("none", None, {0, 1, 2, 3, 4, 5, 6, 7, 8}),
        ("vllm", None, {3, 4}),  # 4..1024 prompt, at least 4 answer, at most 2048 in all
        (
            "vllm",
            2,
            {2, 3, 4, 5},
        ),  # a wanted output length is not held against the minimum, and sets the total
        ("sglang", None, {1, 2, 3, 4, 5, 6, 7, 8}),  # at least 2 and 2, no cap
    ],
)
def test_the_presets_filter_as_the_engines_benchmarks_do(
    preset: str,
    output_tokens: int | None,
    passing: set[int],
    sharegpt: Path,
    tmp_path: Path,
    all_measure: None,
) -> None:
    spec = {
        "dataset": "sharegpt",
        "output_tokens": output_tokens,
        "options": {"file": str(sharegpt), "preset": preset},
    }
    prompts = _prompts({**spec, "requests": len(passing)}, tmp_path / "out")
    assert {int(prompt["text"].split()[0][1:]) for prompt in prompts} == passing
    with pytest.raises(InputError, match=f"only {len(passing)} of the {len(passing) + 1} prompts wanted pass"):
        build({**spec, "requests": len(passing) + 1}, tmp_path / "out")


@pytest.fixture
def all_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps nothing back for warm-up, so that the filter alone decides."""
    monkeypatch.setattr("crossover.workloads.datasets.sharegpt.same_purpose", lambda opening, purpose: True)


def test_own_limits_replace_those_of_the_preset(sharegpt: Path, tmp_path: Path, all_measure: None) -> None:
    options = {"file": str(sharegpt), "preset": "vllm", "max_prompt_tokens": 10}
    (prompt,) = _prompts({"dataset": "sharegpt", "requests": 1, "options": options}, tmp_path / "out")
    assert (prompt["prompt_tokens"], prompt["output_tokens"]) == (10, 10)
    assert PRESETS["sglang"].max_total_tokens is None


def test_a_cut_file_is_refused_or_used_as_far_as_it_goes(sharegpt: Path, tmp_path: Path, all_measure: None) -> None:
    cut = sharegpt.read_text("utf-8")
    sharegpt.write_text(cut[: cut.index('"p3 p3') + 5], "utf-8")
    spec = {"dataset": "sharegpt", "requests": 3, "options": {"file": str(sharegpt)}}
    with pytest.raises(InputError, match=r"not JSON from character .* options\.truncated"):
        build(spec, tmp_path / "out")
    spec["options"]["truncated"] = True  # type: ignore[index]
    assert len(_prompts(spec, tmp_path / "out")) == 3


def test_conversations_are_joined_to_a_wanted_length(sharegpt: Path, tmp_path: Path, all_measure: None) -> None:
    spec = {"dataset": "sharegpt", "requests": 4, "input_tokens": 3000, "output_tokens": 5}
    prompts = _prompts({**spec, "options": {"file": str(sharegpt)}}, tmp_path / "out")
    assert [len(prompt["text"].split()) for prompt in prompts] == [3000] * 4
    assert len({prompt["text"].split()[1] for prompt in prompts}) == 4


def test_an_eighth_of_the_conversations_is_kept_for_warm_up(tmp_path: Path) -> None:
    rows = [
        {"conversations": [{"from": "human", "value": f"question {n}"}, {"from": "gpt", "value": "answer"}]}
        for n in range(400)
    ]
    path = tmp_path / "sharegpt.json"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    spec = {"dataset": "sharegpt", "options": {"file": str(path)}}
    measured = _prompts({**spec, "requests": 320}, tmp_path / "a")
    warmup = _prompts({**spec, "requests": 30, "purpose": "warmup", "seed": 3}, tmp_path / "b")
    assert not {prompt["text"] for prompt in measured} & {prompt["text"] for prompt in warmup}


def test_documents_begin_at_sentences_and_wrap_round(tmp_path: Path) -> None:
    text = " ".join(f"Sentence number {n} stands here. It has a second one." for n in range(100))
    (tmp_path / "a.txt").write_text(text, "utf-8")
    spec = {"dataset": "documents", "input_tokens": 900, "output_tokens": 1, "options": {"files": ["a.txt"]}}
    build({**spec, "requests": 40}, tmp_path / "a", base_dir=tmp_path)
    build({**spec, "requests": 10, "purpose": "warmup"}, tmp_path / "b", base_dir=tmp_path)
    texts = [p["text"] for p in read_prompts(tmp_path / "a")] + [p["text"] for p in read_prompts(tmp_path / "b")]
    assert len({" ".join(text.split()[:12]) for text in texts}) == 50
    assert all(text.split()[0] in {"Sentence", "It"} for text in texts)
    # 1,000 words in all: any prompt of 900 that starts beyond the 100th word has come round to the beginning.
    assert sum("Sentence number 0 stands" in text for text in texts) > 40


def test_documents_that_are_too_short_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Only five words in here.", "utf-8")
    spec = {"dataset": "documents", "input_tokens": 9, "output_tokens": 1, "requests": 1}
    with pytest.raises(InputError, match="the files hold 5 tokens, a prompt needs 9"):
        build({**spec, "options": {"files": ["a.txt"]}}, tmp_path / "out", base_dir=tmp_path)
    spec["requests"] = 1
    build({**spec, "options": {"files": ["a.txt"], "repeat": True}}, tmp_path / "out", base_dir=tmp_path)
    assert next(read_prompts(tmp_path / "out"))["prompt_tokens"] == 9


ROWS = [
    {"prompt": "one two three", "output_tokens": 4},
    {"messages": [{"role": "user", "content": "four five"}], "output_tokens": 5},
    {"token_ids": [7, 8, 9], "output_tokens": 6},
]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n", "utf-8")
    return path


def test_own_prompts_are_sent_as_they_are(own: Path, tmp_path: Path) -> None:
    prompts = _prompts({"dataset": "jsonl", "requests": 3, "options": {"file": str(own)}}, tmp_path / "out")
    assert [prompt["text"] for prompt in prompts] == ["one two three", None, None]
    assert prompts[1]["messages"] == ROWS[1]["messages"]
    assert prompts[2]["token_ids"] == [7, 8, 9]
    assert [prompt["prompt_tokens"] for prompt in prompts] == [3, 2, 3]
    assert [prompt["output_tokens"] for prompt in prompts] == [4, 5, 6]


def test_own_prompts_begin_differently_in_the_warm_up(own: Path, tmp_path: Path) -> None:
    spec = {"dataset": "jsonl", "requests": 3, "purpose": "warmup", "options": {"file": str(own)}}
    text, messages, ids = _prompts(spec, tmp_path / "out")
    assert text["text"] == "Warm-up 0. one two three"
    assert messages["messages"] == [{"role": "user", "content": "Warm-up 1. four five"}]
    assert ids["token_ids"] == [8, 9, 7]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "line 1: not an object"),
        ('{"prompt": ""}', "line 1: not a prompt"),
        ('{"text": "a", "token_ids": [1]}', "line 1: not a prompt"),
        ('{"token_ids": [true]}', "line 1: not a prompt"),
        ('{"prompt": "a", "output_tokens": 0}', "line 1: output_tokens is 0"),
        ('{"prompt": "a"}', "output_tokens: the data hold no output length"),
    ],
)
def test_a_wrong_line_is_named(line: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text(line, "utf-8")
    with pytest.raises(InputError, match=problem):
        build(
            {"dataset": "jsonl", "requests": 1, "options": {"file": "own.jsonl"}},
            tmp_path / "o",
            base_dir=tmp_path,
        )


def test_conversations_that_begin_alike_are_taken_once(tmp_path: Path, all_measure: None) -> None:
    # Splits of one conversation begin with the same prompt in the usual file; a prefix cache would answer them.
    same = "Please write a poem of twelve lines on the sea and on the moon for"
    rows = [
        {"conversations": [{"from": "human", "value": f"{same} {who}"}, {"from": "gpt", "value": "a"}]} for who in "abc"
    ]
    rows.append({"conversations": [{"from": "human", "value": "Other"}, {"from": "gpt", "value": "b"}]})
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps(rows), "utf-8")
    spec = {"dataset": "sharegpt", "options": {"file": str(path)}}
    prompts = _prompts({**spec, "requests": 2}, tmp_path / "out")
    assert {prompt["text"] for prompt in prompts} == {f"{same} a", "Other"}
    with pytest.raises(InputError, match="only 2 of the 3"):
        build({**spec, "requests": 3}, tmp_path / "out")
    assert len(_prompts({**spec, "requests": 4, "options": {"file": str(path), "distinct": False}}, tmp_path)) == 4
