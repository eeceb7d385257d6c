"""Cache pools as they are allocated: target, draft, sliding window, Mamba states.

Which pool is which is decided in `finish`, when all lines of a rank are known.
"""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.lines import Line
from crossover.logs.sglang.startup import LEFT, KvLine, at_rank, number, start_of
from crossover.logs.sglang.values import cache_dtype
from crossover.logs.table import LineKind, kind


def _gib(match: re.Match[str]) -> float | None:
    if match["kv"]:
        return float(match["kv"])
    return round(float(match["k"]) + float(match["v"]), 2) if match["k"] else None


def _kv(builder: Builder, line: Line, match: re.Match[str]) -> None:
    at = at_rank(builder, line)
    if match["dtype"] and not at.pool_seen:  # what comes after the first one may be the draft's
        builder.configure({"kv_cache_dtype": cache_dtype(match["dtype"])})
    at.pool_seen = True
    tokens = int(match["tokens"].replace(",", "")) if match["tokens"] else None
    reserved = match["state"].startswith("VA")
    at.kv.append(KvLine((match["label"] or "").lower(), tokens, _gib(match), reserved))


def _kv_final(builder: Builder, line: Line, match: re.Match[str]) -> None:
    at = at_rank(builder, line)
    left = number(LEFT, match["rest"])
    at.left_gib = left if left is not None else at.left_gib
    pool = KvLine("", int(match["tokens"]), float(match["kv"]))
    if match["draft"]:
        at.final_draft = pool
    else:
        at.final_target = pool


def _final_split(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The two pools of a sliding-window model after the capture; 0 where there is no window."""
    at_rank(builder, line).final_swa_tokens = int(match[1]) or None


def _swa(builder: Builder, line: Line, match: re.Match[str]) -> None:
    at = at_rank(builder, line)
    at.full_tokens, at.swa_tokens = (int(match[1]) if match[1] else None), int(match[2])


def _dsv4(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Printed for what fits, and again for what a limit leaves of it: the last one is allocated."""
    _swa(builder, line, match)
    at = at_rank(builder, line)
    if all(pool.gib is None for pool in at.kv):
        at.kv = [KvLine("full", at.full_tokens, None), KvLine("swa", at.swa_tokens, None)]


_MAMBA_PART = re.compile(r"([a-z_]+)(?: size)?:? (\d+(?:\.\d+)?) ?GB")


def _mamba(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    at = at_rank(builder, line)
    parts = [float(part[2]) for part in _MAMBA_PART.finditer(match["parts"])]
    if not parts:
        return False
    at.mamba_slots = int(match["slots"]) if match["slots"] else None
    at.mamba_gib = round(sum(parts), 2)
    return True


_RING_PART = re.compile(r"\b[a-z]+=(\d+\.\d+) ?GB")


def _mamba_rings(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Ring buffers of recent inputs that stand beside the states; their line follows that of the states."""
    parts = [float(part) for part in _RING_PART.findall(match[1])]
    at_rank(builder, line).mamba_rings_gib = round(sum(parts), 2)


def _swa_pool(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Both pools of a sliding-window model together; a draft model has one of its own after it."""
    at = at_rank(builder, line)
    if at.swa_tokens is None:
        at.full_tokens, at.swa_tokens = int(match["full"]), int(match["swa"])
    if match["gib"] and at.unified_gib is None:
        at.unified_gib = float(match["gib"])


def _unified(builder: Builder, line: Line, match: re.Match[str]) -> None:
    at_rank(builder, line).unified_gib = float(match[1])


def _host_cache(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The cache in host memory (HiCache): pools of one rank add up, and the largest rank counts."""
    at_rank(builder, line).host_cache_gib += float(match[1])
    ranks = start_of(builder).ranks.values()
    builder.configure({"hierarchical_cache_gib": round(max(at.host_cache_gib for at in ranks), 2)})


def _pool_end(builder: Builder, line: Line, match: re.Match[str]) -> None:
    at = at_rank(builder, line)
    at.left_gib = float(match[1])
    if at.pooled_left_gib is None:
        at.pooled_left_gib = at.left_gib


_GIB = (
    r"(?:K (?:size:? )?(?P<k>\d{1,9}\.\d+) ?GB, V (?:size:? )?(?P<v>\d{1,9}\.\d+) ?GB"
    r"|KV (?:size:? )?(?P<kv>\d{1,9}\.\d+) ?GB)"
)

KINDS: tuple[LineKind, ...] = (
    kind(
        "kv_cache",
        ("KV Cache is allocated", "KV Cache VA upper bound"),
        r"(?:\b(?P<label>Full|SWA) )?KV Cache (?P<state>is allocated|VA upper bound)[. ]{0,6}"
        rf"(?:dtype: (?P<dtype>[\w.]+), )?(?:#tokens: (?P<tokens>\d{{1,3}}(?:,\d{{3}}){{1,4}}|\d{{1,15}}), )?{_GIB}",
        _kv,
    ),
    kind(
        "kv_cache_final",
        "Post-capture KV sizing:",
        r"Post-capture KV sizing: (?P<draft>draft )?KV cache allocated\. dtype: [\w.]+, "
        r"#tokens: (?P<tokens>\d{1,15}), KV size: (?P<kv>\d+\.\d+) GB(?P<rest>(?:, avail mem=\d+\.\d+ GB)?)",
        _kv_final,
        figure=False,
    ),
    kind(
        "kv_cache_final_split",
        "Post-capture KV sizing: full_layer_tokens=",
        r"Post-capture KV sizing: full_layer_tokens=\d{1,15}, swa_layer_tokens=(\d{1,15})\b",
        _final_split,
    ),
    kind(
        "sliding_window_pools",
        "liding window memory pool",
        r"liding window memory pool(?: \(all SWA\))?\. (?:full_layer_tokens=(\d{1,15}), )?"
        r"swa_layer_tokens=(\d{1,15})",
        _swa,
    ),
    kind(
        "swa_pool",
        "SWAKVPool",
        r"SWAKVPool (?:mem usage: (?P<gib>\d+(?:\.\d+)?)|VA upper bound: [\d.]+) GB, "
        r"swa size: (?P<swa>\d{1,15}), full size: (?P<full>\d{1,15})",
        _swa_pool,
    ),
    kind(
        "unified_pool",
        "UnifiedKVPool ",
        r"UnifiedKVPool [\w ]{1,40}: total_bytes=(\d+\.\d+) GB",
        _unified,
        figure=False,
    ),
    kind("dsv4_pools", "DSV4 pool sizes", r"DSV4 pool sizes: full=(\d{1,15}), swa=(\d{1,15})", _dsv4),
    kind(
        "mamba_cache",
        "Mamba Cache is allocated",
        r"Mamba Cache is allocated\. ?(?:max_mamba_cache_size: (?P<slots>\d{1,12}),? ?)?(?P<parts>.*GB)(?!,)",
        _mamba,
    ),
    kind(
        "mamba_rings",
        "ReplaySSM ring buffers allocated",
        r"ReplaySSM ring buffers allocated \([^)\n]{1,80}\): (.*)",
        _mamba_rings,
    ),
    kind(
        "host_cache",
        " host memory for ",
        r"Allocating (\d+\.\d+) ?GB host memory for (?:hierarchical|DSA|NSA|V4)\b",
        _host_cache,
        figure=False,
    ),
    kind("memory_pool_end", "Memory pool end", r"Memory pool end\. avail mem=(\d+\.\d+) ?GB", _pool_end),
)
