"""Faults inside the engine: a cache that lies, and what happens after so many tokens or requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossover.simulator.ending import Ended
from crossover.simulator.faults import Faults
from crossover.simulator.prefix_cache import PrefixCache

if TYPE_CHECKING:
    from crossover.simulator.server import Simulator


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


class Triggers:
    """The faults that wait for a number of generated tokens or finished requests."""

    def __init__(self, faults: Faults) -> None:
        self._die_tokens, self._die_requests = faults.number("die-after-tokens"), faults.number("die-after-requests")
        pairs = {name: faults.pair(name) for name in ("stall", "jit-in-measurement")}
        self._delays = {name: pair for name, pair in pairs.items() if pair}

    @property
    def armed(self) -> bool:
        return bool(self._delays) or self._die_tokens is not None or self._die_requests is not None

    def check(self, simulator: Simulator) -> None:
        """Looks at what has been generated after a step.

        Raises:
            Ended: the engine dies now; its last words are in the log.
        """
        counters = simulator.counters
        tokens = counters.generated_live
        requests = counters.completed
        for limit, reached in ((self._die_tokens, tokens), (self._die_requests, requests)):
            if limit is not None and reached >= limit:
                text = "RuntimeError: CUDA error: an illegal memory access was encountered"
                simulator.log.failed(text, simulator.last_end_s, starting=False)
                raise Ended(1)
        for name, (after, seconds) in list(self._delays.items()):
            if tokens >= after:
                del self._delays[name]
                simulator.scheduler.delay_s += seconds
                if name != "stall":
                    simulator.log.compiled("fused_moe_kernel", simulator.last_end_s)
