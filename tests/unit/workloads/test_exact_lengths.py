"""Every dataset reaches the wanted length exactly; counted here with the tokenizers library, or split()."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from crossover.errors import CrossoverError
from crossover.workloads import build, read_prompts
from crossover.workloads.lengths import assemble
from crossover.workloads.tokenizers import Words

TEXT = "The quick brown fox jumps over the lazy dog. It was not amused. " * 40 + "Numbers: 1234567890 and ünïcödé. "


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "document.txt"
    path.write_text("".join(f"Sentence {number} says this. {TEXT}\n\n" for number in range(40)), "utf-8")
    return path


def _options(dataset: str, documents: Path) -> dict[str, Any]:
    return {
        "random": {},
        "sharegpt-shaped": {},
        "documents": {"files": [str(documents)]},
        "shared-prefix": {"prefix_tokens": 50},
    }[dataset]


@pytest.mark.parametrize("dataset", ["random", "sharegpt-shaped", "documents", "shared-prefix"])
@pytest.mark.parametrize("tokens", [61, 500, 3001])
@pytest.mark.parametrize("kind", ["byte_bpe", "whole_text_bpe"])
@pytest.mark.parametrize("form", ["text", "token_ids"])
def test_lengths_are_exact_by_the_tokenizer(
    dataset: str,
    tokens: int,
    kind: str,
    form: str,
    documents: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    path: Path = request.getfixturevalue(kind)
    spec = {
        "dataset": dataset,
        "input_tokens": tokens,
        "output_tokens": 10,
        "requests": 2,
        "form": form,
        "tokenizer": {"kind": "file", "path": str(path)},
        "options": _options(dataset, documents),
    }
    manifest = build(spec, tmp_path / "out")
    counter = Tokenizer.from_file(str(path))
    for prompt in read_prompts(tmp_path / "out"):
        ids = prompt["token_ids"] or counter.encode(prompt["text"], add_special_tokens=False).ids
        assert len(ids) == prompt["prompt_tokens"] == tokens
    assert manifest["exact"]


@pytest.mark.parametrize("dataset", ["random", "sharegpt-shaped", "documents", "shared-prefix"])
def test_words_are_counted_as_the_simulated_engine_counts(dataset: str, documents: Path, tmp_path: Path) -> None:
    spec = {"dataset": dataset, "input_tokens": 777, "output_tokens": 3, "requests": 3}
    build({**spec, "options": _options(dataset, documents)}, tmp_path)
    assert [len(prompt["text"].split()) for prompt in read_prompts(tmp_path)] == [777] * 3


def test_what_the_server_adds_is_left_out_of_the_text(tmp_path: Path) -> None:
    # 100 tokens as the server counts, of which a chat template takes 7: 93 words.
    tokenizer = {"kind": "words", "server_adds": 7}
    build(
        {"dataset": "random", "input_tokens": 100, "output_tokens": 1, "requests": 1, "tokenizer": tokenizer},
        tmp_path,
    )
    (prompt,) = read_prompts(tmp_path)
    assert len(prompt["text"].split()) == 93
    assert prompt["prompt_tokens"] == 100


def test_random_ids_hold_no_special_token(byte_bpe: Path, tmp_path: Path) -> None:
    spec = {
        "dataset": "random",
        "input_tokens": 20_000,
        "output_tokens": 1,
        "requests": 1,
        "form": "token_ids",
    }
    build({**spec, "tokenizer": {"kind": "file", "path": str(byte_bpe)}}, tmp_path)
    (prompt,) = read_prompts(tmp_path)
    # 899 ordinary ids (0 is <|end|>); of 20,000 uniform draws the chance to miss a given one is 2e-10.
    assert set(prompt["token_ids"]) == set(range(1, 900))


def test_ids_without_a_tokenizer_file(tmp_path: Path) -> None:
    tokenizer = {"kind": "ids", "vocabulary_size": 12, "first_id": 2}
    spec = {"dataset": "random", "input_tokens": 500, "output_tokens": 1, "requests": 1, "form": "token_ids"}
    build({**spec, "tokenizer": tokenizer}, tmp_path)
    (prompt,) = read_prompts(tmp_path)
    assert set(prompt["token_ids"]) == set(range(2, 12))


def test_pieces_that_end_too_early_are_an_error_not_a_short_prompt() -> None:
    with pytest.raises(CrossoverError, match="ends after about 3 of 10 tokens"):
        assemble(["one two three"], 10, Words())


def test_no_text_ends_with_a_space(tmp_path: Path) -> None:
    # Chat templates strip it, and the server would then count fewer tokens.
    build({"dataset": "sharegpt-shaped", "input_tokens": 100, "output_tokens": 1, "requests": 50}, tmp_path)
    assert not any(prompt["text"][-1].isspace() for prompt in read_prompts(tmp_path))
