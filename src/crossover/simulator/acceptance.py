"""How many tokens a request gains in one step when a draft model proposes some and the target accepts a "
"prefix of them."""

from __future__ import annotations

import random
from bisect import bisect_right
from functools import lru_cache


@lru_cache(maxsize=512)
def conditional_rate(mean_tokens: float, drafted: int) -> float:
    """Returns p such that 1 + p + p^2 + ... + p^drafted is `mean_tokens`: each draft position is accepted with
    probability p once the one before it was. Values outside 1..1+drafted give 0 or 1.
    """
    if mean_tokens <= 1.0 or drafted < 1:
        return 0.0
    if mean_tokens >= 1 + drafted:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if sum(middle**position for position in range(1, drafted + 1)) < mean_tokens - 1:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@lru_cache(maxsize=512)
def cumulative(mean_tokens: float, drafted: int) -> tuple[float, ...]:
    """Returns P(tokens <= n) for n = 1..drafted, where tokens is what one step yields (1..1+drafted)."""
    rate = conditional_rate(mean_tokens, drafted)
    return tuple(1 - rate**count for count in range(1, drafted + 1))


class Acceptance:
    """Draws the tokens of each step of one request; a seed gives the same draws again."""

    __slots__ = ("_bounds", "_random", "drafted", "mean")

    def __init__(self, mean_tokens: float, drafted: int, seed: int) -> None:
        self.mean = max(1.0, min(mean_tokens, 1.0 + drafted)) if drafted else 1.0
        self.drafted = drafted
        self._bounds = cumulative(round(self.mean, 4), drafted)
        self._random = random.Random(seed).random

    def draw(self) -> int:
        """Returns the tokens of the next step, 1..1+drafted."""
        return 1 + bisect_right(self._bounds, self._random())
