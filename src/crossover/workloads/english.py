"""Writes natural-looking English from the patterns in english.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from crossover.workloads.streams import Stream

_SLOT = re.compile(r"\{(\w)\}")
_SENTENCES_A_PARAGRAPH = 5

Pattern = tuple[str, ...]
"""Literal text and slot letters in turn: ("The ", "s", " is ", "a", ".")."""


@dataclass(frozen=True)
class Language:
    """The patterns and words of english.yaml, patterns already split at their slots."""

    introductions: tuple[Pattern, ...]
    openings: tuple[Pattern, ...]
    asking: tuple[Pattern, ...]
    answering: tuple[Pattern, ...]
    topics: tuple[Mapping[str, list[str]], ...]
    shared: Mapping[str, list[str]]


@lru_cache(maxsize=1)
def language() -> Language:
    """Returns the language that ships with the package."""
    raw: dict[str, Any] = yaml.safe_load(resources.files(__package__).joinpath("english.yaml").read_text("utf-8"))
    shared = {
        "a": raw["adjectives"],
        "d": raw["adverbs"],
        "o": raw["everyday"],
        "w": raw["people"],
        "t": raw["times"],
        "c": raw["numbers"],
        "f": raw["first_names"],
        "l": raw["last_names"],
        "y": raw["cities"],
        "j": raw["jobs"],
    }
    topics = tuple(raw["topics"][name] for name in sorted(raw["topics"]))
    return Language(
        introductions=_split(raw["introductions"]),
        openings=_split(raw["openings"]),
        asking=_split(raw["asking"]),
        answering=_split(raw["answering"]),
        topics=topics,
        shared=shared,
    )


def _split(patterns: list[str]) -> tuple[Pattern, ...]:
    return tuple(tuple(_SLOT.split(pattern)) for pattern in patterns)


class Writer:
    """Writes one conversation, which stays with its topic.

    Args:
        stream: where its choices come from.
    """

    def __init__(self, stream: Stream) -> None:
        self._language = language()
        self._stream = stream
        self._words = {**self._language.shared, **stream.pick(self._language.topics)}

    def sentence(self, patterns: tuple[Pattern, ...]) -> str:
        """Returns one sentence with its full stop."""
        pattern = self._stream.pick(patterns)
        parts = [self._stream.pick(self._words[part]) if number % 2 else part for number, part in enumerate(pattern)]
        text = "".join(parts)
        return text[0].upper() + text[1:]

    def introduction(self) -> str:
        """Returns who is writing: what makes the beginnings of two conversations differ."""
        return self.sentence(self._language.introductions)

    def turn(self, words: int, *, asks: bool) -> str:
        """Returns whole sentences of at least `words` words, in paragraphs where it is long."""
        patterns = self._language.asking if asks else self._language.answering
        text = self.sentence(self._language.openings) if asks else self.sentence(patterns)
        sentences, counted = [text], text.count(" ") + 1
        while counted < words:
            sentence = self.sentence(patterns)
            counted += sentence.count(" ") + 1
            sentences.append(sentence)
        paragraphs = (
            " ".join(sentences[at : at + _SENTENCES_A_PARAGRAPH])
            for at in range(0, len(sentences), _SENTENCES_A_PARAGRAPH)
        )
        return "\n\n".join(paragraphs)
