"""Streams of random numbers that are the same on every machine and in every process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
_BLOCK = 4096


class Stream:
    """Uniform draws named by a key; equal keys give equal draws, different keys unrelated ones.

    Only the raw output of Philox is used: its stream is promised never to change between NumPy versions,
    which is not true of `Generator.integers` or of `random.sample`.

    Args:
        key: anything JSON can write; the SHA-256 of its canonical form is the Philox key.
    """

    def __init__(self, *key: object) -> None:
        # Imported where numbers are drawn: planning reads the datasets' options alone, and must be quick.
        import numpy as np

        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest[:16], "little"))
        self._block: list[int] = []

    def below(self, bound: int, count: int) -> NDArray[np.int64]:
        """Returns `count` integers uniform in [0, bound); bound is at most 2**31."""
        import numpy as np

        high = self._bits.random_raw(count) >> np.uint64(33)
        return ((high * np.uint64(bound)) >> np.uint64(31)).astype(np.int64)

    def integer(self, bound: int) -> int:
        """Returns one integer uniform in [0, bound)."""
        if not self._block:
            self._block = [draw >> 33 for draw in self._bits.random_raw(_BLOCK).tolist()]
        return (self._block.pop() * bound) >> 31

    def unit(self) -> float:
        """Returns one float uniform in [0, 1)."""
        return self.integer(1 << 31) / (1 << 31)

    def pick(self, items: Sequence[T]) -> T:
        """Returns one of `items`."""
        return items[self.integer(len(items))]

    def permutation(self, length: int) -> list[int]:
        """Returns 0..length-1 in random order, by sorting 64-bit draws (ties go by index)."""
        import numpy as np

        keys = self._bits.random_raw(length)
        return [int(index) for index in np.argsort(keys, kind="stable")]
