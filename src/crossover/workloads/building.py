"""Writes prompts files: built in several processes, streamed to disk in order, complete or absent."""

from __future__ import annotations

import codecs
import hashlib
import itertools
import json
import multiprocessing
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from crossover.errors import InputError
from crossover.workloads.datasets import DATASETS
from crossover.workloads.datasets.base import Job, Prompt, Source
from crossover.workloads.identity import determinants
from crossover.workloads.specification import Spec, parse_spec

PROMPTS, MANIFEST = "prompts.jsonl", "manifest.json"
_WORTH_A_POOL_TOKENS = 4_000_000
_TOKENS_IN_FLIGHT = 2_500_000
_LEADING_WORDS = 64
_KINDS = ("text", "token_ids", "messages")


@dataclass(frozen=True)
class Line:
    """One finished prompt: its line, and what the manifest needs of it."""

    text: str
    prompt_tokens: int | None
    output_tokens: int
    leading: tuple[str, ...]


@dataclass
class Tally:
    """What the manifest says about all prompts, gathered line by line."""

    sha256: Any = field(default_factory=hashlib.sha256)
    size: int = 0
    prompt_tokens: list[int | None] = field(default_factory=list)
    output_tokens: list[int] = field(default_factory=list)
    leading: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, line: Line) -> bytes:
        raw = line.text.encode() + b"\n"
        self.sha256.update(raw)
        self.size += len(raw)
        self.prompt_tokens.append(line.prompt_tokens)
        self.output_tokens.append(line.output_tokens)
        self.leading.append(line.leading)
        return raw


def build(
    spec: Mapping[str, Any], out_dir: Path, *, base_dir: Path | None = None, processes: int | None = None
) -> dict[str, Any]:
    """Writes `prompts.jsonl` and `manifest.json` into `out_dir` and returns the manifest.

    The prompts depend on the spec alone, not on the number of processes. Each line is
    `{"index", "text", "token_ids", "messages", "prompt_tokens", "output_tokens", "dataset"}` with exactly one
    of text, token_ids and messages set; lengths are in tokens, prompt_tokens is what the tokenizer counted
    plus `server_adds`.

    Args:
        spec: dataset, input_tokens, output_tokens, requests, seed, purpose, tokenizer, form, options.
        out_dir: made where missing.
        base_dir: what relative paths in the spec are relative to.
        processes: how many processes build; by default the cores, as far as the prompts are worth it.

    Raises:
        InputError: the spec or a file that it names is wrong.
        CrossoverError: a length that cannot be reached.
    """
    checked = parse_spec(spec, base_dir)
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / MANIFEST).unlink(missing_ok=True)
    tally = Tally()
    partial = out_dir / f".{PROMPTS}.partial"
    try:
        with partial.open("wb") as stream:
            for line in _lines(checked, processes):
                stream.write(tally.add(line))
        partial.replace(out_dir / PROMPTS)
    finally:
        partial.unlink(missing_ok=True)
    manifest = _manifest(checked, tally)
    _write_json(out_dir / MANIFEST, manifest)
    return manifest


