"""A prefix cache that remembers prompts by chained hashes, with least-recently-used eviction by tokens."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence

from crossover.simulator.text import fingerprint, prefix_tokens


class PrefixCache:
    """Says how much of a prompt is cached, in whole blocks, and keeps the hit rate of the last 1,000 prompts.

    Args:
        block_tokens: hits are multiples of this.
        capacity_tokens: older entries are dropped beyond it.
        enabled: a disabled cache never hits and counts nothing.
    """

    def __init__(self, block_tokens: int, capacity_tokens: int, enabled: bool) -> None:
        self.block_tokens, self.capacity_tokens, self.enabled = block_tokens, capacity_tokens, enabled
        self._pieces: OrderedDict[int, int] = OrderedDict()
        self._held = 0
        self._recent: deque[tuple[int, int]] = deque(maxlen=1000)
        self.queries = 0
        self.hits = 0

    def lookup(self, prompt: str | Sequence[int], tokens: int) -> int:
        """Returns the cached tokens of `prompt` (which has `tokens`), counts them, and remembers the prompt."""
        if not self.enabled:
            return 0
        hashes = fingerprint(prompt)
        known = 0
        for value in hashes:
            if value not in self._pieces:
                break
            self._pieces.move_to_end(value)
            known += 1
        reach = tokens if known == len(hashes) else prefix_tokens(prompt, known)
        # The last token is always computed: its output starts the answer.
        hit = min(reach, tokens - 1) // self.block_tokens * self.block_tokens if known else 0
        self._remember(hashes, tokens)
        self.count(tokens, hit)
        return hit

    def count(self, queried: int, hit: int) -> None:
        """Adds one prompt to the counters."""
        self.queries += queried
        self.hits += hit
        self._recent.append((queried, hit))

    def hit_rate(self) -> float:
        """Returns the share of prompt tokens found in the cache over the last 1,000 prompts (0 when there are none)."""
        queried = sum(tokens for tokens, _ in self._recent)
        return sum(hit for _, hit in self._recent) / queried if queried else 0.0

    def reset(self) -> None:
        """Forgets every prompt; the counters go on."""
        self._pieces.clear()
        self._held = 0

    def _remember(self, hashes: Sequence[int], tokens: int) -> None:
        each = max(1, tokens // max(1, len(hashes)))
        for value in hashes:
            if value not in self._pieces:
                self._pieces[value] = each
                self._held += each
        while self._held > self.capacity_tokens and self._pieces:
            self._held -= self._pieces.popitem(last=False)[1]
