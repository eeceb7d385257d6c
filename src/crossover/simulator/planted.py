"""Parts of the engine replaced by faulty ones."""

from __future__ import annotations

from collections.abc import Sequence

from crossover.simulator.prefix_cache import PrefixCache


class WrongCache(PrefixCache):
    """A prefix cache that finds a share of every prompt, whatever the prompt, and that no reset empties."""

    def __init__(self, block_tokens: int, share: float) -> None:
        super().__init__(block_tokens, 1, True)
        self.share = share

    def lookup(self, prompt: str | Sequence[int], tokens: int) -> int:
        """Returns `share` of the prompt, in whole blocks of at most a quarter of it."""
        block = min(self.block_tokens, max(1, tokens // 4))
        hit = min(int(tokens * self.share), tokens - 1) // block * block
        self.count(tokens, hit)
        return hit