def read_prompts(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the prompts of a prompts file, or of the folder that holds one, one at a time.

    Raises:
        InputError: no such file, or a line that is not a prompt.
    """
    file = path / PROMPTS if path.is_dir() else path
    if not file.is_file():
        raise InputError("no such prompts file", file=file, remedy="make one with `crossover prompts`")
    found = False
    with file.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            if line.strip():
                found = True
                yield _read_line(line, file, number)
    if not found:
        raise InputError(
            "holds no prompts", file=file, remedy="one JSON object a line, with text, token_ids or messages"
        )


def _read_line(raw: bytes, file: Path, number: int) -> dict[str, Any]:
    place = f"line {number}"
    try:
        # Strict about what can be sent: UTF-8, no NaN, no half of a surrogate pair.
        prompt = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}", file=file, place=place, remedy="one JSON object a line") from error
    kinds = [
        key for key in ("text", "token_ids", "messages") if isinstance(prompt, dict) and prompt.get(key) is not None
    ]
    if len(kinds) != 1:
        raise InputError(
            f"holds {' and '.join(kinds) or 'none'} of text, token_ids and messages",
            file=file,
            place=place,
            remedy="set exactly one of them",
        )
    for key, is_right, wanted in _LINE_FIELDS:
        value = prompt.get(key)
        if value is not None and not is_right(value):
            raise InputError(
                f"{key} is {orjson.dumps(value)[:60].decode(errors='replace')}",
                file=file,
                place=place,
                remedy=f"give {wanted}",
            )
    return dict(prompt)


def _is_count(value: Any) -> bool:
    return value.__class__ is int and value > 0


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(item.__class__ is int and item >= 0 for item in value)


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and "role" in item for item in value)


_LINE_FIELDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("text", lambda value: isinstance(value, str) and value != "", "a text that is not empty"),
    ("token_ids", _are_ids, "a list of whole numbers"),
    ("messages", _are_messages, "a list of objects with role and content"),
    ("output_tokens", _is_count, "a whole number of at least 1"),
    ("prompt_tokens", _is_count, "a whole number of at least 1"),
    ("index", lambda value: value.__class__ is int and value >= 0, "a whole number of at least 0"),
)


def _lines(spec: Spec, processes: int | None) -> Iterator[Line]:
    workers = _workers(spec, processes)
    if workers == 1:
        source = open_source(spec)
        for index in range(spec.requests):
            yield make_line(spec, source(index), index)
        return
    # A fresh interpreter a worker: threads of the caller (a server, a tokenizer) do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_open_in_worker, initargs=(spec,)) as pool:
        waiting: deque[Future[Line]] = deque()
        for index in range(spec.requests):
            waiting.append(pool.submit(_line_in_worker, index))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _workers(spec: Spec, processes: int | None) -> int:
    tokens = spec.input_tokens or 1000
    if processes is None:
        processes = len(os.sched_getaffinity(0)) if tokens * spec.requests >= _WORTH_A_POOL_TOKENS else 1
    # Memory, not cores, is what prompts of a million tokens run out of.
    return max(1, min(processes, spec.requests, max(1, _TOKENS_IN_FLIGHT // tokens)))


_in_worker: tuple[Spec, Source] | None = None


def _open_in_worker(spec: Spec) -> None:
    global _in_worker
    _in_worker = (spec, open_source(spec))


def _line_in_worker(index: int) -> Line:
    assert _in_worker is not None
    spec, source = _in_worker
    return make_line(spec, source(index), index)


def open_source(spec: Spec) -> Source:
    """Returns the function from index to prompt."""
    return DATASETS[spec.dataset].open(Job(spec))


def make_line(spec: Spec, prompt: Prompt, index: int) -> Line:
    """Returns the line of one prompt."""
    record = {
        "index": index,
        "text": prompt.text,
        "token_ids": prompt.token_ids,
        "messages": prompt.messages,
        "prompt_tokens": prompt.prompt_tokens,
        "output_tokens": prompt.output_tokens,
        "dataset": spec.dataset,
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return Line(text, prompt.prompt_tokens, prompt.output_tokens, prompt.leading(_LEADING_WORDS))


def _manifest(spec: Spec, tally: Tally) -> dict[str, Any]:
    counted = [tokens for tokens in tally.prompt_tokens if tokens is not None]
    return {
        "recipe": determinants(spec),
        "requests": len(tally.output_tokens),
        "prompt_tokens": _summary(counted) if len(counted) == len(tally.prompt_tokens) else None,
        "output_tokens": _summary(tally.output_tokens),
        "exact": spec.input_tokens is not None and all(tokens == spec.input_tokens for tokens in tally.prompt_tokens),
        "longest_shared_beginning_words": _longest_shared(tally.leading),
        "files": {PROMPTS: {"sha256": tally.sha256.hexdigest(), "bytes": tally.size}},
    }


def _summary(values: list[int]) -> dict[str, float]:
    return {"total": sum(values), "min": min(values), "max": max(values), "mean": sum(values) / len(values)}


def _longest_shared(leading: list[tuple[str, ...]]) -> int:
    """Returns how many words (or ids) the most alike two prompts begin with in common, at most 64.

    Sorted, the two most alike stand next to each other.
    """
    ordered = sorted(leading)
    return max((_common(a, b) for a, b in itertools.pairwise(ordered)), default=0)


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    same = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        same += 1
    return same


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as stream:
        json.dump(value, stream, indent=2, sort_keys=True)
        stream.write("\n")
    shutil.move(stream.name, path)
