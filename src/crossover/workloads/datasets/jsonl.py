"""The user's own prompts, a JSON object a line: `{"prompt"|"text"|"messages"|"token_ids": ...,
"output_tokens": N}`.

They are sent as they are. Warm-up takes the same prompts changed at their beginning, so that the shapes are
the same and no prompt, nor the beginning of one, is what a prefix cache has seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.workloads.datasets.base import Dataset, Job, Prompt, Source
from crossover.workloads.specification import Option
from crossover.workloads.tokenizers import Ids, Words

_REMEDY = 'one object a line with "prompt", "messages" or "token_ids", and perhaps "output_tokens"'


def open_jsonl(job: Job) -> Source:
    if job.spec.input_tokens is not None:
        raise InputError(
            "a user's own prompts are sent as they are", place="input_tokens", remedy="leave input_tokens out"
        )
    rows = _read(Path(job.option("file")))
    if len(rows) < job.spec.requests:
        raise InputError(
            f"{len(rows)} prompts for {job.spec.requests} requests",
            file=job.option("file"),
            remedy="ask for fewer requests, or add prompts",
        )
    order = job.stream("order").permutation(len(rows)) if job.option("shuffle") else list(range(len(rows)))
    seen = {json.dumps(row.get("token_ids")) for row in rows}

    def own(index: int) -> Prompt:
        row = rows[order[index]]
        return _prompt(row if job.spec.purpose == "measure" else _changed(row, index, seen), job)

    return own


def _prompt(row: Mapping[str, Any], job: Job) -> Prompt:
    wanted = row.get("output_tokens")
    if row.get("token_ids") is not None:
        return Prompt(job.output_tokens(wanted), len(row["token_ids"]), token_ids=row["token_ids"])
    if row.get("messages") is not None:
        return Prompt(job.output_tokens(wanted), _count_messages(row["messages"], job), messages=row["messages"])
    if isinstance(job.tokenizer, Ids):
        return Prompt(job.output_tokens(wanted), None, text=row["text"])
    return job.as_is(row["text"], wanted)


def _count_messages(messages: list[dict[str, Any]], job: Job) -> int | None:
    """With a real tokenizer the chat template decides, which only the server knows."""
    if not isinstance(job.tokenizer, Words) or not all(isinstance(turn.get("content"), str) for turn in messages):
        return None
    return sum(job.tokenizer.count(turn["content"]) for turn in messages) + job.tokenizer.server_adds


def _read(file: Path) -> list[dict[str, Any]]:
    rows = []
    for number, raw in enumerate(file.read_text("utf-8").splitlines(), start=1):
        if raw.strip():
            rows.append(_row(raw, file, f"line {number}"))
    return rows


def _row(raw: str, file: Path, place: str) -> dict[str, Any]:
    try:
        row = json.loads(raw)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=file, place=place, remedy=_REMEDY) from error
    if not isinstance(row, dict):
        raise InputError("not an object", file=file, place=place, remedy=_REMEDY)
    if "prompt" in row:
        kind = "token_ids" if isinstance(row["prompt"], list) else "text"
        row = {**row, kind: row["prompt"]}
    given = [key for key in _CHECKS if row.get(key) is not None]
    if len(given) != 1 or not _CHECKS[given[0]](row[given[0]]):
        raise InputError("not a prompt", file=file, place=place, remedy=_REMEDY)
    wanted = row.get("output_tokens")
    if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1):
        raise InputError(
            f"output_tokens is {wanted!r}", file=file, place=place, remedy="give a whole number of at least 1"
        )
    return {key: row.get(key) for key in (*_CHECKS, "output_tokens")}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(turn, dict) and "role" in turn for turn in value)


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int and token >= 0 for token in value)


_CHECKS = {"text": _is_text, "messages": _is_messages, "token_ids": _is_ids}


def _changed(row: dict[str, Any], index: int, seen: set[str]) -> dict[str, Any]:
    mark = f"Warm-up {index}."
    if row["text"] is not None:
        return {**row, "text": f"{mark} {row['text']}"}
    if row["messages"] is not None:
        first, *rest = row["messages"]
        content = first.get("content")
        if isinstance(content, str):
            return {**row, "messages": [{**first, "content": f"{mark} {content}"}, *rest]}
        return {**row, "messages": [{"role": "system", "content": mark}, *row["messages"]]}
    ids = row["token_ids"]
    for turn in range(1, len(ids)):
        rotated = ids[turn:] + ids[:turn]
        if json.dumps(rotated) not in seen:
            return {**row, "token_ids": rotated}
    raise InputError(
        f"prompt {index} has no other order of its ids to warm up with",
        place="options.file",
        remedy="give prompts with more than one token id",
    )


DATASET = Dataset(
    "jsonl",
    "The user's own prompts, sent as they are.",
    open_jsonl,
    options=(
        Option("file", "file", "a JSON-lines file of prompts", required=True),
        Option("shuffle", "flag", "whether to draw in random order rather than that of the file", default=False),
    ),
    free_lengths=frozenset({"input_tokens", "output_tokens"}),
)
