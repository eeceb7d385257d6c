"""What goes wrong in vLLM, or is done otherwise than asked: incidents, and evidence for diagnoses."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.crash import engine_died
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.numbers import NUM, number
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


def kv_too_small(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """One request of full length does not fit: what it needs, what there is, what would fit."""
    wanted, needed, available, estimate = match.groups()
    message = (
        f"a request of {wanted} tokens needs {number(needed):g} GiB of KV cache, available are "
        f"{number(available):g} GiB"
    )
    advice = f"lower max-model-len to {estimate} (the engine's estimate)" if estimate else None
    builder.incidents.add(Kind.KV_TOO_SMALL, line, message=message, advice=advice, key=message, repeats=False)
    builder.dead = True


def kv_too_small_tokens(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The older wording, in tokens."""
    message = f"the KV cache holds {match[2]} tokens, fewer than the maximum length of {match[1]}"
    advice = f"lower max-model-len to {match[2]}, or give the KV cache more memory"
    builder.incidents.add(Kind.KV_TOO_SMALL, line, message=message, advice=advice, key=message, repeats=False)
    builder.dead = True


def no_kv(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Nothing is left for the KV cache at all."""
    builder.incidents.add(Kind.KV_TOO_SMALL, line, key="none", repeats=False)
    builder.dead = True


def mamba_blocks(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """More requests than Mamba cache blocks; each pair of figures is one event."""
    builder.incidents.add(
        Kind.MAMBA_BLOCKS_TOO_FEW,
        line,
        message=match[0],
        advice=f"set max-num-seqs to {match[2]}",
        key=match[0],
        repeats=False,
    )
    builder.dead = True


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
        "kv_too_small",
        "To serve at least one request",
        rf"max seq len \((\d+)\), \(?{NUM} GiB KV cache is needed, which is larger than the available KV "
        rf"cache "
        r"memory \((-?\d[\d.]{0,12}) GiB\)(?:.{0,60}estimated maximum model length is (\d+))?",
        kv_too_small,
        spans=4,
    ),
    kind(
        "kv_too_small_tokens",
        "that can be stored in KV cache",
        r"max seq len \((\d+)\) is larger than the maximum number of tokens that can be stored in KV cache "
        r"\((\d+)\)",
        kv_too_small_tokens,
    ),
    kind(
        "no_kv",
        "No available memory for the cache blocks",
        "No available memory for the cache blocks",
        no_kv,
        figure=False,
    ),
    kind(
        "mamba_blocks",
        "available Mamba cache blocks",
        r"max_num_seqs \((\d+)\) exceeds available Mamba cache blocks \((\d+)\)",
        mamba_blocks,
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
