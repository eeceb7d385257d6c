"""The same statement told by several ranks counts once; data-parallel ranks stay apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from crossover.logs.lines import Line, seconds_of

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


_Plain = tuple[float | None, int, Hashable, T]
"""Seconds, line number, key and row of a statement that is held."""


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
        self.opened: list[_Open[T]] = []  # few: a deque takes half a kilobyte
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
        del self.opened[0]
        self.first += 1
        return not self.opened


class Repeats(Generic[T]):
    """Holds a statement back until the other ranks had time to repeat it, then writes the lowest rank's once.

    A rank tells of a batch once, so a second statement of one rank is another batch even if all is equal.

    Args:
        write: called with each row, in the order of the first statements.
    """

    def __init__(self, write: Callable[[T], object]) -> None:
        self._write = write
        self._ordered = True  # what `_alone` holds has stamps that never go back
        self._only: tuple[int, ...] | None = None
        self._alone: deque[_Plain[T]] | None = deque()  # what is held while one place speaks; then None
        self._held: deque[_Open[T]] = deque()
        self._by_key: dict[Hashable, _Group[T]] = {}
        self._clock: tuple[str | None, float | None] = (None, None)

    def add(self, fingerprint: Hashable, rank: Mapping[str, int] | None, line: Line, row: T) -> bool:
        """Takes one statement; `fingerprint` is what all ranks print alike. Returns whether it is new."""
        return self.add_at(fingerprint, rank, line.t, line.number, row)

    def add_at(self, fingerprint: Hashable, rank: Mapping[str, int] | None, t: str | None, number: int, row: T) -> bool:
        """The same, for a statement whose line is not at hand."""
        if not rank:
            self.flush()
            self._write(row)
            return True
        if self._clock[0] != t:
            self._clock = (t, seconds_of(t))
        place, engines = _places(tuple(rank.items()))
        return self._take((fingerprint, engines), place, self._clock[1], number, row)

    def add_all(self, fingerprint: Callable[[T], Hashable], rows: Sequence[T], numbers: Sequence[int]) -> None:
        """Takes many statements, as `add_at` would take them one by one.

        Args:
            fingerprint: gives a row's fingerprint.
            rows: each begins with its stamp, `2026-07-01T00:00:00`, and its rank, the same object for the same rank.
            numbers: of their lines.
        """
        ranks: list[Mapping[str, int] | None] = [row[1] for row in rows]  # type: ignore[index]
        seconds = _seconds_of([row[0] for row in rows])  # type: ignore[index]
        if all(rank is ranks[0] for rank in ranks) and self._add_in_order(fingerprint, rows, seconds, numbers):
            return
        places = {id(rank): _places(tuple(rank.items())) for rank in ranks if rank}
        for row, rank, second, number in zip(rows, ranks, seconds, numbers, strict=True):
            if rank:
                place, engines = places[id(rank)]
                self._take((fingerprint(row), engines), place, second, number, row)
            else:
                self.flush()
                self._write(row)

    def _take(
        self, key: tuple[Hashable, Hashable], place: tuple[int, ...], seconds: float | None, number: int, row: T
    ) -> bool:
        alone = self._alone
        if alone is not None:
            if place == self._only:
                while alone and _is_over(alone[0][0], alone[0][1], seconds, number):
                    self._write(alone.popleft()[3])
                self._hold(alone, (seconds, number, key, row))
                return True
            if self._only is None:
                self._only = place
                self._hold(alone, (seconds, number, key, row))
                return True
            self._several()
        held = self._held
        while held and _is_over(held[0].seconds, held[0].number, seconds, number):
            self._forget(held.popleft())
        group = self._group(key)
        opened = group.repeated_by(place)
        if opened is not None:
            if place < opened.lowest:
                opened.lowest, opened.row = place, row
            return False
        opened = _Open(key, place, row, seconds, number)
        held.append(opened)
        group.open(place, opened)
        return True

    def _hold(self, alone: deque[_Plain[T]], plain: _Plain[T]) -> None:
        last, now = alone[-1][0] if alone else 0.0, plain[0]
        self._ordered = (self._ordered or not alone) and last is not None and now is not None and last <= now
        alone.append(plain)

    def _add_in_order(
        self, fingerprint: Callable[[T], Hashable], rows: Sequence[T], seconds: list[float], numbers: Sequence[int]
    ) -> bool:
        """Takes statements of one rank at once, if no other rank has spoken and no stamp goes back.

        What the last statement leaves behind is then all that earlier ones would have left. Returns whether it did.
        """
        rank: Mapping[str, int] | None = rows[0][1]  # type: ignore[index]
        alone = self._alone
        if not rank or alone is None or sorted(seconds) != seconds:
            return False
        place, engines = _places(tuple(rank.items()))
        last = alone[-1][0] if alone else 0.0
        if self._only not in (None, place) or last is None or last > seconds[0] or (alone and not self._ordered):
            return False
        self._only = place
        now, number, begin = seconds[-1], numbers[-1], 0
        while alone and _is_over(alone[0][0], alone[0][1], now, number):
            self._write(alone.popleft()[3])
        if not alone:
            begin = len(rows) - 1
            while begin and not _is_over(seconds[begin - 1], numbers[begin - 1], now, number):
                begin -= 1
            for row in rows[:begin]:
                self._write(row)
        for at in range(begin, len(rows)):
            self._hold(alone, (seconds[at], numbers[at], (fingerprint(rows[at]), engines), rows[at]))
        return True

    def _several(self) -> None:
        """More than one place speaks: from now on what is held must be found by its key."""
        alone, self._alone = self._alone, None
        for seconds, number, key, row in alone or ():
            opened = _Open(key, self._only or (), row, seconds, number)
            self._held.append(opened)
            self._group(key).open(opened.lowest, opened)

    def _group(self, key: Hashable) -> _Group[T]:
        group = self._by_key.get(key)
        if group is None:
            group = self._by_key[key] = _Group()
        return group

    def _forget(self, oldest: _Open[T]) -> None:
        if self._by_key[oldest.key].forget_oldest():
            del self._by_key[oldest.key]
        if not oldest.written:
            self._write(oldest.row)

    def flush(self) -> None:
        """Writes all that is held; repeats of it that come later are still known as such."""
        if self._alone:
            self._several()
        for held in self._held:
            if not held.written:
                held.written = True
                self._write(held.row)


def _seconds_of(stamps: Sequence[str]) -> list[float]:
    """What `seconds_of` returns for each of many stamps, `2026-07-01T00:00:00`, that mostly share their minute."""
    minute, base, found = "", 0.0, []
    for stamp in stamps:
        if stamp[:-3] != minute:
            minute = stamp[:-3]
            base = seconds_of(f"{minute}:00") or 0.0
        found.append(base + int(stamp[-2:]))
    return found


def _is_over(then: float | None, then_number: int, now: float | None, number: int) -> bool:
    """Whether no rank will repeat any more what was said then."""
    if now is not None and then is not None:
        return not -WINDOW_S <= now - then <= WINDOW_S or number - then_number > _WINDOW_LINES * 8
    return number - then_number > _WINDOW_LINES
