"""What a reader gathers while it goes through a log; the report is made from it, at the end or on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from crossover.logs.incidents import IncidentLog
from crossover.logs.lines import Line
from crossover.logs.model import DecodeBatch, Interval, MemoryItem, Pool, PrefillBatch, Rank, Speculation
from crossover.logs.spool import Spool


class Builder:
    """The facts of one engine's log so far. One server start at a time: `new_start` forgets the one before.

    Start-up facts are kept per rank (any hashable label), and put together by `startup.assemble`:
    durations and sizes as the largest, capacities as the smallest.
    """

    def __init__(self, engine: str | None) -> None:
        self.engine = engine
        self.shared: Builder | None = None  # where the rows that all engines share report to
        self.votes = 0  # statements with a figure: no other engine words them so
        self.hints = 0  # all statements understood
        self.lines_seen = 0
        self.clock_engine = 0
        self.clock_outer = 0
        self.intervals: Spool[Interval] = Spool(Interval)
        self.prefill_batches: Spool[PrefillBatch] = Spool(PrefillBatch)
        self.decode_batches: Spool[DecodeBatch] = Spool(DecodeBatch)
        self.speculation: Spool[Speculation] = Spool(Speculation)
        self.incidents = IncidentLog()
        self.version: str | None = None
        self.evidence: dict[str, list[str]] = {}
        self.facts: dict[str, Any] = {}
        self._reset_start()

    def _reset_start(self) -> None:
        self.per_rank: dict[str, dict[Any, Any]] = {}
        self.summed: dict[str, dict[Any, Counter[str]]] = {}
        self.single: dict[str, Any] = {}
        self.pools: dict[str, dict[Any, Pool]] = {}
        self.memory: dict[tuple[str, Any], MemoryItem] = {}
        self.config: dict[str, Any] = {}
        self.raw: dict[str, Any] = {}
        self.ready_seen = False
        self.dead = False

    def new_start(self) -> None:
        """A server starts: if an earlier one was ready or dead, its start-up facts go, its records stay."""
        both = [self, *([self.shared] if self.shared else [])]
        if any(one.ready_seen or one.dead for one in both):
            for one in both:
                one._reset_start()

    def heard(self, line: Line) -> None:
        """Counts whose clock a statement carries."""
        head = line.head
        if head.t is not None:
            if head.t == head.t_outer:
                self.clock_outer += 1
            else:
                self.clock_engine += 1

    def settle(self) -> None:
        """Sends rows to disk where there are many."""
        for spool in (self.intervals, self.speculation, self.prefill_batches, self.decode_batches):
            spool.settle()

    # -- start-up -----------------------------------------------------------------------------------------

    def set(self, name: str, value: Any) -> None:
        """A fact that is the same for all ranks; the last statement counts."""
        self.single[name] = value

    def set_first(self, name: str, value: Any) -> None:
        """A fact that is the same for all ranks; the first statement counts."""
        self.single.setdefault(name, value)

    def at_rank(self, name: str, line: Line, value: float) -> None:
        """A figure of one rank: the largest that this rank states."""
        values = self.per_rank.setdefault(name, {})
        label = rank_label(line)
        values[label] = max(value, values.get(label, value))

    def binding_at_rank(self, name: str, line: Line, value: float) -> None:
        """A capacity of one rank: the smallest that this rank states."""
        values = self.per_rank.setdefault(name, {})
        label = rank_label(line)
        values[label] = min(value, values.get(label, value))

    def add_at_rank(self, name: str, line: Line, part: str, value: float) -> None:
        """A figure that one rank states in parts (phases of a capture): parts of a rank add up, ranks do not.

        The same part stated again by the same rank counts once, with its larger value.
        """
        parts = self.summed.setdefault(name, {}).setdefault(rank_label(line), Counter())
        parts[part] = max(value, parts.get(part, value))  # type: ignore[assignment]

    def longest(self, name: str) -> float | None:
        """The largest over the ranks of a figure from `at_rank`, or of the sums from `add_at_rank`."""
        values = list(self.per_rank.get(name, {}).values())
        values += [round(sum(parts.values()), 6) for parts in self.summed.get(name, {}).values()]
        return max(values) if values else None

    def smallest(self, name: str) -> float | None:
        """The smallest over the ranks of a figure given by `at_rank`."""
        values = self.per_rank.get(name)
        return min(values.values()) if values else None

    def add_memory(self, line: Line, item: str, gib: float) -> None:
        """One item of the memory waterfall of one rank; a later statement of the same rank counts."""
        rank: Rank | None = line.rank
        self.memory[item, rank_label(line)] = MemoryItem(item, gib, rank)

    def configure(self, names: Mapping[str, Any]) -> None:
        """Effective configuration under the common names; later statements are nearer to the truth."""
        self.config.update(names)

    def note(self, name: str, line: Line) -> None:
        """Keeps a line as evidence for the diagnoses, at most eight under one name."""
        self.keep(name, line.message)

    def keep(self, name: str, text: str) -> None:
        """Keeps a text as evidence, at most eight under one name."""
        kept = self.evidence.setdefault(name, [])
        if len(kept) < 8 and text not in kept:
            kept.append(text)

    def ready(self, line: Line) -> None:
        """The server said that it is ready."""
        self.ready_seen = True
        self.single["ready"] = line.t

    def not_ready(self) -> None:
        """What looked like ready was not (the port was taken, the warm-up failed)."""
        self.ready_seen = False
        self.single["ready"] = None


def rank_label(line: Line) -> Any:
    """Returns what tells ranks apart: the ranks of the prefix, or the process."""
    rank, pid = line.rank, line.head.pid
    return tuple(sorted(rank.items())) if rank else (line.process, pid) if pid else None
