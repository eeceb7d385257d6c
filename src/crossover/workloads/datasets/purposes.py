"""Keeps warm-up prompts apart from measurement prompts where both come from the same file."""

from __future__ import annotations

import hashlib

_ONE_IN = 8
_OPENING_WORDS = 12  # below the 16 tokens of the smallest cache block


def opening_of(text: str) -> str:
    """Returns the first words of a text, by which prompts are told apart."""
    return " ".join(text[: 32 * _OPENING_WORDS].split()[:_OPENING_WORDS])


def same_purpose(opening: str, purpose: str) -> bool:
    """Says whether a text that begins with `opening` belongs to this purpose: an eighth of all is kept for
    warm-up.

    The text decides, not its position, so that a text that occurs twice falls on one side only and
    the two sides never meet, whatever their seeds and numbers of requests.
    """
    warmup = hashlib.sha256(opening.encode("utf-8", "surrogatepass")).digest()[0] % _ONE_IN == 0
    return warmup == (purpose == "warmup")
