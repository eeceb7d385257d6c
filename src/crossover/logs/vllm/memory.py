"""vLLM's KV pool: every wording from 0.5 on, in GiB, blocks, tokens and requests."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.model import Pool
from crossover.logs.numbers import GIB, NUM, number, whole
from crossover.logs.table import kind
from crossover.logs.vllm.waterfall import in_gib


def kv_memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Memory that the KV cache may take on one GPU; below zero, the rest needs more than the engine may take."""
    size = float(match[1].replace(",", ""))
    builder.binding_at_rank("kv_cache_gib", line, size)
    builder.add_memory(line, "kv_cache", size)
    if size < 0:
        message = f"nothing is left for the KV cache: {-size:.2f} GiB are missing before its first block"
        builder.incidents.add(Kind.KV_TOO_SMALL, line, message=message, key="none", repeats=False)


def cpu_kv_memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The CPU backend: `Explicitly set (1.0/22.46) GiB for KV cache on node 0.`"""
    gib = number(match[1] or match[3])
    builder.binding_at_rank("kv_cache_gib", line, gib)
    builder.add_memory(line, "kv_cache", gib)
    if match[2]:
        builder.add_memory(line, "visible", number(match[2]))


def tpu_memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`total_hbm_limit_gb=94.75GiB | ... | total_hbm_avail_gb=63.95GiB`: what is available goes to the KV cache."""
    builder.add_memory(line, "visible", number(match[1]))
    builder.binding_at_rank("kv_cache_gib", line, number(match[2]))
    builder.add_memory(line, "kv_cache", number(match[2]))


