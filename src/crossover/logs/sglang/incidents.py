"""What goes wrong in SGLang: retraction, crashes, failed warm-up, fallbacks, limits that were cut."""

from __future__ import annotations

import re
from collections.abc import Callable

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.sglang.repeats import Repeats
from crossover.logs.table import LineKind, kind

_NO_PROXY = "set no_proxy=127.0.0.1,localhost,0.0.0.0: the server's request to itself went through a proxy"
_CONTEXT_SLACK = 64  # the engine keeps some tokens back from both limits


def _new_event(builder: Builder, line: Line, *fingerprint: object) -> bool:
    """Whether no other rank told of this event yet."""
    seen = builder.facts.get("sglang_events")
    if seen is None:
        seen = builder.facts["sglang_events"] = Repeats[None](lambda row: None)
    return seen.add(fingerprint, line.rank, line, None)


def _warn(
    what: Kind, *, advice: str | None = None, severity: Severity | None = None
) -> Callable[[Builder, Line, re.Match[str]], None]:
    """A handler that records one event a line, once for all ranks."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        if _new_event(builder, line, what):
            builder.incidents.add(what, line, advice=advice, severity=severity)

    return handle


def _retraction(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Counts the requests, not the lines: one line may retract several."""
    if _new_event(builder, line, Kind.RETRACTION, match[0]):
        builder.incidents.add(Kind.RETRACTION, line, count=int(match[1]))


