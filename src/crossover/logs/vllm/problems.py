"""What goes wrong in vLLM while it runs or starts, other than what does not fit (see `limits`)."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.crash import engine_died, remember_error
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.table import kind
from crossover.logs.vllm.changes import event

_KERNELS = 20  # named in a message at most


def preempted(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """V0 prints every fiftieth preemption, with the number since the start: the line stands for those since then."""
    total = re.search(r"total_num_cumulative_preemption=(\d{1,12})\b", line.text)
    before = builder.facts.get("preemptions", 0)
    count = 1
    if total:
        builder.facts["preemptions"] = int(total[1])
        count = max(int(total[1]) - before, 1) if int(total[1]) > before else 1
    builder.incidents.add(Kind.PREEMPTION, line, count=count)


def jit(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A kernel was compiled while requests ran; each rank compiles its own, so the busiest rank counts."""
    before = len(builder.incidents)
    builder.incidents.add(Kind.JIT_COMPILE, line, rank=rank_label(line))
    kernels: list[str] = builder.facts.setdefault("jit_kernels", [])
    if len(builder.incidents) > before:
        kernels.clear()
    name = match[1].rstrip(".:")
    if name not in kernels and len(kernels) < _KERNELS:
        kernels.append(name)
    builder.incidents.refine(Kind.JIT_COMPILE, f"JIT compilation during inference: {', '.join(kernels)}")


def stalled(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A worker did not answer for a minute: at the start, it may be compiling or preparing weights."""
    builder.incidents.add(Kind.STALLED, line, key="" if _serves(builder) else "start", rank=rank_label(line))


def iteration_timeout(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """V0's watch over its own steps: no step ended within a minute; the server ends with it."""
    builder.incidents.add(Kind.STALLED, line, severity=Severity.ERROR, key="iteration", repeats=False)
    if builder.shared is not None:
        remember_error(builder.shared, line, line.message)
    builder.dead = True


def native_crash(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A process died outside Python."""
    advice = "the process crashed in native code: look for the last kernel or library that it called"
    if match[0].startswith("Bus"):
        advice = "a bus error: shared memory is too small most likely (--shm-size or --ipc=host)"
    builder.incidents.add(Kind.ENGINE_DIED, line, advice=advice, repeats=False)
    builder.dead = True


def _serves(builder: Builder) -> bool:
    return builder.ready_seen or (builder.shared is not None and builder.shared.ready_seen)


def resolve(builder: Builder) -> None:
    """A start that went on after it seemed to hang has only been slow."""
    if _serves(builder):
        builder.incidents.settle(
            Kind.STALLED, Severity.NOTE, "a worker was busy for a minute or more, and the start went on", key="start"
        )


def dcp_frame(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """A traceback of a context-parallel rank through an attention backend: this version refuses the
    combination.
    """
    rank = line.rank or {}
    if "dcp" not in rank and "pcp" not in rank:
        return False
    builder.incidents.add(
        Kind.CONFIG_CONFLICT,
        line,
        message=f"decode context parallelism failed while an attention backend was set up: {line.message}",
        advice="this version refuses decode context parallelism here (with speculative decoding, most "
        "likely): "
        "turn one of them off, or take a version that allows both",
        key="dcp",
        repeats=False,
    )
    builder.dead = True
    return True


KINDS = (
    kind(
        "preemption",
        ("is preempted by", "computed tokens lost"),
        r"is preempted by|Preempting request \S{1,80}: \d{1,9} computed tokens lost",
        preempted,
        figure=False,
    ),
    kind(
        "jit",
        "JIT compilation during inference",
        r"JIT compilation during inference: ([\w.:<>-]{1,160})",
        jit,
        figure=False,
    ),
    kind(
        "stalled",
        ("No available shared memory broadcast block found", "No available block found in"),
        r"No available shared memory broadcast block found|No available block found in \d+ second",
        stalled,
        figure=False,
    ),
    kind(
        "iteration_timeout",
        "Engine iteration timed out",
        "Engine iteration timed out",
        iteration_timeout,
        figure=False,
        joins=False,
    ),
    kind(
        "dcp_frame",
        "vllm/v1/",
        r'File "[^"\n]{0,200}vllm/v1/(?:worker/\w{1,40}|attention/[\w/]{1,80})\.py", l',
        dcp_frame,
        figure=False,
        joins=False,
    ),
    kind(
        "died",
        (
            "Engine core initialization failed",
            "EngineCore encountered",
            "EngineCore failed to start",
            "EngineDeadError",
            "Engine loop is dead",
            "Engine process failed to start",
            "died unexpectedly",
            "died, exit code",
            "Background loop has errored",
            "Engine background task failed",
            "Engine loop has died",
            "ngine loop is not running",
            "EngineCore hit an exception",
            "Task finished unexpectedly",
        ),
        r"Engine core initialization failed|EngineCore encountered|EngineCore failed to start|EngineDeadError"
        r"|Engine loop is dead|Engine process failed to start|died unexpectedly|died, exit code"
        r"|Background loop has errored|Engine background task failed|Engine loop has died"
        r"|ngine loop is not running|EngineCore hit an exception"
        r"|Task finished unexpectedly",
        engine_died,
        figure=False,
        joins=False,
    ),
    kind(
        "request_failed",
        (
            "grammar rejected tokens",
            "Failed to advance FSM for request",
            "Failed to compile grammar for request",
            "Unexpected error pre-processing request",
            "stream generator.",
        ),
        r"grammar rejected tokens|Failed to advance FSM for request|Failed to compile grammar for request"
        r"|Unexpected error pre-processing request|Error in (?:chat )?completion stream generator",
        event(Kind.REQUEST_FAILED, key="engine"),
        figure=False,
        joins=False,
    ),
    kind(
        "native_crash",
        ("Segmentation fault", "Segfault encountered", "Bus error", "Fatal Python error"),
        r"Segmentation fault(?: \(core dumped\)|\s*$)|Segfault encountered|Bus error(?: \(core dumped\)|\s*$)"
        r"|Fatal Python error: ",
        native_crash,
        figure=False,
        joins=False,
    ),
    kind(
        "shutdown",
        ("[shutdown] ", "Shutting down FastAPI", "Gracefully stopping"),
        r"\[shutdown\] |Shutting down|Gracefully stopping",
        lambda builder, line, match: builder.facts.update(shutdown=True),
        figure=False,
        joins=False,
    ),
)
