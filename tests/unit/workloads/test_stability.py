"""The same prompts everywhere: fixed digests, any number of processes, nothing in common between streams."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crossover.workloads import VERSION, build, read_prompts, recipe
from crossover.workloads.streams import Stream

BASE: dict[str, Any] = {
    "dataset": "random",
    "input_tokens": 300,
    "output_tokens": 5,
    "requests": 4,
    "seed": 0,
}


def _texts(spec: dict[str, Any], out: Path) -> list[str]:
    build(spec, out)
    return [prompt["text"] for prompt in read_prompts(out)]


@pytest.mark.parametrize(
    ("dataset", "options", "beginning"),
    [
        ("random", {}, "59baf3e09fbcebfc"),
        ("sharegpt-shaped", {}, "f67e92c49c7f8a20"),
        ("shared-prefix", {"prefix_tokens": 100}, "ce573ef0e0ffca59"),
    ],
)
def test_prompts_of_this_version_do_not_change(
    dataset: str, options: dict[str, Any], beginning: str, tmp_path: Path
) -> None:
    """Where this fails on purpose: raise VERSION in identity.py, or old entries stand for other prompts."""
    manifest = build({**BASE, "dataset": dataset, "options": options}, tmp_path)
    assert VERSION == 1
    assert manifest["files"]["prompts.jsonl"]["sha256"].startswith(beginning)


def test_the_manifest_holds_the_digest_of_the_file(tmp_path: Path) -> None:
    manifest = build(BASE, tmp_path)
    raw = (tmp_path / "prompts.jsonl").read_bytes()
    assert manifest["files"]["prompts.jsonl"] == {
        "sha256": hashlib.sha256(raw).hexdigest(),
        "bytes": len(raw),
    }
    assert manifest["prompt_tokens"] == {"total": 1200, "min": 300, "max": 300, "mean": 300.0}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "prompts.jsonl"]


def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    alone = build({**BASE, "dataset": "sharegpt-shaped"}, tmp_path / "a", processes=1)
    together = build({**BASE, "dataset": "sharegpt-shaped"}, tmp_path / "b", processes=2)
    assert alone == together


def test_more_requests_begin_with_the_same_prompts(tmp_path: Path) -> None:
    few, many = _texts(BASE, tmp_path / "a"), _texts({**BASE, "requests": 9}, tmp_path / "b")
    assert many[:4] == few


@pytest.mark.parametrize("dataset", ["random", "sharegpt-shaped"])
def test_prompts_share_no_beginning(dataset: str, tmp_path: Path) -> None:
    """Not among themselves, not with warm-up, another seed or another length: else a prefix cache would be
    warm.

    Sorted, those most alike are neighbours. An engine's cache block is 16 tokens or more.
    """
    variants = [{}, {"purpose": "warmup"}, {"seed": 1}, {"input_tokens": 600}]
    texts: list[list[str]] = []
    for number, change in enumerate(variants):
        spec = {**BASE, "requests": 60, "dataset": dataset, **change}
        texts += [text.split() for text in _texts(spec, tmp_path / str(number))]
    assert all(a[:16] != b[:16] for a, b in pairwise(sorted(texts)))


def test_shared_prefixes_are_shared_within_a_group_only(tmp_path: Path) -> None:
    spec = {**BASE, "dataset": "shared-prefix", "requests": 6, "options": {"prefix_tokens": 100, "groups": 2}}
    words = [text.split() for text in _texts(spec, tmp_path)]
    assert words[0][:100] == words[2][:100] == words[4][:100]
    assert words[0][:16] != words[1][:16]
    assert len({tuple(prompt[100:116]) for prompt in words}) == 6


def test_the_recipe_knows_files_by_content(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("Some text. And more of it. " * 200, "utf-8")
    spec = {**BASE, "dataset": "documents"}
    a = recipe({**spec, "options": {"files": ["a.txt"]}}, tmp_path)
    assert a == recipe({**spec, "options": {"files": "b.txt"}}, tmp_path)
    (tmp_path / "b.txt").write_text("Another text. " * 400, "utf-8")
    assert a != recipe({**spec, "options": {"files": ["b.txt"]}}, tmp_path)
    assert str(tmp_path) not in str(a)


def test_the_recipe_fills_in_defaults() -> None:
    minimal = {"dataset": "random", "input_tokens": 300, "output_tokens": 5, "requests": 4}
    assert recipe(minimal) == recipe(
        {
            **BASE,
            "purpose": "measure",
            "form": "text",
            "tokenizer": {"kind": "words", "server_adds": 0},
            "options": {},
        }
    )


def test_streams_are_the_raw_output_of_philox() -> None:
    # NumPy promises that raw output never changes; the first draws of this key, taken down once.
    stream = Stream("x", 1)
    assert [int(value) for value in stream.below(1000, 4)] == [918, 526, 861, 967]
    assert sorted(Stream("x").permutation(50)) == list(range(50))
    assert all(0 <= Stream("x", n).unit() < 1 for n in range(100))
