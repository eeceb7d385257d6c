"""What vLLM does otherwise than asked, or more slowly than it could: changed settings, fallbacks, default scales."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.incidents import Kind, Severity
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


def changed(incident: Kind, *, severity: Severity | None = None, advice: str | None = None) -> Handler:
    """A handler for changes of several settings: each wording is an incident of its own, stated by every rank."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        builder.incidents.add(
            incident, line, severity=severity, advice=advice, rank=rank_label(line), key=match[0][:40], repeats=False
        )

    return handle


def graph_mode(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Graphs are captured otherwise than asked, or not at all; most wordings name the mode that is used."""
    builder.incidents.add(Kind.GRAPH_MODE_CHANGED, line, rank=rank_label(line))
    builder.note("graph_mode_changed", line)
    if mode := _MODE.search(line.text, match.start()):
        builder.config["graph_mode"] = mode[1]


_MODE = re.compile(
    r"(?:[Ss]etting cudagraph_mode(?:=| to )|Overriding (?:cudagraph_mode (?:\S{1,60} |from \S{1,60} )?)?to )"
    r"([A-Z_]{4,30})\b"
)


def eager(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """No graphs at all, whatever was asked for."""
    graph_mode(builder, line, match)
    builder.config["graph_mode"] = "NONE"


def graphs_capped(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Capping cudagraph capture sizes from max 512 to 96 to fit Mamba cache blocks`, or `Truncating ... to 96`."""
    largest = match[2] or match[3]
    message = f"graph capture sizes capped from {match[1]} to {largest}" if match[1] else line.message
    builder.incidents.add(Kind.GRAPH_SIZES_CAPPED, line, message=message, key=match[0], repeats=False)
    builder.config["max_graph_size"] = int(largest)


def no_graphs(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Nothing is left to capture after capping."""
    builder.incidents.add(
        Kind.GRAPH_SIZES_CAPPED, line, key="none", advice="lower max-num-seqs: now nothing runs with a graph"
    )


KINDS = (
    kind(
        "fp8_scale",
        (
            "KV cache scaling factor 1.0",
            "no scaling factors provided",
            "Defaulting to KV cache scaling factors",
            "Using default scale of 1.0",
        ),
        r"Using KV cache scaling factor 1\.0|FP8 KV cache but no scaling factors provided"
        r"|Defaulting to KV cache scaling factors ?= ?1\.0|KV cache scales [^\n]{0,200}Using default scale of 1\.0",
        event(Kind.FP8_KV_SCALE_DEFAULT, each_rank=True, note="fp8_scale_default"),
        figure=False,
    ),
    kind(
        "fp8_q_scale",
        ("does not provide a q scaling factor", "Using uncalibrated q_scale", "Using Q scale "),
        r"q scaling factor|uncalibrated q_scale|Using Q scale \S",
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
        (
            "Skipping FlashInfer",
            "FlashInfer autotune is disabled",
            "autotuning is disabled",
            "autotune cache entries found",
        ),
        r"Skipping FlashInfer [^\n]{0,60}?autotun|FlashInfer autotune is disabled|autotuning is disabled"
        r"|No FlashInfer [^\n]{0,60}?autotune cache entries found",
        event(Kind.AUTOTUNE_DISABLED, each_rank=True, note="autotune_disabled"),
        figure=False,
    ),
    kind(
        "autotune_oom",
        ("OOM detected, fall", "OOM while tuning"),
        r"OOM detected, fall\w{0,5} back|OOM while tuning",
        event(Kind.OOM_RETRY, key="autotune"),
        figure=False,
        joins=False,
    ),
    kind(
        "untuned",
        ("Performance might be sub-optimal",),
        r"Using default ([^\n!]{2,60}?) config\. Performance might be sub-optimal",
        changed(
            Kind.FALLBACK_KERNEL,
            severity=Severity.NOTE,
            advice="no tuned configuration for this device and shape: tune the kernel, or name it in the comparison",
        ),
        figure=False,
    ),
    kind(
        "no_native_kernel",
        ("does not have native support for", "PyTorch-native", "FlashInfer is not available"),
        r"GPU does not have native support for \w{1,20}|alling back to (?:the )?PyTorch-native"
        r"|using PyTorch-native sampler|but FlashInfer is not available",
        changed(Kind.FALLBACK_KERNEL, severity=Severity.NOTE),
        figure=False,
    ),
    kind(
        "slow_kernel",
        (
            "unoptimized",
            "alling back to slow implementation",
            "alling back to Moe WNA16",
            "MXFP8 emulation backend",
            "less efficient PyTorch implementation",
            "Simulated weight dequantization",
            "will be dequantized to BF16 once",
            "fall back to slower sparse",
            "no vLLM implementation, falling back",
            "alling back to Triton/FLA",
            "alling back to the Triton GDN",
            "alling back to normal kernel selection",
            "precluded higher-priority backend",
            "explicitly, so forcing",
        ),
        r"slow and unoptimized emulation|alling back to (?:unoptimized|slow implementation|Moe WNA16|MXFP8 emulation)"
        r"|less efficient PyTorch implementation|Simulated weight dequantization|will be dequantized to BF16 once"
        r"|fall back to slower sparse|no vLLM implementation, falling back|alling back to (?:Triton/FLA|the Triton GDN)"
        r"|alling back to normal kernel selection|precluded higher-priority backend|explicitly, so forcing \w",
        changed(Kind.FALLBACK_KERNEL),
        figure=False,
    ),
    kind(
        "flash_attention_version",
        "defaulting to FA version",
        r"(?:Cannot use FA version \d|FA\d|FA\d'?s?) [^\n]{0,120}defaulting to FA version \d",
        changed(Kind.FALLBACK_KERNEL, severity=Severity.NOTE),
        figure=False,
    ),
    kind(
        "no_graphs_asked",
        ("Forcing enforce eager", "Disabling CUDA Graphs since"),
        r"Forcing enforce eager to be True|Disabling CUDA Graphs since",
        eager,
        figure=False,
    ),
    kind(
        "graph_mode",
        (
            "is not supported with",
            "etting cudagraph_mode",
            "Overriding cudagraph_mode",
            "Cudagraph mode ",
            "Skipping CUDA graph capture",
            "CUDA graph is not supported",
        ),
        r"CUDAGraphMode\.\w{1,40} is not supported with|[Ss]etting cudagraph_mode(?:=| to )\w{3,40}"
        r"|Overriding cudagraph_mode "
        r"|Cudagraph mode \S{3,60} (?:is not compatible|requires)|Skipping CUDA graph capture"
        r"|CUDA graph is not supported (?:for|on)",
        graph_mode,
        figure=False,
    ),
    kind(
        "graphs_capped",
        ("Capping cudagraph capture sizes", "Truncating max_cudagraph_capture_size"),
        r"(?:Capping cudagraph capture sizes from max (\d+) to (\d+)|Truncating max_cudagraph_capture_size to (\d+))\b",
        graphs_capped,
    ),
    kind(
        "no_graphs",
        ("No valid cudagraph capture sizes", "No valid cudagraph sizes"),
        r"No valid cudagraph (?:capture )?sizes",
        no_graphs,
        figure=False,
    ),
    kind(
        "padding",
        "padding layers, may waste",
        rf"Add \d+ padding layers, may waste at most {NUM}%",
        event(Kind.KV_PADDING, each_rank=True),
    ),
    kind(
        "custom_all_reduce",
        ("ustom allreduce is disabled", "ustom quick allreduce is disabled", "ustom collectives are disabled"),
        r"[Cc]ustom (?:quick )?(?:allreduce is|collectives are) disabled",
        event(Kind.ALLREDUCE_FALLBACK, each_rank=True, note="custom_all_reduce_disabled"),
        figure=False,
    ),
    kind(
        "adjusted",
        (
            "max_num_scheduled_tokens is set to",
            "Async scheduling not supported",
            "Speculative decoding is disabled",
            "isabling chunked prefill",
            "isabling prefix caching",
            "Overriding num_gpu_blocks",
            "Turning off hybrid kv cache manager",
            "Disabling sliding window",
            "Falling back to V0",
            "Raising max_num_batched_tokens",
            "Dynamic speculative decoding is not",
            "chunked prefill and prefix caching to be disabled",
            "nor prefix caching; disabling both",
            "isabling `torch.compile`",
            "all2all backend has been removed",
            "alling back to AllGather",
            "ybrid KV cache manager is disabled",
            "hybrid KV cache manager. Disabling it",
            "Computed max_num_seqs",
            "overriding user-specified block_size",
            "Async scheduling ",
        ),
        r"max_num_scheduled_tokens is set to \d|Async scheduling not supported|Speculative decoding is disabled"
        r"|(?<!support )[Dd]isabling chunked prefill|[Dd]isabling prefix caching|Overriding num_gpu_blocks=[1-9]"
        r"|Turning off hybrid kv cache manager|Disabling sliding window|Falling back to V0"
        r"|Raising max_num_batched_tokens|Dynamic speculative decoding is not"
        r"|forcing chunked prefill and prefix caching to"
        r"|nor prefix caching; disabling both|[Dd]isabling `torch\.compile`|all2all backend has been removed"
        r"|alling back to AllGather|[Hh]ybrid KV cache manager(?: is disabled|\. Disabling it)"
        r"|Computed max_num_seqs \("
        r"|overriding user-specified block_size"
        r"|Async scheduling (?:is (?:disabled|not [^\n]{0,120}will be disabled)|will be disabled)",
        changed(Kind.CONFIG_ADJUSTED),
        figure=False,
    ),
)