def _too_long(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The limit is the smaller of context and pool: only where it is the pool is the plan impossible."""
    wanted, limit = int(match[1]), int(match[2])
    context = builder.single.get("context_length")
    pool = context is None or limit < context - _CONTEXT_SLACK
    what = Kind.CONTEXT_EXCEEDS_POOL if pool else Kind.REQUEST_TOO_LONG
    if _new_event(builder, line, what, wanted, limit):
        builder.incidents.add(what, line, severity=Severity.ERROR)


def _exception(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """An exception that reaches the loop of a process ends the server."""
    if _new_event(builder, line, Kind.SCHEDULER_EXCEPTION):
        builder.incidents.add(Kind.SCHEDULER_EXCEPTION, line)
    _died(builder, line, match)


def _died(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A server dies once, however many of its processes say so."""
    if not builder.dead:
        builder.incidents.add(Kind.ENGINE_DIED, line)
    builder.dead = True


def _warmup_failed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.not_ready()
    builder.dead = True
    builder.incidents.add(
        Kind.WARMUP_FAILED,
        line,
        advice=f"check the error below this line; if it is a 502 or a refused connection, {_NO_PROXY}",
    )


def _jit(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Compiling while it starts costs start-up time; afterwards it costs somebody's latency."""
    late = builder.ready_seen
    if _new_event(builder, line, Kind.JIT_COMPILE, match[0]):
        builder.incidents.add(
            Kind.JIT_COMPILE, line, severity=None if late else Severity.NOTE, key="late" if late else "start",
            advice=None if late else "compiled during start-up: no request waited, but the start took longer",
        )  # fmt: skip


def _page_size(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"block_size": int(match[1])})
    if _new_event(builder, line, Kind.CONFIG_ADJUSTED, match[0]):
        builder.incidents.add(Kind.CONFIG_ADJUSTED, line, key="page_size")


def _capped(builder: Builder, line: Line, match: re.Match[str]) -> None:
    if _new_event(builder, line, Kind.CONCURRENCY_CAPPED):
        builder.incidents.add(Kind.CONCURRENCY_CAPPED, line)


_FELL_BACK = (
    r"(?i:fall(?:s|ing)? ?back|fell back|roll(?:ing)? back) (?:to|from)\b.{0,60}?"
    r"\b(?i:triton|nccl(?! all-?reduce)|eager|slow\w*|legacy|unfused|standard implementation|regular|pytorch|generic)\b"
)

KINDS: tuple[LineKind, ...] = (
    kind(
        "retraction",
        ("Retract requests.", "ecode out of memory happened"),
        r"(?:Retract requests\.|[Dd]ecode out of memory happened[.,]) #retracted_reqs: (\d{1,9}).*",
        _retraction,
    ),
    kind(
        "input_too_long",
        "exceeds the maximum allowed length",
        r"Input length \((\d{1,12}) tokens\) exceeds the maximum allowed length \((\d{1,12}) tokens\)",
        _too_long,
    ),
    kind(
        "exception",
        (
            "hit an exception",
            "Exception in ControllerSingle",
            "Exception in ControllerMulti",
            "Exception in ModelTpServer",
            "Exception in run_tp_server",
        ),
        r"\w+ hit an exception|Exception in (?:Controller(?:Single|Multi)|ModelTpServer|run_tp_server)",
        _exception,
        figure=False,
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
        ),
        r"[Rr]eceived sigquit from a child proces|SIGQUIT received\. signum|Received SIGQUIT from scheduler"
        r"|scheduler is dead\. Please check|crashed with exit code|unexpectedly failed with an exit code",
        _died,
        figure=False,
    ),
    kind(
        "port_in_use_at_start",
        "Port is already in use. dist_init_port",
        r"Port is already in use\. dist_init_port",
        _warn(Kind.PORT_IN_USE),
        figure=False,
    ),
    kind(
        "page_size_changed",
        ("hange page_size to", "hanging page_size from"),
        r"[Cc]hang(?:e|ing) page_size (?:from \d+ )?to (\d+)",
        _page_size,
        figure=False,
    ),
    kind(
        "warmup_failed",
        "Initialization failed. warmup error",
        r"Initialization failed\. warmup error",
        _warmup_failed,
        figure=False,
    ),
    kind(
        "health_check",
        "Health check failed. Server couldn't get a response",
        r"Health check failed\. Server couldn't get a response",
        _warn(Kind.HEALTH_CHECK_FAILED),
        figure=False,
    ),
    kind(
        "watchdog",
        ("Watchdog timeout (", "watchdog timeout (", "Watchdog Timeout"),
        r"[Ww]atchdog [Tt]imeout",
        _warn(
            Kind.STALLED,
            severity=Severity.ERROR,
            advice="a forward pass did not end in time: look at what all ranks did last",
        ),
        figure=False,
    ),
    kind(
        "no_memory_for_pool",
        "Not enough memory. Please try to increase --mem-fraction-static",
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        _warn(
            Kind.KV_TOO_SMALL,
            advice="weights leave no room for the token pool: raise --mem-fraction-static, or use more GPUs",
        ),
        figure=False,
    ),
    kind(
        "gpu_occupied",
        "The memory capacity is unbalanced",
        r"The memory capacity is unbalanced",
        _warn(Kind.GPU_OCCUPIED),
        figure=False,
    ),
    kind(
        "batch_out_of_memory",
        "out of memory. Try to lower your batch size",
        r"\w+ out of memory\. Try to lower your batch size",
        _warn(
            Kind.OUT_OF_MEMORY,
            advice="the token pool could not hold the batch: lower the concurrency or the length",
        ),
        figure=False,
    ),
    kind(
        "concurrency_capped",
        (
            "max_running_requests is capped to",
            "max_running_requests was reduced from",
            "KV sizing: max_running_requests",
        ),
        r"max_running_requests (?:is capped to \d+|was reduced from the requested \d+ to \d+|\d+ -> \d+)",
        _capped,
        figure=False,
    ),
    kind(
        "graph_sizes_capped",
        "CUDA graph max_bs=",
        r"decode CUDA graph max_bs=(\d+) < max_running_requests=(\d+)",
        _warn(Kind.GRAPH_SIZES_CAPPED),
        figure=False,
    ),
    kind(
        "fp8_kv_scale_default",
        ("no scaling factors provided", "Defaulting to KV cache scaling factors"),
        r"(?:FP8 KV cache but no scaling factors provided|Defaulting to KV cache scaling factors = 1\.0)",
        _warn(Kind.FP8_KV_SCALE_DEFAULT),
        figure=False,
    ),
    kind(
        "allreduce_disabled",
        (
            "llreduce is disabled",
            "llReduceV2 is disabled",
            "Setup Custom allreduce failed",
            "multicast operations are not supported",
            "with multicast is unavailable",
            "falling back to NCCL all-reduce",
        ),
        r"(?:C\w+ ?[Aa]ll[Rr]educe(?:V2)? is disabled|Setup Custom allreduce failed"
        r"|multicast operations are not supported|with multicast is unavailable"
        r"|falling back to NCCL all-reduce)",
        _warn(Kind.ALLREDUCE_FALLBACK),
        figure=False,
    ),
    kind(
        "scale_format",
        "scale_fmt of checkpoint is not ue8m0",
        r"DeepG[Ee][Mm][Mm] is enabled but the scale_fmt of checkpoint is not ue8m0",
        _warn(Kind.QUANTIZATION_MISMATCH),
        figure=False,
    ),
    kind(
        "draft_window_ignored",
        ("Ignoring --speculative-draft-window-size", "--speculative-draft-window-size has no effect"),
        r"(?:Ignoring --speculative-draft-window-size=\d+|--speculative-draft-window-size has no effect)",
        _warn(Kind.CONFIG_ADJUSTED),
        figure=False,
    ),
    kind(
        "kernel_fallback",
        ("alling back to", "ell back to", "alls back to", "alling back from"),
        _FELL_BACK,
        _warn(Kind.FALLBACK_KERNEL),
        figure=False,
    ),
    kind(
        "jit_compile",
        (
            "Entering DeepGEMM JIT",
            "DeepGEMM JIT Compiling for",
            "Building the PTX",
            "CuTe DSL KDA kernel compiled",
        ),
        r"Entering DeepGEMM JIT[\w -]{1,40}|DeepGEMM JIT Compiling for <[^>]{1,80}>.{0,60}"
        r"|Building the PTX[\w ]{1,40}|CuTe DSL KDA kernel compiled.{0,80}",
        _jit,
        figure=False,
    ),
    kind(
        "autotune_skipped",
        "autotune skipped",
        r"FlashInfer (?:extend )?autotune skipped",
        _warn(Kind.AUTOTUNE_DISABLED),
        figure=False,
    ),
    kind(
        "leak",
        "memory leak detected",
        r"memory leak detected",
        _warn(
            Kind.STALLED,
            severity=Severity.ERROR,
            advice="the pool's books do not close: the server ends itself; report it with the version",
        ),
        figure=False,
    ),
)
