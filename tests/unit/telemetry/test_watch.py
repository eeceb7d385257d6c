"""The sampling process: real processes, what it writes, and that it never outlives its starter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from crossover.deployment.clock import now
from crossover.telemetry import MachineWatch, to_parquet
from crossover.telemetry.processes import CpuClock
from crossover.telemetry.table import LINES, read_lines, read_parquet

BUSY = "import time\nend = time.monotonic() + 60\nhoard = b'x' * (64 << 20)\nwhile time.monotonic() < end: pass"


@pytest.fixture
def busy():
    """A shell whose child keeps one processor busy and holds 64 MiB."""
    shell = subprocess.Popen(["sh", "-c", f'{sys.executable} -c "{BUSY}"; true'], start_new_session=True)
    yield shell
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()


def wait_for_samples(folder, count):
    deadline = time.monotonic() + 20
    while len(read_lines(folder / LINES)[1]) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_window_tells_the_server_from_the_client(busy, tmp_path):
    watch = MachineWatch(tmp_path, busy.pid, with_gpus=False, interval_s=0.3)
    try:
        wait_for_samples(tmp_path, 1)
        watch.mark()
        start = now()
        time.sleep(1.2)
        end = now()
        watch.mark()
        found = watch.summary(start, end)
    finally:
        watch.close()
    assert found["covered_s"] == pytest.approx(found["window_s"], abs=0.2)
    # One loop is at most one core; how much of it the machine grants depends on its other users.
    assert 0.05 < found["server"]["cpu_cores"]["mean"] < 1.3
    assert found["server"]["memory_gib"]["max"] > 64 / 1024
    assert found["server"]["processes"]["max"] == 2
    assert found["client"]["cpu_cores"]["mean"] < found["server"]["cpu_cores"]["mean"]
    assert found["missing"] == ["no GPU figures: the server does not run on this machine's GPUs"]

    assert to_parquet(tmp_path, tmp_path / "telemetry.parquet")
    header, samples = read_parquet(tmp_path / "telemetry.parquet")
    assert header["interval_s"] == 0.3
    assert samples["t_ns"].is_monotonic_increasing
    assert len(samples) >= 5


def test_a_mark_is_written_before_it_returns(tmp_path):
    watch = MachineWatch(tmp_path, None, with_gpus=False, interval_s=60)
    try:
        wait_for_samples(tmp_path, 1)
        before = time.time_ns()
        watch.mark()
        _, samples = read_lines(tmp_path / LINES)
        assert samples["t_ns"].iloc[-1] >= before
        assert samples["server_cpu_s"].isna().all()
    finally:
        watch.close()


def test_a_sampler_that_died_costs_figures_and_says_so(tmp_path):
    watch = MachineWatch(tmp_path, None, with_gpus=False)
    wait_for_samples(tmp_path, 1)
    watch._process.kill()
    watch._process.wait()
    watch.mark()
    start = now()
    found = watch.summary(start, now())
    watch.close()
    assert found["missing"][-1] == "the sampling process has ended (status -9)"


def test_it_ends_when_its_starter_is_killed(tmp_path):
    program = (
        "import sys, time; from pathlib import Path; from crossover.telemetry import MachineWatch\n"
        "watch = MachineWatch(Path(sys.argv[1]), None, with_gpus=False)\n"
        "print(watch._process.pid, flush=True); time.sleep(60)"
    )
    starter = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    sampler = psutil.Process(int(starter.stdout.readline()))
    wait_for_samples(tmp_path, 1)
    starter.kill()
    starter.communicate()
    psutil.wait_procs([sampler], timeout=10)
    assert not sampler.is_running() or sampler.status() == psutil.STATUS_ZOMBIE


def test_a_torn_last_line_is_left_out(tmp_path):
    (tmp_path / LINES).write_text('{"interval_s": 1.0}\n{"t_ns": 1}\n{"t_ns": 2')
    header, samples = read_lines(tmp_path / LINES)
    assert header == {"interval_s": 1.0}
    assert list(samples["t_ns"]) == [1]
    assert not to_parquet(tmp_path / "absent", tmp_path / "none.parquet")


class Made:
    def __init__(self, pid, seconds):
        self.pid, self.seconds = pid, seconds

    def cpu_times(self):
        return type("Times", (), {"user": self.seconds, "system": 0.0})

    def create_time(self):
        return 1.0


def test_cpu_time_of_a_changing_set_of_processes_never_goes_back():
    clock = CpuClock()
    assert clock.advance([Made(1, 50.0)]) == 0.0  # what was used before counts for nothing
    assert clock.advance([Made(1, 51.0), Made(2, 3.0)]) == 4.0  # 1 more, and a new one with all its 3
    assert clock.advance([Made(2, 3.5)]) == 4.5  # one is gone, which takes nothing away
