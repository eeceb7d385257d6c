"""Start-up: weights, limits, autotuning, ready; what each rank says is kept until `finish` puts it together.

Sizes that SGLang calls GB are bytes over 2**30, so they are GiB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from crossover.logs.builder import Builder, rank_label
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.sglang.bars import Bars
from crossover.logs.table import LineKind, kind

ELAPSED = re.compile(r"(?:Time elapsed: |elapsed=)(\d+(?:\.\d+)?) ?s\b")
USED = re.compile(r"mem usage=(-?\d+(?:\.\d+)?) ?GB")
LEFT = re.compile(r"avail mem=(\d+(?:\.\d+)?) ?GB")
_DAY_S = 86400.0


@dataclass(slots=True)
class KvLine:
    """One statement of a KV pool; `label` is what the engine calls it, such as Full or SWA.

    `reserved`: only address space so far, which is backed after the capture.
    """

    label: str
    tokens: int | None
    gib: float | None
    reserved: bool = False


@dataclass(slots=True)
class RankStart:
    """What one rank said while it started."""

    rank: Any = None
    loads: int = 0
    reading_s: float | None = None
    load_began_s: float | None = None
    load_began_gib: float | None = None
    visible_gib: float | None = None
    non_torch_gib: float | None = None
    weights_gib: list[float] = field(default_factory=list)
    kv: list[KvLine] = field(default_factory=list)
    pool_seen: bool = False
    final_target: KvLine | None = None
    final_draft: KvLine | None = None
    final_swa_tokens: int | None = None
    full_tokens: int | None = None
    swa_tokens: int | None = None
    unified_gib: float | None = None
    mamba_slots: int | None = None
    mamba_gib: float | None = None
    mamba_rings_gib: float | None = None
    host_cache_gib: float = 0.0
    max_total: int | None = None
    loaded_left_gib: float | None = None
    pooled_left_gib: float | None = None
    graph_gib: dict[str, float] = field(default_factory=dict)
    capture_began_gib: float | None = None
    draft_captures: int = 0
    left_gib: float | None = None


@dataclass(slots=True)
class Start:
    """What all ranks of one server said while it started."""

    ranks: dict[Any, RankStart] = field(default_factory=dict)
    graph_sizes: dict[str, list[int]] = field(default_factory=dict)
    graph_count: int | None = None
    bars: dict[str, Bars] = field(default_factory=dict)
    autotune_began: dict[Any, float | None] = field(default_factory=dict)
    dp_ranks: set[int] = field(default_factory=set)
    dp_counted: int | None = None
    pool_below_context: bool = False


def start_of(builder: Builder) -> Start:
    """Returns the start that the log is in."""
    found: Start | None = builder.single.get("sglang_start")
    if found is None:
        found = builder.single["sglang_start"] = Start()
    return found


_SOURCE = re.compile(r"([\w.-]{1,60}) +\| |\[pod/([\w.-]{1,100})|\((\w{1,60} pid=\d{1,9}(?:, ip=[\w.:]{1,40})?)\) ")


def at_rank(builder: Builder, line: Line) -> RankStart:
    """Returns what the line's rank has said so far.

    Ranks of two services in one log (Compose), or of two actors (Ray), are not the same.
    """
    start = start_of(builder)
    label = rank_label(line)
    if source := _SOURCE.match(line.text):
        label = (source[1] or source[2] or source[3], label)
    rank = line.rank
    if rank and "dp" in rank:
        start.dp_ranks.add(rank["dp"])
    found = start.ranks.get(label)
    if found is None:
        found = start.ranks[label] = RankStart(rank)
    return found


def number(pattern: re.Pattern[str], text: str) -> float | None:
    """Returns the figure that `pattern` finds."""
    match = pattern.search(text)
    return float(match[1]) if match else None


def elapsed_between(began: float | None, ended: float | None) -> float | None:
    """Seconds between two clock readings; a clock without a date may have passed midnight."""
    if began is None or ended is None:
        return None
    gone = ended - began
    if gone < 0 and max(began, ended) <= _DAY_S:
        gone += _DAY_S
    return gone if gone >= 0 else None


# -- weights ----------------------------------------------------------------------------------------------


def _reading(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Reading the files alone (0.5.9). vLLM prints the same, so it does not tell whose log this is."""
    builder.votes -= 1
    at = at_rank(builder, line)
    at.reading_s = float(match[1])
    builder.add_at_rank("weights_load_s", line, f"load {at.loads + 1}", at.reading_s)


