"""vLLM's memory and KV pool: every wording from 0.5 on, and the check of the engine's own suggestion."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.model import Pool
from crossover.logs.numbers import GIB, NUM, number, whole
from crossover.logs.table import Handler, kind

_MARGIN_GIB = 0.15  # the engine keeps 150 MiB back from what it suggests
_TOLERANCE_GIB = 0.2


def kv_memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Memory that the KV cache may take on one GPU."""
    builder.binding_at_rank("kv_cache_gib", line, float(match[1].replace(",", "")))
    builder.add_memory(line, "kv_cache", float(match[1].replace(",", "")))


def cpu_kv_memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The CPU backend: `Explicitly set (1.0/22.46) GiB for KV cache on node 0.`"""
    kv_memory(builder, line, match)
    builder.add_memory(line, "visible", number(match[2]))


def kv_tokens(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Capacity of one engine in tokens, as the engine counts it (hybrid models included)."""
    builder.binding_at_rank("kv_cache_tokens", line, whole(match[1]))


def concurrency(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Requests of full length that fit: as printed, never tokens over length."""
    builder.set("max_concurrency_at_tokens", whole(match[1]))
    builder.binding_at_rank("max_concurrency", line, number(match[2]))


def blocks(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Capacity in blocks; tokens follow in `resolve`."""
    builder.binding_at_rank("gpu_blocks", line, int(match[1]))
    if match[2]:
        builder.single["v0_blocks"] = True


def item(name: str) -> Handler:
    """A handler for one item of the waterfall, GiB in group 1."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        builder.add_memory(line, name, number(match[1]))

    return handle


def v0_visible(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`can use total_gpu_memory (79.19GiB) x gpu_memory_utilization (0.90) = 71.27GiB`."""
    builder.add_memory(line, "visible", number(match[1]))
    builder.configure({"memory_fraction": float(match[2])})


_V0_ITEMS = (
    ("weights", re.compile(rf"(?:model weights take|weights memory:) {NUM} ?GiB")),
    ("non_torch", re.compile(rf"(?:non_torch_memory takes|non-torch forward increase memory:) {NUM} ?GiB")),
    (
        "activation",
        re.compile(rf"(?:PyTorch activation peak memory takes|torch peak memory increase:) {NUM} ?GiB"),
    ),
    ("kv_cache", re.compile(rf"memory reserved for KV Cache is {NUM} ?GiB")),
)
_V06_ITEMS = (
    ("visible", re.compile(rf"total_gpu_memory={NUM} ?GiB")),
    ("non_torch", re.compile(rf"non_torch_memory={NUM} ?GiB")),
    ("kv_cache", re.compile(rf"kv_cache_size={NUM} ?GiB")),
)


def waterfall(*items: tuple[str, re.Pattern[str]]) -> Handler:
    """A handler for a line with several items."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> bool:
        found = False
        for name, pattern in items:
            if part := pattern.search(line.text, match.start()):
                found = True
                builder.add_memory(line, name, number(part[1]))
                if name == "kv_cache":
                    builder.binding_at_rank("kv_cache_gib", line, number(part[1]))
        return found

    return handle


_USAGE = (
    ("weights", re.compile(rf"{NUM} GiB for (?:weights?|consumed memory)\b")),
    ("activation", re.compile(rf"{NUM} GiB for peak activation")),
    ("non_torch", re.compile(rf"{NUM} GiB for non-torch memory")),
    (
        "cuda_graph",
        re.compile(rf"{NUM} GiB for (?:CUDA ?Graph|NPU ?graph|ACL ?graph|\w{{2,8}} ?[Gg]raph) memory"),
    ),
)
_IN_USE = re.compile(r"Current kv cache memory in use is (\d[\d.]{0,20}) (bytes|GiB)")
_ADVISED = re.compile(r"`--kv-cache-memory(?:-bytes)?=(-?\d{1,18})`[^`]{0,30} to fit in")


def usage(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The summary after start: what each part took, what the KV cache took, and what would have fitted."""
    free, visible, requested = (number(match[group]) for group in (1, 2, 4))
    builder.add_memory(line, "visible", visible)
    builder.configure({"memory_fraction": float(match[3])})
    parts: dict[str, float] = {}
    for name, pattern in _USAGE:
        if part := pattern.search(line.text, match.end()):
            parts[name] = number(part[1])
            builder.add_memory(line, name, parts[name])
    in_use = _IN_USE.search(line.text, match.end())
    kv = None
    if in_use:
        kv = float(in_use[1].rstrip(".")) / (GIB if in_use[2] == "bytes" else 1)
        kv = round(kv, 2)
        builder.add_memory(line, "kv_cache", kv)
        builder.binding_at_rank("kv_cache_gib", line, kv)
    advised = _ADVISED.search(line.text, match.end())
    if advised:
        _check_suggestion(builder, line, int(advised[1]) / GIB, requested, free, parts, kv)


def _check_suggestion(
    builder: Builder,
    line: Line,
    advised: float,
    requested: float,
    free: float,
    parts: dict[str, float],
    kv: float | None,
) -> None:
    whole_sum = {"weights", "activation", "cuda_graph"} <= parts.keys()
    own = requested - sum(parts.values()) - _MARGIN_GIB if whole_sum else None
    off = own is not None and abs(own - advised) > _TOLERANCE_GIB
    if advised < 0 or advised > free or off:
        better = f": requested {requested:.2f} GiB less what is in use leaves {own:.2f} GiB" if own else ""
        builder.incidents.add(
            Kind.KV_SUGGESTION_WRONG,
            line,
            message=f"the engine suggests {advised:.2f} GiB of KV cache, which cannot be right{better}",
            rank=rank_label(line),
        )
        advised = own if own is not None else advised
    if kv is not None and 0 < advised < kv - 0.005:
        builder.incidents.add(
            Kind.KV_OVERCOMMIT,
            line,
            message=f"KV cache took {kv:.2f} GiB where {advised:.2f} GiB fit: {kv - advised:.2f} GiB too much",
            advice=f"lower gpu-memory-utilization, or set kv-cache-memory to {int(advised * GIB)} bytes "
            f"({advised:.2f} GiB)",
            rank=rank_label(line),
        )


_BLOCK_SIZES = (1, 8, 16, 32, 64, 128, 256)


def resolve(builder: Builder) -> None:
    """Tokens from blocks where the version prints no tokens, and totals over data-parallel engines."""
    tokens = builder.smallest("kv_cache_tokens")
    if tokens is None:
        tokens = _tokens_of_blocks(builder)
        if tokens is not None:
            builder.per_rank["kv_cache_tokens"] = {None: tokens}
    if tokens is None:
        return
    engines = builder.per_rank["kv_cache_tokens"]
    dp_size = builder.single.get("dp_size") or builder.config.get("data_parallel")
    ranks = {dict(label).get("dp", 0) for label in engines if isinstance(label, tuple) and _is_rank(label)}
    if dp_size is None and len(ranks) > 1:
        dp_size = len(ranks)
    if dp_size is not None:
        builder.set("dp_size", dp_size)
    smallest: dict[int, float] = {}
    for label, value in engines.items():
        dp = dict(label).get("dp", 0) if isinstance(label, tuple) and _is_rank(label) else 0
        smallest[dp] = min(value, smallest.get(dp, value))
    complete = len(smallest) == (dp_size or 1)
    total = sum(smallest.values()) if complete else min(smallest.values()) * (dp_size or 1)
    builder.set("kv_cache_tokens_total", int(total))
    gib = builder.smallest("kv_cache_gib")
    builder.pools["target"] = {None: Pool("target", int(tokens), gib)}


def _is_rank(label: tuple[object, ...]) -> bool:
    return all(isinstance(part, tuple) and len(part) == 2 for part in label)


def _tokens_of_blocks(builder: Builder) -> float | None:
    """Blocks x block size: the configured one, else the one that fits the concurrency, else V0's 16."""
    count = builder.smallest("gpu_blocks")
    if count is None:
        return None
    size = builder.config.get("block_size")
    ratio, length = builder.smallest("max_concurrency"), builder.single.get("max_concurrency_at_tokens")
    source = "configured"
    if ratio is not None and length:
        fitting = [size for size in _BLOCK_SIZES if abs(count * size / length - ratio) <= 0.0051]
        size, source = (fitting[0], "fits the printed concurrency") if len(fitting) == 1 else (None, "")
    elif not isinstance(size, int):
        size, source = (16, "default") if builder.single.get("v0_blocks") else (None, "")
    if not isinstance(size, int):
        return None
    builder.raw["kv_cache_tokens_derived"] = f"{int(count)} blocks x {size} tokens ({source})"
    return count * size


KINDS = (
    kind(
        "kv_memory",
        "vailable KV cache memory:",
        r"Available KV cache memory: (-?\d[\d,]{0,12}(?:\.\d+)?) ?GiB",
        kv_memory,
    ),
    kind(
        "kv_reserved",
        "memory for KV Cache as specified",
        rf"[Rr]eserved {NUM} ?GiB memory for KV Cache as specified",
        kv_memory,
    ),
    kind("kv_cpu", "GiB for KV cache", rf"set \({NUM}/{NUM}\) GiB for KV cache", cpu_kv_memory),
    kind("kv_tokens", "KV cache size:", rf"KV cache size: {NUM} tokens", kv_tokens),
    kind(
        "concurrency",
        "oncurrency for ",
        rf"Maximum (?:\w{{1,20}} ){{0,3}}concurrency for {NUM} tokens per request: {NUM}x",
        concurrency,
        spans=4,
    ),
    kind(
        "blocks",
        (" blocks: ",),
        r"# (?:GPU|CUDA|cuda|rocm|ROCm|HPU|hpu|NPU|npu|XPU|xpu|TPU|tpu|neuron|cpu) blocks: (\d+)(, # CPU "
        r"blocks: \d+)?",
        blocks,
    ),
    kind(
        "cache_config",
        "num_gpu_blocks is:",
        r"num_gpu_blocks is: (\d+)\b",
        lambda builder, line, match: builder.binding_at_rank("gpu_blocks", line, int(match[1])),
    ),
    kind(
        "v0_visible",
        "can use total_gpu_memory",
        rf"can use total_gpu_memory \({NUM} ?GiB\) x gpu_memory_utilization \((0?\.\d+|1\.0+)\)",
        v0_visible,
    ),
    kind("v0_items", "model weights take", r"model weights take \d", waterfall(*_V0_ITEMS), spans=4),
    kind("v1_profile", "Total non KV cache memory", r"Total non KV cache memory: \d", waterfall(*_V0_ITEMS)),
    kind("v06_items", "Memory profiling results:", r"Memory profiling results: \w", waterfall(*_V06_ITEMS)),
    kind(
        "graph_pool",
        "CUDA graph pool memory:",
        rf"CUDA graph pool memory: {NUM} GiB \(actual\)",
        item("cuda_graph"),
    ),
    kind(
        "usage",
        "Free memory on device",
        rf"Free memory on device [^(\n]{{0,20}}\({NUM}/{NUM} GiB\) on startup\. Desired GPU memory "
        rf"utilization is "
        rf"\((0?\.\d+|1(?:\.0+)?), {NUM} GiB\)",
        usage,
        spans=4,
    ),
)
