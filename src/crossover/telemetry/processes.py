"""CPU time and memory of process trees."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable

import psutil

GIB = 2**30


def tree_of(root: psutil.Process | None, without: Collection[int] = ()) -> list[psutil.Process]:
    """Returns a process and all below it; none when it is gone.

    Args:
        root: the process, None where it is not known.
        without: ids of processes to leave out.
    """
    if root is None:
        return []
    with contextlib.suppress(psutil.Error):
        # `is_running` compares start times, so that an id given to somebody else later is not followed.
        if root.is_running():
            return [process for process in (root, *root.children(recursive=True)) if process.pid not in without]
    return []


def resident_gib(processes: Iterable[psutil.Process]) -> float:
    """Returns the resident memory of processes in GiB.

    Pages that several processes share count once for each: telling them apart walks every page table of the server,
    which would hold it up while it is measured.
    """
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total / GIB


class CpuClock:
    """CPU seconds of a changing set of processes, counted from the first reading on."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, float], float] = {}
        self._total_s = 0.0
        self._began = False

    def advance(self, processes: Iterable[psutil.Process]) -> float:
        """Returns the CPU seconds so far, which never go back.

        A process that is new since the last reading counts from its own start; what one used between the last
        reading and its end is lost.
        """
        now: dict[tuple[int, float], float] = {}
        for process in processes:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                now[process.pid, process.create_time()] = times.user + times.system
        if self._began:
            self._total_s += sum(max(0.0, used - self._last.get(which, 0.0)) for which, used in now.items())
        self._last, self._began = now, True
        return self._total_s


def machine_cpu_s() -> float:
    """Returns the CPU seconds that this machine has spent on anything since it started, waiting left out."""
    times = psutil.cpu_times()
    extra = (getattr(times, name, 0.0) for name in ("nice", "irq", "softirq"))
    return times.user + times.system + sum(extra)


def machine_memory_gib() -> float:
    """Returns the memory of this machine that is not available, in GiB."""
    memory = psutil.virtual_memory()
    return (memory.total - memory.available) / GIB
