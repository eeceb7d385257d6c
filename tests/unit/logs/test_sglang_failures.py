"""Failures of SGLang's start and deaths of its server: kind, cause and advice; lines stand as the engine prints them."""

# ruff: noqa: E501 (lines stand as the engine prints them)

from __future__ import annotations

import pytest

from crossover.logs import read_log
from crossover.logs.model import Incident

AT = "[2026-08-10 06:00:01 TP0] "


def incidents_of(*lines: str) -> list[Incident]:
    return list(read_log(lines, "sglang").incidents)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Scheduler or DataParallelController 4121 terminated with -9", "engine_died"),
        ("Child process unexpectedly failed with exitcode=-11. pid=77", "engine_died"),
        ("Memory access fault by GPU node-3 (Agent handle: 0x55e0) on address 0x7f00. Reason: Unknown.", "engine_died"),
        ("Prefill disaggregation mode warm Up Failed, status code: 500", "warmup_failed"),
        ("Disaggregation warmup failed (mode=prefill), status codes: [503]", "warmup_failed"),
        ("Weights are not ready after waiting 120 seconds. Consider increasing SGLANG_WAIT", "start_timeout"),
        ("RuntimeError: NCCL port at 30005 is not available in 30 seconds. ", "port_in_use"),
        ("RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache.", "kv_too_small"),
        ("Decode handshake failed for request rank=0 decode_req.req.rid='x'", "kv_transfer_failed"),
        ("Losing connection with prefill instance (bootstrap_addr: 10.0.0.2:8998), 4 requests", "kv_transfer_failed"),
        ("KV cache pool leak detected!", "stalled"),
        ("Failed to create router: Timeout 600s waiting for workers to become healthy", "start_timeout"),
        ("Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", "stalled"),
    ],
)
def test_each_wording_is_one_incident_of_its_kind(line: str, kind: str) -> None:
    assert [(item.kind, item.count) for item in incidents_of(AT + line)] == [(kind, 1)]


@pytest.mark.parametrize(
    "line",
    [
        "Scheduler or DataParallelController 4121 terminated with 0",
        "Attach HiCache storage backend failed for request 12",
        "INFO:     10.0.0.1:5 - client Killed its request",
        "[2026-08-10 06:00:01] Traceback (most recent call last):",
    ],
)
def test_what_only_sounds_alike_is_no_incident(line: str) -> None:
    assert incidents_of(line) == []


def test_suggested_fraction_becomes_the_advice() -> None:
    line = (
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.88. "
        "Raise --mem-fraction-static above {} (minimum viable = 1 - available/pre = 0.9467)."
    )
    (good,) = incidents_of(line.format("0.947"))
    assert good.kind == "kv_too_small"
    assert "above 0.947, as the engine says" in good.advice
    wrong = incidents_of(line.format("1.034"))
    assert [item.kind for item in wrong] == ["kv_suggestion_wrong", "kv_too_small"]
    assert "1.034" not in wrong[1].advice


def test_traceback_of_a_rank_in_0_3_is_its_death() -> None:
    """0.3 prints the traceback of a scheduler without a word before it."""
    found = incidents_of(
        "[2024-10-22 06:31:49 TP12] Traceback (most recent call last):",
        '  File "/opt/sglang/srt/model_executor/cuda_graph_runner.py", line 162, in __init__',
        "RuntimeError: Plan failed",
    )
    assert [item.kind for item in found] == ["scheduler_exception", "engine_died"]
    assert "Plan failed" in found[1].message


def test_error_without_a_text_is_a_cause_too() -> None:
    found = incidents_of(
        AT + "Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/opt/sglang/srt/managers/scheduler.py", line 387, in event_loop_normal',
        "    assert self.chunked_req is None",
        "AssertionError",
        "",
    )
    assert "Root cause: AssertionError" in found[0].message


@pytest.mark.parametrize(
    "word",
    [
        "Killed",
        "已杀死",
        "sglang-1  | Killed",
        "sglang-1 exited with code 137",
        "2025-03-03T06:49:29.123456789Z stdout F Killed",
        "Mar 03 06:49:29 gpu-7 sglang[12]: Killed",
        "/bin/bash: line 1:    12 Killed                  python3 -m sglang.launch_server",
    ],
)
def test_killed_counts_where_nothing_failed_before(word: str) -> None:
    begin = "[2025-03-03 06:49:28 TP5] Load weight begin. avail mem=78.41 GB"
    assert [item.kind for item in incidents_of(begin, word)] == ["killed"]
    died = incidents_of(begin, AT + "Scheduler hit an exception: Traceback (most recent call last):", word)
    assert [item.kind for item in died] == ["scheduler_exception", "engine_died"]


def test_exit_code_of_a_dead_scheduler_tells_who_ended_it() -> None:
    """-9 without an exception is the host's work; after an exception it is the server's own cleaning up."""
    lines = ("Rank 0 scheduler is dead. Please check if there are relevant logs.", "Exit code: -9")
    assert [item.kind for item in incidents_of(*(AT + line for line in lines))] == ["engine_died", "killed"]
    failed = AT + "Scheduler hit an exception: Traceback (most recent call last):"
    kinds = [item.kind for item in incidents_of(failed, *(AT + line for line in lines))]
    assert kinds == ["scheduler_exception", "engine_died"]


