"""Nothing measured is lost: dying servers, kill -9, Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

import psutil

from crossover.client import interpret

ROOT = Path(__file__).parents[2]


def wait_for(condition, timeout_s: float = 60.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def attempts(flow) -> list[dict]:
    return [json.loads(path.read_text()) for path in (flow.store.root / "attempts").glob("*/*/attempt.json")]


def in_second_cell(flow) -> bool:
    """Says whether a server has measured its first cell and is in the middle of the second."""
    for state in flow.store.root.glob("live/*/*/state.json"):
        with contextlib.suppress(OSError, ValueError):
            cells = json.loads(state.read_text())["timeline"]["cells"]
            if [cell["status"] for cell in cells] == ["ok", "running"]:
                return True
    return False


def slow(flow) -> None:
    """Makes the second cell last seconds, so that there is a middle of it."""
    flow.data["variants"].pop("sglang")
    flow.data["workloads"] = [
        {"dataset": "random", "input_tokens": 2000, "output_tokens": 60, "concurrency": 3, "requests": 6},
        {"dataset": "random", "input_tokens": 3000, "output_tokens": 20000, "concurrency": 3, "requests": 6},
    ]


def test_a_server_that_dies_midway_fails_its_cell_and_no_other(workflow) -> None:
    workflow.data["variants"]["sglang"]["launcher"]["faults"] = ["die-after-tokens=100"]
    workflow.run()
    assert len(workflow.store.keys("run")) == 2
    failed = attempts(workflow)
    assert failed
    assert all("server ended" in attempt["reason"] or "given up" in attempt["reason"] for attempt in failed)
    assert any(attempt["log_tail"] for attempt in failed)
    assert {attempt["failure"] for attempt in failed} <= {"cuda_error", "given_up"}
    page = workflow.page.read_text()
    assert "failed" in page
    assert failed[0]["reason"].split("(")[0].strip()[:40] in page
    # The next run tries the failed cells again, and those alone.
    jobs = workflow.jobs(workflow.run("-n"))
    assert "deployment_sglang" in jobs
    assert "deployment_vllm" not in jobs


def test_a_server_that_never_starts_is_a_result_too(workflow) -> None:
    workflow.data["variants"]["vllm"]["launcher"]["faults"] = ["exit-at-start"]
    output = workflow.run()
    assert "the server did not come up" in output
    assert len(workflow.store.keys("run")) == 2
    assert workflow.page.exists()


def test_kill_9_keeps_the_first_cell_and_the_rerun_measures_only_the_second(workflow) -> None:
    slow(workflow)
    process = workflow.start()
    wait_for(lambda: in_second_cell(workflow))
    servers = workflow.servers()
    assert servers
    for child in psutil.Process(process.pid).children(recursive=True):
        if child.pid not in servers and "crossover" in " ".join(child.cmdline()) and "deploy" in child.cmdline():
            child.kill()
    process.kill()
    process.wait()
    assert len(workflow.store.keys("run")) == 1
    workflow.data["workloads"][1]["output_tokens"] = 20000
    output = workflow.run()
    assert "1 of 2 cells missing" in output
    assert "left by a run that was killed" in output or workflow.servers() == []
    assert not any(psutil.pid_exists(pid) for pid in servers)
    assert len(workflow.store.keys("run")) == 2
    assert workflow.page.exists()


def test_ctrl_c_stops_the_server_and_waits_for_it(workflow) -> None:
    slow(workflow)
    process = workflow.start()
    wait_for(lambda: in_second_cell(workflow))
    servers = workflow.servers()
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=60)
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in servers), 30)
    assert len(workflow.store.keys("run")) == 1
    assert [attempt["reason"] for attempt in attempts(workflow)] == ["interrupted by SIGINT"]
    assert list(workflow.store.root.glob("live/*/*/state.json")) == []


def test_a_disk_that_is_full_when_a_measured_cell_is_stored_loses_nothing(workflow) -> None:
    workflow.data["variants"].pop("sglang")
    workflow.python_path = workflow.folder / "full" / "src"
    for part in ("src", "workflow"):
        shutil.copytree(ROOT / part, workflow.folder / "full" / part, ignore=shutil.ignore_patterns("__pycache__"))
    with (workflow.python_path / "crossover" / "deployment" / "logfile.py").open("a") as source:
        source.write('\n\ndef copy_parts(*_):\n    raise OSError(28, "No space left on device")\n')
    output = workflow.run(status=1)
    assert "crossover deploy: no room on the disk" in output
    assert "Traceback" not in output
    assert workflow.store.keys("run") == []
    # The first cell's recording is whole, and no second cell was measured for nothing.
    (attempt,) = (workflow.store.root / "attempts").glob("*/*/attempt.json")
    assert list(interpret(attempt.parent).requests["status"]) == ["ok"] * 6
    assert workflow.servers() == []
    workflow.python_path = None
    workflow.run()
    assert len(workflow.store.keys("run")) == 2
