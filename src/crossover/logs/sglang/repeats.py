"""The same statement told by several ranks counts once; data-parallel ranks stay apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from crossover.logs.lines import Line

T = TypeVar("T")

WINDOW_S = 2.5
"""Ranks tell of the same batch within a second of printed time; stamps have whole seconds."""
_WINDOW_LINES = 512
_ORDER = ("pp", "attn_cp", "cp", "pcp", "dcp", "moe_dp", "attn_tp", "tp", "moe_tp", "ep", "moe_ep")
_ENGINES = ("dp", "attn_dp")


@lru_cache(maxsize=1024)
def _places(ranks: tuple[tuple[str, int], ...]) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """Returns (the place among the ranks that repeat, the engine that the rank belongs to)."""
    rank = dict(ranks)
    return tuple(rank.get(name, 0) for name in _ORDER), tuple(rank.get(name) for name in _ENGINES)


@dataclass(slots=True)
class _Open(Generic[T]):
    key: Hashable
    lowest: tuple[int, ...]
    row: T
    seconds: float | None
    number: int
    written: bool = False


class _Group(Generic[T]):
    """Statements that look alike: the nth one of each rank is about the same thing."""

    __slots__ = ("first", "opened", "told")

    def __init__(self) -> None:
        self.opened: deque[_Open[T]] = deque()
        self.first = 0  # the number of `opened[0]`, as earlier ones have gone
        self.told: dict[tuple[int, ...], int] = {}  # how many each rank has told of

    def repeated_by(self, place: tuple[int, ...]) -> _Open[T] | None:
        """Returns what this rank repeats, or None if it is the first to tell."""
        number = max(self.told.get(place, 0), self.first)
        if number - self.first >= len(self.opened):
            return None
        self.told[place] = number + 1
        return self.opened[number - self.first]

    def open(self, place: tuple[int, ...], opened: _Open[T]) -> None:
        self.opened.append(opened)
        self.told[place] = self.first + len(self.opened)

    def forget_oldest(self) -> bool:
        """Returns whether the group is empty then."""
        self.opened.popleft()
        self.first += 1
        return not self.opened


class Repeats(Generic[T]):
    """Holds a statement back until the other ranks had time to repeat it, then writes the lowest rank's once.

    A rank tells of a batch once, so a second statement of one rank is another batch even if all is equal.

    Args:
        write: called with each row, in the order of the first statements.
    """

    def __init__(self, write: Callable[[T], None]) -> None:
        self._write = write
        self._held: deque[_Open[T]] = deque()
        self._by_key: dict[Hashable, _Group[T]] | None = None  # made when a second place is heard
        self._only: tuple[int, ...] | None = None
        self._clock: tuple[str | None, float | None] = (None, None)

    def add(self, fingerprint: Hashable, rank: Mapping[str, int] | None, line: Line, row: T) -> bool:
        """Takes one statement; `fingerprint` is what all ranks print alike. Returns whether it is new."""
        if not rank:
            self.flush()
            self._write(row)
            return True
        if self._clock[0] != line.t:
            self._clock = (line.t, line.seconds())
        seconds = self._clock[1]
        self._expire(seconds, line.number)
        place, engines = _places(tuple(rank.items()))
        opened = _Open((fingerprint, engines), place, row, seconds, line.number)
        if self._by_key is None and not self._several(place):
            self._held.append(opened)
            return True
        held = self._group(opened.key).repeated_by(place)
        if held is not None:
            if place < held.lowest:
                held.lowest, held.row = place, row
            return False
        self._held.append(opened)
        self._group(opened.key).open(place, opened)
        return True

    def _several(self, place: tuple[int, ...]) -> bool:
        """Whether another place than before speaks; from then on what is held must be found by its key."""
        if self._only is None:
            self._only = place
        if place == self._only:
            return False
        self._by_key = {}
        for held in self._held:
            self._group(held.key).open(held.lowest, held)
        return True

    def _group(self, key: Hashable) -> _Group[T]:
        assert self._by_key is not None
        group = self._by_key.get(key)
        if group is None:
            group = self._by_key[key] = _Group()
        return group

    def _expire(self, seconds: float | None, number: int) -> None:
        while self._held:
            oldest = self._held[0]
            if seconds is not None and oldest.seconds is not None:
                if abs(seconds - oldest.seconds) <= WINDOW_S and number - oldest.number <= _WINDOW_LINES * 8:
                    return
            elif number - oldest.number <= _WINDOW_LINES:
                return
            self._held.popleft()
            if self._by_key is not None and self._by_key[oldest.key].forget_oldest():
                del self._by_key[oldest.key]
            if not oldest.written:
                self._write(oldest.row)

    def flush(self) -> None:
        """Writes all that is held; repeats of it that come later are still known as such."""
        for held in self._held:
            if not held.written:
                held.written = True
                self._write(held.row)