@pytest.mark.parametrize(("status", "part"), [(502, "a proxy answered"), (500, "the server itself failed")])
def test_status_of_the_warmup_request_says_who_failed(status: int, part: str) -> None:
    (incident,) = incidents_of(
        AT + "Initialization failed. warmup error: Traceback (most recent call last):",
        '    assert res.status_code == 200, f"{res=}, {res.text=}"',
        f"AssertionError: res=<Response [{status}]>, res.text=''",
    )
    assert incident.kind == "warmup_failed"
    assert f"HTTP {status}" in incident.message
    assert part in incident.message


LAUNCH = (
    "Traceback (most recent call last):",
    '  File "/usr/lib/python3.12/site-packages/sglang/launch_server.py", line 30, in <module>',
    "    run_server(server_args)",
    '  File "/usr/lib/python3.12/site-packages/sglang/srt/server_args.py", line 901, in check_server_args',
    "    raise ValueError(",
    "ValueError: Unknown tokenizer mode slow2",
)


def test_launch_that_fails_before_there_is_a_scheduler() -> None:
    incident = incidents_of(*LAUNCH)[0]
    assert incident.kind == "engine_died"
    assert "Unknown tokenizer mode slow2" in incident.message


def test_interrupt_of_a_server_that_was_up_is_no_death() -> None:
    ready = "[2026-08-10 06:00:01] The server is fired up and ready to roll!"
    assert incidents_of(ready, *LAUNCH[:3], "KeyboardInterrupt") == []
    assert [item.kind for item in incidents_of(*LAUNCH[:3], "KeyboardInterrupt")] == ["engine_died"]


def test_source_text_in_a_traceback_is_not_the_error() -> None:
    found = incidents_of(
        '    raise RuntimeError(f"NCCL error: {error_str}")',
        "RuntimeError: NCCL error: remote process exited or there was a network error",
        '        "Not enough memory. Please try to increase --mem-fraction-static."',
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
    )
    assert [(item.kind, item.count, item.message.split(":")[0]) for item in found] == [
        ("nccl_error", 1, "RuntimeError"),
        ("kv_too_small", 1, "RuntimeError"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Bind for 0.0.0.0:30000 failed: port is already allocated.",
        "RuntimeError: Port 30000 is already in use by process 4242",
    ],
)
def test_port_that_is_taken(line: str) -> None:
    (found,) = incidents_of("[2026-08-10 06:00:01] server_args=ServerArgs(model_path='m', port=30000)", line)
    assert (found.kind, found.message) == ("port_in_use", "port 30000 is in use")


@pytest.mark.parametrize(
    "line",
    [
        "/opt/torchvision/io/image.py:14: UserWarning: Failed to load image Python extension: 'image.so: undefined symbol: _ZN3c1'",
        "Ignore import error when loading sglang.srt.models.x: libavutil.so.58: cannot open shared object file",
        "Failed to import flash_mla: ModuleNotFoundError: No module named 'flash_mla'",
    ],
)
def test_import_that_the_engine_does_without_is_no_failure(line: str) -> None:
    ready = "[2026-08-10 06:00:09] The server is fired up and ready to roll!"
    report = read_log([line, AT + "Load weight begin. avail mem=78.50 GB", AT + line, ready], "sglang")
    assert report.startup.ready_seen
    assert not list(report.incidents)


ENDED = (
    "[2026-08-02 00:17:43] SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
    "[2026-08-02 00:17:43] Subprocess detokenizer (pid=31379) crashed with exit code -15. Triggering SIGQUIT for cleanup...",
    "[2026-08-02 00:17:43] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
)


def test_server_that_was_asked_to_end_did_not_die() -> None:
    assert incidents_of(*ENDED) == []
    assert incidents_of(*ENDED[1:]) == []


def test_the_next_server_of_the_log_may_die() -> None:
    begun = (
        "[2026-08-02 00:20:00] server_args=ServerArgs(model_path='/m', tp_size=1)",
        "[2026-08-02 00:20:09] Load weight begin. avail mem=78.00 GB",
    )
    died = "[2026-08-02 00:21:00] Subprocess scheduler_0 (pid=8) crashed with exit code -11. Triggering SIGQUIT for cleanup..."
    assert [item.kind for item in incidents_of(*ENDED, *begun, died)] == ["engine_died"]


def test_a_request_whose_transfer_failed_on_all_ranks_is_one() -> None:
    """Two requests (bootstrap rooms), told by three ranks each, and by the answer of the first."""
    lines = [
        f"[2026-02-26 15:09:35 TP{rank}] Prefill transfer failed for request rank={rank} req.rid='{rid}' req.bootstrap_room={room} "
        f"with exception KVTransferError(bootstrap_room={room}): Decode instance could be dead, remote mooncake session is not alive"
        for rid, room in (("eb1764", 804716023469713517), ("5ef450", 6989861766352545488))
        for rank in (5, 4, 1)
    ]
    answer = "[2026-02-26 15:09:35] KVTransferError(bootstrap_room=804716023469713517): Decode instance could be dead"
    assert [(item.kind, item.count) for item in incidents_of(*lines, answer)] == [("kv_transfer_failed", 2)]


@pytest.mark.parametrize(("soft", "severity"), [("True", "warning"), ("False", "error")])
def test_soft_watchdog_ends_nothing(soft: str, severity: str) -> None:
    lines = [
        f"[2026-08-10 06:00:01 TP{rank}] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft={soft})"
        for rank in (0, 1)
    ]
    assert [(item.kind, item.severity, item.count) for item in incidents_of(*lines)] == [("stalled", severity, 1)]
