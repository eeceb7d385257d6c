"""Samples the machine into a file until its starter is gone.

A program of its own, so that reading /proc and NVML never takes the interpreter from the recorder. A line on its
standard input asks for a sample at once, its closing for the end.

usage: python -m crossover.telemetry.sampler FILE INTERVAL_S CLIENT_PID SERVER_PID GPUS
       (SERVER_PID 0: the server is not a process of this machine; GPUS 0: they are not asked)
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from crossover.telemetry.gpus import Gpus, NoGpusError
from crossover.telemetry.processes import CpuClock, machine_cpu_s, machine_memory_gib, resident_gib, tree_of

NICENESS = 5  # the server and the recorder come first


class Sampler:
    """Takes samples of one client, one server and the machine around them."""

    def __init__(self, client_pid: int, server_pid: int | None, gpus: Gpus | None) -> None:
        self._client, self._server = _process(client_pid), _process(server_pid)
        self._client_clock, self._server_clock = CpuClock(), CpuClock()
        self._gpus = gpus

    def sample(self) -> dict[str, Any]:
        """Returns one row of telemetry.parquet; the server's figures are None where it is no process here or is
        gone."""
        t_ns = time.time_ns()
        server = tree_of(self._server)
        server_pids = {process.pid for process in server}
        # A local server is a child of the client's; neither it nor this program is the client.
        client = tree_of(self._client, server_pids | {os.getpid()})
        row: dict[str, Any] = {
            "t_ns": t_ns,
            "client_cpu_s": self._client_clock.advance(client),
            "client_memory_gib": resident_gib(client),
            "server_cpu_s": self._server_clock.advance(server) if server else None,
            "server_memory_gib": resident_gib(server) if server else None,
            "server_processes": len(server) if server else None,
            "machine_cpu_s": machine_cpu_s(),
            "machine_memory_gib": machine_memory_gib(),
        }
        return row if self._gpus is None else row | self._gpus.read(server_pids)


def _process(pid: int | None) -> psutil.Process | None:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid) if pid else None
    return None


def open_gpus(wanted: bool) -> tuple[Gpus | None, str | None]:
    """Returns the GPUs, or None and why there are no figures of them."""
    if not wanted:
        return None, "the server does not run on this machine's GPUs"
    try:
        return Gpus(), None
    except NoGpusError as error:
        return None, str(error)


def main(argv: list[str]) -> int:
    """Writes a header line, then a line a sample; returns 0."""
    file, interval_s, client_pid, server_pid, with_gpus = argv
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    gpus, why_not = open_gpus(with_gpus != "0")
    header = {
        "interval_s": float(interval_s),
        "cpu_count": psutil.cpu_count(),
        "memory_gib": psutil.virtual_memory().total / 2**30,
        "server_is_local": server_pid != "0",
        "gpus": gpus.describe() if gpus else [],
        "no_gpus": why_not,
    }
    sampler = Sampler(int(client_pid), int(server_pid), gpus)
    with Path(file).open("a", buffering=1) as out:
        out.write(json.dumps(header) + "\n")
        due = time.monotonic()
        while True:
            out.write(json.dumps(sampler.sample()) + "\n")
            due = max(due + float(interval_s), time.monotonic())
            if _wait(due) == "end":
                out.write(json.dumps(sampler.sample()) + "\n")
                return 0


def _wait(until: float) -> str:
    """Returns when the next sample is due ("due"), asked for ("asked"), or the last one ("end")."""
    if not select.select([0], [], [], max(0.0, until - time.monotonic()))[0]:
        return "due"
    return "asked" if os.read(0, 4096) else "end"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