def _loaded_by_mlx(builder: Builder, line: Line, match: re.Match[str]) -> None:
    for name in ("weights_load_s", "model_load_s"):
        builder.add_at_rank(name, line, "mlx", float(match[1]))


def _may_begin(builder: Builder) -> None:
    """Weights are loaded once: after a server was ready, another one starts, whose arguments were not logged."""
    if builder.ready_seen:
        builder.new_start()


def _load_begin(builder: Builder, line: Line, match: re.Match[str]) -> None:
    _may_begin(builder)
    at = at_rank(builder, line)
    at.load_began_s, at.load_began_gib = line.seconds(), number(LEFT, match[0])
    at.left_gib = at.load_began_gib if at.load_began_gib is not None else at.left_gib
    if at.visible_gib is None:
        at.visible_gib = at.load_began_gib


def _load_end(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The draft model is a second load of the same rank: its time adds up, its size is reported apart."""
    at = at_rank(builder, line)
    if match[1]:  # reading overlapped with graph capture: only what remained afterwards is the weights' own
        at.loads += 1
        builder.add_at_rank("weights_load_s", line, f"load {at.loads}", float(match[1]))
        return
    text = match[0]
    seconds = number(ELAPSED, text)
    if seconds is None:
        seconds = elapsed_between(at.load_began_s, line.seconds())
    used, left = number(USED, text), number(LEFT, text)
    if used is None and left is not None and at.load_began_gib is not None:
        used = round(at.load_began_gib - left, 2)
    at.load_began_s = at.load_began_gib = None
    at.left_gib = left if left is not None else at.left_gib
    at.loaded_left_gib = left if at.pooled_left_gib is None else at.loaded_left_gib
    at.loads += 1
    reading, at.reading_s = at.reading_s, None
    if seconds is not None:
        builder.add_at_rank("model_load_s", line, f"load {at.loads}", seconds)
    if seconds is not None and reading is None:  # no line of its own: the whole load stands for it
        builder.add_at_rank("weights_load_s", line, f"load {at.loads}", seconds)
    if used is not None:
        if not at.weights_gib:
            builder.at_rank("model_load_gib", line, used)
        at.weights_gib.append(used)


def _distributed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    _may_begin(builder)
    at_rank(builder, line).non_torch_gib = float(match[1])


# -- limits -----------------------------------------------------------------------------------------------

_LIMIT = re.compile(r"\b(\w+)=(-?\d+(?:\.\d+)?)\b")


_LIMIT_NAMES = {
    "max_running_requests": "max_running_requests",
    "chunked_prefill_size": "chunked_prefill_tokens",
    "max_prefill_tokens": "max_prefill_tokens",
    "context_len": "max_model_len",
}


def _pool_below_context(builder: Builder, line: Line, pool: int, context: int) -> None:
    """The server starts all the same; a request of full length can then never run."""
    start = start_of(builder)
    if start.pool_below_context:
        return
    start.pool_below_context = True
    shared = builder.config.get("decode_context_parallel")
    builder.incidents.add(
        Kind.CONTEXT_EXCEEDS_POOL,
        line,
        key="start",
        message=f"the token pool holds {pool} tokens, fewer than the context length of {context}",
        advice="input + output of a request must fit the pool: lower the lengths, or raise the memory fraction"
        + (
            f"; the figure is one rank's, {shared} ranks share a sequence"
            if isinstance(shared, int) and shared > 1
            else ""
        ),
    )


def _limits(builder: Builder, line: Line, match: re.Match[str]) -> None:
    if "leak" in line.text or "available_size" in line.text:  # the pool checker prints the name as well
        return
    found = dict(_LIMIT.findall(match[0]))
    at = at_rank(builder, line)
    at.max_total = pool = int(match[1])
    limits = {common: int(float(found[own])) for own, common in _LIMIT_NAMES.items() if float(found.get(own, 0)) > 0}
    builder.configure(limits)
    if "max_running_requests" in limits:
        builder.per_rank.setdefault("max_running_requests", {})[rank_label(line)] = limits["max_running_requests"]
    if "chunked_prefill_tokens" in limits:
        builder.set("chunked_prefill_tokens", limits["chunked_prefill_tokens"])
    if "max_model_len" in limits:
        builder.set("context_length", limits["max_model_len"])
        if limits["max_model_len"] > pool:
            _pool_below_context(builder, line, pool, limits["max_model_len"])
    left = found.get("available_gpu_mem") or found.get("available_cpu_mem")
    at.left_gib = float(left) if left else at.left_gib


def _context_above_pool(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The engine's own warning (0.5.23), with the capacity that all context-parallel ranks have together."""
    _pool_below_context(builder, line, int(match[1]), int(match[2]))


def _timings(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The engine's own summary (0.5.18 and later); the whole scheduler is what "engine init" means here."""
    found = {name: float(value) for name, value in re.findall(r"\b(\w+)=(\d+(?:\.\d+)?)", match[1])}
    if "scheduler_e2e" in found:
        builder.at_rank("engine_init_s", line, found["scheduler_e2e"])
    if not builder.summed.get("weights_load_s") and found.get("load_weight"):
        builder.add_at_rank("weights_load_s", line, "load 1", found["load_weight"])
    captured = re.search(r"cuda_graph=\{([^}]*)\}", match[1])
    if captured and not builder.summed.get("graph_capture_s"):
        for phase, seconds in re.findall(r"(\w+)=(\d+\.\d+)", captured[1]):
            if float(seconds):
                builder.add_at_rank("graph_capture_s", line, phase, float(seconds))


def _ready(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.ready(line)


KINDS: tuple[LineKind, ...] = (
    kind(
        "load_begin",
        "Load weight begin",
        r"Load weight begin\.(?: avail mem=\d+\.\d+ ?GB)?",
        _load_begin,
        figure=False,
    ),
    kind(
        "reading",
        "Loading weights took",
        r"Loading weights took (\d+(?:\.\d+)?) seconds",
        _reading,
        figure=False,
    ),
    kind("mlx_loaded", "MLX model loaded in", r"MLX model loaded in (\d+\.\d+) ?s\b", _loaded_by_mlx),
    kind(
        "load_end",
        "Load weight end",
        r"Load weight end\.? (?:Committed real weights after CUDA graph capture in (\d+\.\d+) s"
        r"|.{0,600}?(?:avail mem|mem usage)=\d+\.\d+ ?GB(?:, mem usage=-?\d+\.\d+ ?GB)?)",
        _load_end,
    ),
    kind(
        "load_end_short",
        "Load weight end",
        r"Load weight end\.? elapsed=\d+\.\d+ s()(?:, +type=\w+)?\s*$",  # shortened: without the memory
        _load_end,
        figure=False,
        joins=False,
        instead_of="load_end",
    ),
    kind(
        "distributed",
        ("Init torch distributed ends", "Memory baseline taken"),
        r"(?:Init torch distributed ends|Memory baseline taken)\..{0,40}?mem usage=(-?\d+\.\d+) ?GB",
        _distributed,
    ),
    kind(
        "limits",
        "max_total_num_tokens=",
        r"(?<![\w.])max_total_num_tokens=(\d{1,15})(?!\d)(?:, {0,40}\w+=-?[\d.]+(?: ?GB)?){0,12}+(?!, *$)",
        _limits,
        figure=False,
    ),
    kind(
        "context_above_pool",
        "fewer than --context-length",
        r"KV pool holds (\d{1,15}) tokens, fewer than --context-length (\d{1,15})",
        _context_above_pool,
    ),
    kind("timings", "Engine startup timings", r"Engine startup timings \(s\): (.*)(?<!,) *$", _timings),
    kind(
        "ready",
        "fired up and ready to roll",
        r"The server is fired up and ready to roll",
        _ready,
        figure=False,
    ),
)
