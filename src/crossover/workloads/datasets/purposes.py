"""Keeps warm-up prompts apart from measurement prompts where both come from the same file."""

from __future__ import annotations

import hashlib

_ONE_IN = 8


def same_purpose(opening: str, purpose: str) -> bool:
    """Says whether a text that begins with `opening` belongs to this purpose: an eighth of all is kept for
    warm-up.

    The text decides, not its position, so that a text that occurs twice falls on one side only and
    the two sides never meet, whatever their seeds and numbers of requests.
    """
    warmup = hashlib.sha256(opening.encode("utf-8", "surrogatepass")).digest()[0] % _ONE_IN == 0
    return warmup == (purpose == "warmup")
