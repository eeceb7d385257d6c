"""Invented words: a vocabulary of 262,144 that no language has, for random prompts without a tokenizer."""

from __future__ import annotations

from functools import lru_cache

_FIRST = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "ch", "sh"]
_MIDDLE = ["a", "e", "i", "o"]


@lru_cache(maxsize=1)
def invented_words() -> list[str]:
    """Returns three-syllable words such as "bakosha", each once, always in the same order."""
    syllables = [first + middle for first in _FIRST for middle in _MIDDLE]
    return [a + b + c for a in syllables for b in syllables for c in syllables]
