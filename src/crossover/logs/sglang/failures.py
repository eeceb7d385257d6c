"""What ends an SGLang server, or keeps it from starting: crashes, failed warm-ups, no memory for the pool."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.crash import remember_error
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.sglang.events import died, new_event, warn
from crossover.logs.table import LineKind, kind

_NO_PROXY = "set no_proxy=127.0.0.1,localhost,0.0.0.0: the server's request to itself went through a proxy"
_BY_PROXY = ("407", "502", "503", "504")


def _exception(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """An exception that reaches the loop of a process ends the server; 0.3 prints its traceback without a word."""
    if match[0].startswith("Traceback") and not line.rank:
        return False
    if new_event(builder, line, Kind.SCHEDULER_EXCEPTION):
        builder.incidents.add(Kind.SCHEDULER_EXCEPTION, line)
    died(builder, line, match)
    return True


def _stopped(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Somebody asked the server to end, so that its processes end is no failure."""
    builder.dead = True


def _never_started(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """An exception that ends the launching process itself. Once the server is up, an interrupt looks the same."""
    if not builder.ready_seen and not builder.dead:
        builder.incidents.add(Kind.ENGINE_DIED, line, message="the launching process ended with an exception.")
        builder.dead = True


def _killed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """SIGKILL, as the shell or the parent tells it. A server that failed kills its own processes: alone it counts."""
    own = builder.incidents.has(Kind.SCHEDULER_EXCEPTION) if match[0].startswith("Exit") else builder.dead
    if not own:
        builder.incidents.add(Kind.KILLED, line)
    builder.dead = True


def _bare_error(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The last line of a traceback whose error has no text: it may be the root cause of what comes."""
    if builder.shared is not None:
        remember_error(builder.shared, line, match[0])


def _warmup_failed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.not_ready()
    builder.dead = True
    builder.incidents.add(
        Kind.WARMUP_FAILED,
        line,
        advice=f"check the error below this line; if it is a 502 or a refused connection, {_NO_PROXY}",
    )


def _warmup_status(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The answer that the server's request to itself got; who gives it says what went wrong."""
    if not builder.incidents.has(Kind.WARMUP_FAILED):
        return
    cause = f" (a proxy answered: {_NO_PROXY})" if match[1] in _BY_PROXY else " (the server itself failed: see above)"
    builder.incidents.refine(
        Kind.WARMUP_FAILED, f"Initialization failed. warmup error: the request to itself got HTTP {match[1]}{cause}"
    )


def _router_gave_up(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.incidents.add(
        Kind.START_TIMEOUT,
        line,
        advice="raise the router's worker-startup-timeout-secs, or look why the servers behind it do not start",
        repeats=False,
    )


def _no_memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The engine's suggestion is checked: a fraction of the memory is between 0 and 1."""
    if not new_event(builder, line, Kind.KV_TOO_SMALL):
        return
    suggested = re.search(r"Raise --mem-fraction-static above (-?\d+(?:\.\d+)?)", line.text)
    advice = "weights leave no room for the token pool: raise --mem-fraction-static, or use more GPUs"
    if suggested and not 0 < float(suggested[1]) < 1:
        builder.incidents.add(
            Kind.KV_SUGGESTION_WRONG, line, message=f"--mem-fraction-static above {suggested[1]} is no fraction of 1"
        )
    elif suggested:
        advice = f"raise --mem-fraction-static above {suggested[1]}, as the engine says, or use more GPUs"
    builder.incidents.add(Kind.KV_TOO_SMALL, line, advice=advice)


_ROOM = re.compile(r"bootstrap_room=(\d{1,20})\b")
_ROOMS = 4096


def _transfer_failed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A request counts once: all ranks of a server tell of it, and so does the answer that it gets."""
    room = _ROOM.search(line.text)
    if room is None:
        if new_event(builder, line, Kind.KV_TRANSFER_FAILED):
            builder.incidents.add(Kind.KV_TRANSFER_FAILED, line)
        return
    seen: dict[str, None] = builder.facts.setdefault("sglang_rooms", {})
    if room[1] not in seen:
        seen[room[1]] = None
        builder.incidents.add(Kind.KV_TRANSFER_FAILED, line)
    if len(seen) > _ROOMS:
        del seen[next(iter(seen))]


_TRANSFER = (
    r"(?:(?:Prefill|Decode) (?:transfer|bootstrap|handshake) failed for request|(?:Losing|Lost) connection with prefill"
    r"|KVTransferError\(|instance,? (?:it might|could) be dead|Some requests (?:timed out when bootstrapping"
    r"|fail to receive KV Cache transfer done))"
)

KINDS: tuple[LineKind, ...] = (
    kind(
        "exception",
        (
            "hit an exception",
            "Exception in ControllerSingle",
            "Exception in ControllerMulti",
            "Exception in ModelTpServer",
            "Exception in run_tp_server",
            "] Traceback (most recent call last):",
            "crashed: ",
        ),
        r"\b(?!EngineCore|WorkerProc)\w+ hit an exception"
        r"|Exception in (?:Controller(?:Single|Multi)|ModelTpServer|run_tp_server)"
        r"|(?<=\d\] )Traceback \(most recent call last\):|Scheduler PP\d+ TP\d+ crashed: ",
        _exception,
        figure=False,
    ),
    kind(
        "stopped",
        ("SIGTERM received. signum", "crashed with exit code -15"),
        r"SIGTERM received\. signum|crashed with exit code -15\b",
        _stopped,
        figure=False,
        joins=False,
    ),
    kind(
        "child_died",
        (
            "eceived sigquit from a child proces",
            "SIGQUIT received. signum",
            "Received SIGQUIT from scheduler",
            "scheduler is dead. Please check",
            "crashed with exit code",
            "unexpectedly failed with an exit code",
            "unexpectedly failed with exitcode",
            " terminated with ",
            "(core dumped)",
            "Memory access fault by GPU",
        ),
        r"[Rr]eceived sigquit from a child proces|SIGQUIT received\. signum|Received SIGQUIT from scheduler"
        r"|scheduler is dead\. Please check|crashed with exit code (?!-15\b)"
        r"|unexpectedly failed with (?:an )?exit ?code"
        r"|(?:Scheduler or )?DataParallelController \d{1,9} terminated with -?[1-9]"
        r"|Aborted \(core dumped\)|Memory access fault by GPU",
        died,
        figure=False,
        joins=False,
    ),
    kind(
        "never_started",
        ('launch_server.py", line ', 'bin/sglang", line '),
        r'(?:/sglang/launch_server\.py|bin/sglang)", line \d+, in <module>',
        _never_started,
        figure=False,
        joins=False,
    ),
    kind(
        "killed",
        ("Killed", "已杀死", "Exit code: -9", " exited with code 137"),
        r"(?:^|[^A-Za-z,.'\"] +|[:>]|std(?:out|err) [FP] )(?:Killed|已杀死)\s*$|line \d+: +\d{1,9} Killed\b"
        r"|Exit code: -9\b| exited with code 137\b",
        _killed,
        figure=False,
        joins=False,
    ),
    kind(
        "bare_error",
        ("AssertionError", "NotImplementedError", "RuntimeError", "KeyError", "EOFError", "TimeoutError"),
        r"(?<![\w.'\"(/])(?:\w{1,40}\.){0,4}(?:Assertion|NotImplemented|Runtime|Key|EOF|Timeout)Error\s*$",
        _bare_error,
        figure=False,
        joins=False,
    ),
    kind(
        "port_in_use_at_start",
        ("Port is already in use. dist_init_port", " is not available in "),
        r"Port is already in use\. dist_init_port|\w+ at \d{1,5} is not available in \d",
        warn(Kind.PORT_IN_USE),
        figure=False,
    ),
    kind(
        "warmup_failed",
        (
            "Initialization failed. warmup error",
            "warm Up Failed",
            "Disaggregation warmup failed",
            "warmup request returned error",
        ),
        r"Initialization failed\. warmup error|Prefill disaggregation mode warm Up Failed"
        r"|Disaggregation warmup failed|gRPC warmup request returned error",
        _warmup_failed,
        figure=False,
    ),
    kind(
        "warmup_status",
        "res=<Response [",
        r"AssertionError: res=<Response \[(\d{3})\]>",
        _warmup_status,
        figure=False,
        joins=False,
    ),
    kind(
        "health_check",
        ("Health check failed. Server couldn't get a response", "Health check timeout after"),
        r"Health check (?:failed\. Server couldn't get a response|timeout after \d)",
        warn(Kind.HEALTH_CHECK_FAILED),
        figure=False,
    ),
    kind(
        "watchdog",
        ("Watchdog timeout (", "watchdog timeout (", "Watchdog Timeout"),
        r"[Ww]atchdog [Tt]imeout(?![^\n]{0,80}self\.soft=True)",
        warn(
            Kind.STALLED,
            severity=Severity.ERROR,
            advice="a forward pass did not end in time: look at what all ranks did last",
        ),
        figure=False,
    ),
    kind(
        "soft_watchdog",
        "self.soft=True",
        r"[Ww]atchdog [Tt]imeout[^\n]{0,80}self\.soft=True",
        warn(
            Kind.STALLED,
            severity=Severity.WARNING,
            advice="a step took longer than the soft limit; nothing was ended: exclude the requests that overlap",
            key="soft",
        ),
        figure=False,
    ),
    kind(
        "no_memory_for_pool",
        (
            "Not enough memory. Please try to increase --mem-fraction-static",
            "leave no GPU memory for the KV cache",
            "Not enough GPU memory for hybrid",
            "state cache is too small to serve",
            "leaves no room for the full KV pool",
        ),
        r"(?<![\"'])(?:Not enough memory\. Please try to increase --mem-fraction-static"  # quoted: source text
        r"|Loaded weights leave no GPU memory|Not enough GPU memory for hybrid"
        r"|state cache is too small to serve|leaves no room for the full KV pool)",
        _no_memory,
        figure=False,
        joins=False,
    ),
    kind(
        "gpu_occupied",
        "The memory capacity is unbalanced",
        r"The memory capacity is unbalanced",
        warn(Kind.GPU_OCCUPIED),
        figure=False,
    ),
    kind(
        "start_timeout",
        ("Weights are not ready after waiting", "Timeout waiting for worker ports"),
        r"Weights are not ready after waiting|Timeout waiting for worker ports",
        warn(Kind.START_TIMEOUT),
        figure=False,
        joins=False,
    ),
    kind(
        "router_gave_up",
        "s waiting for workers to become healthy",
        r"Timeout \d{1,6}s waiting for workers to become healthy",
        _router_gave_up,
        figure=False,
        joins=False,
    ),
    kind(
        "transfer_failed",
        (
            "failed for request",
            "connection with prefill",
            "KVTransferError(",
            " be dead",
            "timed out when bootstrapping",
            "transfer done signal",
        ),
        _TRANSFER,
        _transfer_failed,
        figure=False,
        joins=False,
    ),
    kind(
        "leak",
        ("memory leak detected", "pool leak detected"),
        r"(?:memory|pool) leak detected",
        warn(
            Kind.STALLED,
            severity=Severity.ERROR,
            advice="the pool's books do not close: the server ends itself; report it with the version",
        ),
        figure=False,
    ),
)
