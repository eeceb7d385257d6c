"""What goes wrong in vLLM, or is done otherwise than asked: incidents, and evidence for diagnoses."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.crash import engine_died
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.numbers import NUM
from crossover.logs.table import Handler, kind


def event(incident: Kind, *, each_rank: bool = False, key: str = "", note: str = "") -> Handler:
    """A handler that records one incident; `each_rank` where every rank says the same."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        builder.incidents.add(incident, line, key=key, rank=rank_label(line) if each_rank else None)
        if note:
            builder.note(note, line)

    return handle


def jit(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A kernel was compiled while requests ran; each rank compiles its own, so the busiest rank counts."""
    kernels = builder.facts.setdefault("jit_kernels", [])
    if match[1] not in kernels and len(kernels) < 50:
        kernels.append(match[1])
    builder.incidents.add(
        Kind.JIT_COMPILE,
        line,
        rank=rank_label(line),
        message=f"JIT compilation during inference: {match[1]}",
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


def graphs_capped(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Capping cudagraph capture sizes from max 512 to 96 to fit Mamba cache blocks`."""
    builder.incidents.add(
        Kind.GRAPH_SIZES_CAPPED,
        line,
        message=f"graph capture sizes capped from {match[1]} to {match[2]}",
        key=match[0],
        repeats=False,
    )
    builder.config["max_graph_size"] = int(match[2])


KINDS = (
    kind(
        "preemption",
        "is preempted by",
        r"is preempted by (?:PreemptionMode\.)?(SWAP|RECOMPUTE)?",
        event(Kind.PREEMPTION),
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
        "fp8_scale",
        "KV cache scaling factor 1.0",
        r"Using KV cache scaling factor 1\.0",
        event(Kind.FP8_KV_SCALE_DEFAULT, each_rank=True, note="fp8_scale_default"),
        figure=False,
    ),
    kind(
        "fp8_q_scale",
        ("does not provide a q scaling factor", "Using uncalibrated q_scale", "Q scale 1.0"),
        r"q scaling factor|uncalibrated q_scale|Q scale 1\.0",
        event(Kind.FP8_Q_SCALE_DEFAULT, each_rank=True),
        figure=False,
    ),
    kind(
        "fp8_kv",
        "to store kv cache",
        r"Using fp8\w{0,10} data type to store kv cache",
        event(Kind.FP8_KV_ACCURACY, each_rank=True, note="fp8_kv"),
        figure=False,
    ),
    kind(
        "autotune",
        ("Skipping FlashInfer autotune", "FlashInfer autotune is disabled", "autotuning is disabled"),
        r"Skipping FlashInfer autotune|autotune is disabled|autotuning is disabled",
        event(Kind.AUTOTUNE_DISABLED, each_rank=True, note="autotune_disabled"),
        figure=False,
    ),
    kind(
        "graph_mode",
        ("is not supported with", "etting cudagraph_mode="),
        r"CUDAGraphMode\.\w{1,40} is not supported with|[Ss]etting cudagraph_mode=\w{3,40}",
        event(Kind.GRAPH_MODE_CHANGED, each_rank=True, note="graph_mode_changed"),
        figure=False,
    ),
    kind(
        "graphs_capped",
        "Capping cudagraph capture sizes",
        r"Capping cudagraph capture sizes from max (\d+) to (\d+)\b",
        graphs_capped,
    ),
    kind(
        "padding",
        "padding layers, may waste",
        rf"Add \d+ padding layers, may waste at most {NUM}%",
        event(Kind.KV_PADDING, each_rank=True),
    ),
    kind(
        "custom_all_reduce",
        "ustom allreduce is disabled",
        r"[Cc]ustom allreduce is disabled",
        event(Kind.ALLREDUCE_FALLBACK, each_rank=True, note="custom_all_reduce_disabled"),
        figure=False,
    ),
    kind(
        "adjusted",
        (
            "max_num_scheduled_tokens is set to",
            "Async scheduling not supported",
            "Speculative decoding is disabled",
            "disabling chunked prefill",
            "disabling prefix caching",
            "Overriding num_gpu_blocks",
        ),
        r"max_num_scheduled_tokens is set to \d|Async scheduling not supported|Speculative decoding is "
        r"disabled"
        r"|disabling chunked prefill|disabling prefix caching|Overriding num_gpu_blocks=[1-9]",
        lambda builder, line, match: builder.incidents.add(
            Kind.CONFIG_ADJUSTED, line, rank=rank_label(line), key=match[0][:30]
        ),
        figure=False,
    ),
    kind(
        "stalled",
        "No available shared memory broadcast block found",
        "No available shared memory broadcast block found",
        event(Kind.STALLED),
        figure=False,
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
            "ngine loop is not running",
        ),
        r"Engine core initialization failed|EngineCore encountered|EngineCore failed to start|EngineDeadError"
        r"|Engine loop is dead|Engine process failed to start|died unexpectedly|died, exit code"
        r"|Background loop has errored|ngine loop is not running",
        engine_died,
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
