"""What a container runtime says when it refuses something, sorted into classes with what is to be done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FailureClass:
    """A class of failures: its name, the words that show it, and what is wrong and what helps, for people."""

    kind: str
    shown_by: re.Pattern[str]
    told: str


def failure_classes(rows: Iterable[tuple[str, str, str]]) -> tuple[FailureClass, ...]:
    """Returns classes from (kind, regular expression, what is told), the more telling ones first."""
    return tuple(FailureClass(kind, re.compile(words, re.IGNORECASE), told) for kind, words, told in rows)


def class_of(said: str, classes: Sequence[FailureClass]) -> FailureClass | None:
    """Returns the first class whose words stand in what was said, None where none do."""
    words = " ".join(said.split())
    return next((one for one in classes if one.shown_by.search(words)), None)


def in_one_line(said: str, most: int = 300) -> str:
    """Returns what was said in one line of limited length. The end is kept: Go programs, hooks and the runtimes that
    wrap them put the cause there."""
    words = " ".join(said.split())
    return words if len(words) <= most else f"... {words[-most:]}"