def kv_tokens(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Capacity of one engine in tokens, as the engine counts it (hybrid models included)."""
    builder.binding_at_rank("kv_cache_tokens", line, whole(match[1]))


def concurrency(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Requests of full length that fit: as printed, never tokens over length; not those that read from the host."""
    if match[1] is None:
        builder.set("max_concurrency_at_tokens", whole(match[2]))
        builder.binding_at_rank("max_concurrency", line, number(match[3]))


def blocks(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Capacity in blocks; tokens follow in `resolve`. V0 names the host's blocks too, or has a CPU only."""
    builder.binding_at_rank("gpu_blocks", line, int(match[3]))
    if (default := builder.single.get("kv_default_gib")) is not None:  # stated before the engine names its version
        builder.binding_at_rank("kv_cache_gib", line, default)
        builder.add_memory(line, "kv_cache", default)
    if match[4] or match[2] == "CPU":
        builder.single["v0_device"] = match[1] or match[2]


def blocks_set(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Overriding num_gpu_blocks=1000 with num_gpu_blocks_override=512`: what was measured does not count."""
    builder.per_rank["gpu_blocks"] = {None: int(match[1])}


def offloaded(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`SimpleCPUOffloadScheduler: Allocating 8192 CPU blocks (64.00 GB, mode=eager)`: cache outside the device."""
    builder.raw["kv_offload_gib"] = number(match[1])


def ascend_memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Ascend before 0.14 prints bytes: `Available memory: 11423615078, total memory: 65796046848`."""
    size = round(int(match[1]) / GIB, 4)
    builder.binding_at_rank("kv_cache_gib", line, size)
    builder.add_memory(line, "kv_cache", size)
    builder.add_memory(line, "visible", round(int(match[2]) / GIB, 4))


def gaudi_kv(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Gaudi divides what is free after the profiling run between graphs and KV cache; the share is of what is free."""
    builder.configure({"memory_fraction": float(match[1])})
    size = in_gib(match[2], match[3])
    builder.binding_at_rank("kv_cache_gib", line, size)
    builder.add_memory(line, "kv_cache", size)


def gaudi_profile(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Gaudi's profiling run: what it took are the activations."""
    builder.add_memory(line, "activation", in_gib(match[1], match[2]))


def kv_reduced(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Part of the KV memory goes to something else."""
    builder.per_rank.setdefault("kv_cache_gib", {}).clear()
    kv_memory(builder, line, match)


_BLOCK_SIZES = (1, 8, 16, 32, 64, 128, 256)
_V0_BLOCK_SIZE = {
    **dict.fromkeys(("GPU", "cuda", "rocm", "CPU", "XPU", "xpu", "TPU", "tpu", "OpenVINO GPU"), 16),
    "OpenVINO CPU": 32,
    **dict.fromkeys(("HPU", "hpu", "NPU", "npu"), 128),
}  # `cpu` had 16 or 128, depending on the kernels that were installed


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
    """Blocks x block size: the configured one, else what fits the concurrency, else V0's default for the device."""
    count = builder.smallest("gpu_blocks")
    if count is None:
        return None
    size = builder.config.get("block_size")
    ratio, length = builder.smallest("max_concurrency"), builder.single.get("max_concurrency_at_tokens")
    source = "configured"
    if ratio is not None and length:
        fitting = [one for one in {*_BLOCK_SIZES, size} if isinstance(one, int) and _fits(count, one, length, ratio)]
        if size not in fitting:
            size, source = (fitting[0], "fits the printed concurrency") if len(fitting) == 1 else (None, "")
    elif not isinstance(size, int):
        size, source = _V0_BLOCK_SIZE.get(builder.single.get("v0_device", "")), "default"
    if not isinstance(size, int):
        return None
    builder.raw["kv_cache_tokens_derived"] = f"{int(count)} blocks x {size} tokens ({source})"
    return count * size


def _fits(count: float, size: int, length: int, ratio: float) -> bool:
    return abs(count * size / length - ratio) <= 0.0051


KINDS = (
    kind(
        "offloaded",
        "OffloadScheduler: Allocating ",
        rf"OffloadScheduler: Allocating \d{{1,12}} (?:CPU|offload) blocks \({NUM} GB",
        offloaded,
    ),
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
    kind(
        "kv_cpu",
        "GiB for KV cache",
        rf"set \({NUM}/{NUM}\) GiB for KV cache|Using {NUM} GiB for KV cache",
        cpu_kv_memory,
    ),
    kind(
        "kv_cpu_default",
        "backend is not set, using",
        r"KVCACHE_SPACE \((?:GB|GiB)\) for \w{3,8} backend is not set, using (\d{1,4}) by default",
        lambda builder, line, match: builder.set("kv_default_gib", float(match[1])),
    ),
    kind(
        "kv_ascend",
        "Available memory: ",
        r"Available memory: (\d{6,15}), total memory: (\d{9,15})\b",
        ascend_memory,
        figure=False,
    ),
    kind(
        "kv_tpu",
        "total_hbm_limit_gb=",
        rf"total_hbm_limit_gb={NUM} ?GiB[^\n]{{1,160}}?total_hbm_avail_gb={NUM} ?GiB",
        tpu_memory,
    ),
    kind(
        "kv_gaudi",
        "reserved for HPUGraphs",
        r"usable \(gpu_memory_utilization=(0?\.\d+|1(?:\.0+)?)\), [^,\n]{1,24} reserved for HPUGraphs [^\n]{1,120}?"
        rf"\b{NUM} (GiB|MiB) reserved for (?:usable )?KV cache(?! dummy)",
        gaudi_kv,
    ),
    kind(
        "profile_gaudi",
        "Model profiling run took ",
        rf"Model profiling run took {NUM} (GiB|MiB) of device memory",
        gaudi_profile,
    ),
    kind("kv_reduced", "KV cache memory reduced to", rf"KV cache memory reduced to {NUM} GiB", kv_reduced),
    kind("kv_tokens", "KV cache size:", rf"KV cache size: {NUM} tokens", kv_tokens),
    kind(
        "concurrency",
        "oncurrency for ",
        rf"(steady-state )?[Mm]aximum (?:\w{{1,20}} ){{0,3}}concurrency for {NUM} tokens per request: {NUM}x",
        concurrency,
        spans=4,
    ),
    kind(
        "blocks",
        (" blocks: ",),
        r"(?:(OpenVINO [CG]PU)[^\s:]{0,8}: )?(?<!, )# ([A-Za-z]{2,12}) blocks: (\d+)"
        r"((?:, # CPU|; # swap) blocks: \d+)?",
        blocks,
        figure=False,
    ),
    kind(
        "blocks_set",
        "Overriding num_gpu_blocks=",
        r"Overriding num_gpu_blocks=[1-9]\d* with num_gpu_blocks_override=(\d+)",
        blocks_set,
        figure=False,
    ),
    kind(
        "cache_config",
        "num_gpu_blocks is:",
        r"num_gpu_blocks is: (\d+)\b",
        lambda builder, line, match: builder.binding_at_rank("gpu_blocks", line, int(match[1])),
    ),
)
