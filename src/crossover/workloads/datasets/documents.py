"""Documents: long natural text assembled from any text files.

The files are one long text; each prompt begins at the start of another sentence and runs on, over the end to
the beginning where needed. The starts of warm-up prompts are never starts of measurement prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from crossover.errors import InputError
from crossover.workloads.datasets.base import Dataset, Job, Prompt, Source
from crossover.workloads.datasets.purposes import opening_of, same_purpose
from crossover.workloads.specification import Option

_PIECE_CHARACTERS = 8192
_START = re.compile(r"(?:\A|\n[ \t]*\n\s*|[.!?][\"')]*\s+)(?=\w)")
_WORD_START = re.compile(r"(?:\A|(?<=\s))(?=\S)")
_OPENING_CHARACTERS = 384


def open_documents(job: Job) -> Source:
    text = _read(job.option("files"))
    if not job.option("repeat"):
        _refuse_short(text, job)
    starts = _starts(text, job)

    def document(index: int) -> Prompt:
        return job.exact(_from(text, starts[index]))

    return document


def _read(files: list[str]) -> str:
    """Returns the files joined by an empty line; bytes that are no UTF-8 are replaced."""
    texts = []
    for name in files:
        text = Path(name).read_text("utf-8", errors="replace").replace("\0", "").strip()
        if not text:
            raise InputError("holds no text", file=name, place="options.files", remedy="give files with text in them")
        texts.append(text)
    return "\n\n".join(texts)


def _refuse_short(text: str, job: Job) -> None:
    held = job.tokenizer.count(text)
    if held < job.own_tokens:
        raise InputError(
            f"the files hold {held} tokens, a prompt needs {job.own_tokens}",
            place="options.files",
            remedy="add files, or set options.repeat to true to let the text come round again",
        )


def _starts(text: str, job: Job) -> list[int]:
    """Returns one start a request, in an order drawn by the seed, no two with the same opening words."""
    for pattern in (_START, _WORD_START):
        candidates = _distinct([match.end() for match in pattern.finditer(text)], text, job)
        if len(candidates) >= job.spec.requests:
            order = job.stream("starts").permutation(len(candidates))
            return [candidates[number] for number in order[: job.spec.requests]]
    raise InputError(
        f"the files have {len(candidates)} places for a prompt to begin, {job.spec.requests} are needed",
        place="options.files",
        remedy="add files, or ask for fewer requests",
    )


def _distinct(starts: list[int], text: str, job: Job) -> list[int]:
    found: dict[str, int] = {}
    for start in starts:
        found.setdefault(opening_of(text[start : start + _OPENING_CHARACTERS]), start)
    return [start for opening, start in found.items() if same_purpose(opening, job.spec.purpose)]


def _from(text: str, start: int) -> Iterator[str]:
    """Yields the text from `start` on in pieces that end with a space, round and round."""
    at = start
    while True:
        end = at + _PIECE_CHARACTERS
        if end >= len(text):
            yield text[at:] + "\n\n"
            at = 0
            continue
        space = text.find(" ", end, end + 200)
        end = space + 1 if space > 0 else end
        yield text[at:end]
        at = end


DATASET = Dataset(
    "documents",
    "Long natural text from any text files, cut to the exact length.",
    open_documents,
    options=(
        Option("files", "files", "the text files, in order", required=True),
        Option("repeat", "flag", "whether text shorter than a prompt may come round again", default=False),
    ),
)
