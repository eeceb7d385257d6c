"""What costs an SGLang server speed or requests: retraction, fallbacks, compiling late, limits that were cut."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.sglang.events import new_event, warn
from crossover.logs.sglang.startup import elapsed_between
from crossover.logs.table import LineKind, kind

_CONTEXT_SLACK = 64  # the engine keeps some tokens back from both limits


def _retraction(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Counts the requests, not the lines: one line may retract several."""
    if new_event(builder, line, Kind.RETRACTION, match[0]):
        builder.incidents.add(Kind.RETRACTION, line, count=int(match[1]))


def _too_long(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The limit is the smaller of context and pool: only where it is the pool is the plan impossible."""
    wanted, limit = int(match[1]), int(match[2])
    context = builder.single.get("context_length")
    pool = context is None or limit < context - _CONTEXT_SLACK
    what = Kind.CONTEXT_EXCEEDS_POOL if pool else Kind.REQUEST_TOO_LONG
    if new_event(builder, line, what, wanted, limit):
        builder.incidents.add(what, line, severity=Severity.ERROR)


_LENGTHS = re.compile(r"origin_input_ids\)=(\d{1,12}).{0,20}max_req_input_len=(\d{1,12})")
_SHORTENED = "the request was shortened without an error: its tokens are not those that were planned"


def _shortened(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """With --allow-auto-truncate a request that is too long runs all the same, with fewer tokens."""
    lengths = _LENGTHS.search(line.text)
    limit = int(lengths[2]) if lengths else None
    context = builder.single.get("context_length")
    pool = limit is not None and context is not None and limit < context - _CONTEXT_SLACK
    what = Kind.CONTEXT_EXCEEDS_POOL if pool else Kind.REQUEST_TOO_LONG
    if new_event(builder, line, what, match[0], lengths and lengths.groups()):
        builder.incidents.add(what, line, advice=_SHORTENED, key="shortened")


def _jit(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Compiling while it starts costs start-up time; afterwards it costs somebody's latency."""
    late = builder.ready_seen
    if new_event(builder, line, Kind.JIT_COMPILE, match[0]):
        builder.incidents.add(
            Kind.JIT_COMPILE, line, severity=None if late else Severity.NOTE, key="late" if late else "start",
            advice=None if late else "compiled during start-up: no request waited, but the start took longer",
        )  # fmt: skip


_OPS = "sglang_jit_ops"
_SLOW_LOAD_S = 1.0


def _ops(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """FlashInfer says when it loads kernels, compiled or not: what took a second or more was compiled."""
    began: dict[str, float | None] = builder.facts.setdefault(_OPS, {})
    if match[1] == "Loading":
        began.setdefault(match[2], line.seconds())
    elif (gone := elapsed_between(began.pop(match[2], None), line.seconds())) is not None and gone >= _SLOW_LOAD_S:
        _jit(builder, line, match)


def _experts_moved(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Weights of experts are copied between GPUs; nothing is decoded in the meantime."""
    if new_event(builder, line, Kind.STALLED, "experts"):
        advice = "experts were moved between GPUs while requests waited: exclude the requests that overlap"
        builder.incidents.add(Kind.STALLED, line, advice=advice, key="experts")


def _capped(builder: Builder, line: Line, match: re.Match[str]) -> None:
    if new_event(builder, line, Kind.CONCURRENCY_CAPPED):
        builder.incidents.add(Kind.CONCURRENCY_CAPPED, line)


_FELL_BACK = (
    r"(?i:fall(?:s|ing)? ?back|fell back|roll(?:ing)? back) (?:to|from)\b.{0,60}?"
    r"\b(?i:triton|nccl(?! all-?reduce)|eager|slow\w*|legacy|unfused|standard implementation|regular|pytorch|generic"
    r"|torch_native|transformers implementation|sequential|greedy)\b"
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
        "input_shortened",
        ("max context length. Truncated", "longer than the KV cache pool size", ". Truncating "),
        r"Request length is longer than the KV cache pool size|(?:The input \(|Requested token count \()\d.{0,120}"
        r"context length \(\d{1,12} tokens\)\. Truncating (?:the input|max_new_tokens)",
        _shortened,
        figure=False,
    ),
    kind(
        "input_refused",
        (
            "longer than the model's context length",
            "exceeds the model's maximum context length",
            "prompt is too long after",
        ),
        r"The input \(\d{1,12} tokens\) is longer than the model's context length \(\d{1,12} tokens\)\.(?! Trunc)"
        r"|Requested token count exceeds the model's maximum context length|Multimodal prompt is too long after",
        warn(Kind.REQUEST_TOO_LONG),
        figure=False,
        joins=False,
    ),
    kind(
        "retraction_aborted",
        "retract_decode: aborted",
        r"retract_decode: aborted (?:last )?request",
        warn(
            Kind.CONTEXT_EXCEEDS_POOL,
            severity=Severity.ERROR,
            advice="the pool could not hold this request even alone: it was ended; lower the lengths",
            key="aborted",
        ),
        figure=False,
    ),
    kind(
        "batch_out_of_memory",
        "out of memory. Try to lower your batch size",
        r"\w+ out of memory\. Try to lower your batch size",
        warn(
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
        warn(Kind.GRAPH_SIZES_CAPPED),
        figure=False,
    ),
    kind(
        "fp8_kv_scale_default",
        ("no scaling factors provided", "Defaulting to KV cache scaling factors"),
        r"(?:FP8 KV cache but no scaling factors provided|Defaulting to KV cache scaling factors = 1\.0)",
        warn(Kind.FP8_KV_SCALE_DEFAULT),
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
        warn(Kind.ALLREDUCE_FALLBACK),
        figure=False,
    ),
    kind(
        "scale_format",
        "scale_fmt of checkpoint is not ue8m0",
        r"DeepG[Ee][Mm][Mm] is enabled but the scale_fmt of checkpoint is not ue8m0",
        warn(Kind.QUANTIZATION_MISMATCH),
        figure=False,
    ),
    kind(
        "draft_window_ignored",
        ("Ignoring --speculative-draft-window-size", "--speculative-draft-window-size has no effect"),
        r"(?:Ignoring --speculative-draft-window-size=\d+|--speculative-draft-window-size has no effect)",
        warn(Kind.CONFIG_ADJUSTED),
        figure=False,
    ),
    kind(
        "kernel_fallback",
        ("alling back to", "ell back to", "alls back to", "alling back from", "will fallback to "),
        _FELL_BACK,
        warn(Kind.FALLBACK_KERNEL),
        figure=False,
    ),
    kind(
        "jit_compile",
        (
            "Entering DeepGEMM JIT",
            "DeepGEMM JIT Compiling for",
            "Building the PTX",
            "DSL KDA kernel compiled",
            "DSL GDN kernel compiled",
            "to compile after serving started",
            "attention: compiling for",
            "start build [module",
        ),
        r"Entering DeepGEMM JIT[\w -]{1,40}|DeepGEMM JIT Compiling for <[^>]{1,80}>.{0,60}|Building the PTX[\w ]{1,40}"
        r"|CuTe DSL (?:KDA|GDN) kernel compiled.{0,80}|Triton kernel '.{1,80}' took [\d.]+ s to compile after serving"
        r"|\w+ attention: compiling for S=\d.{0,40}|(?<!\[aiter\] )start build \[module_\w+\]",
        _jit,
        figure=False,
    ),
    kind(
        "jit_ops",
        "oading JIT ops: ",
        r"flashinfer\.jit: (Loading|Finished loading) JIT ops: (\w{1,300})",
        _ops,
        figure=False,
        joins=False,
    ),
    kind(
        "autotune_skipped",
        "autotune skipped",
        r"FlashInfer (?:extend )?autotune skipped",
        warn(Kind.AUTOTUNE_DISABLED),
        figure=False,
    ),
    kind(
        "untuned_kernel",
        ("Performance might be sub-optimal! Config file not found", ". Fallback to triton version "),
        r"Performance might be sub-optimal! Config file not found"
        r"|Config file not found at .{1,400}\. Fallback to triton",
        warn(
            Kind.FALLBACK_KERNEL,
            severity=Severity.NOTE,
            advice="no tuned configuration for this shape on this device: tune it, or name it in the comparison",
            key="untuned",
        ),
        figure=False,
        joins=False,
    ),
    kind(
        "experts_moved",
        "[EPLBManager] rebalance end",
        r"\[EPLBManager\] rebalance end",
        _experts_moved,
        figure=False,
    ),
    kind(
        "garbage_collection",
        "LONG GARBAGE COLLECTION DETECTED",
        r"LONG GARBAGE COLLECTION DETECTED",
        warn(
            Kind.STALLED,
            advice="Python's garbage collector stopped this process: freeze it after the warm-up (/freeze_gc)",
            key="garbage",
        ),
        figure=False,
    ),
)
