"""vLLM's memory, part by part: what each version prints, and what follows from it (`resolve`).

Weights and non-torch memory come apart or as one figure, activations with or without the estimate of the graphs,
depending on the version; the report has one shape: parts that add up to the visible memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crossover.logs.builder import Builder, rank_label
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.model import MemoryItem, Rank
from crossover.logs.numbers import NUM, number
from crossover.logs.table import Handler, kind

_PARTS = ("weights", "non_torch", "activation", "cuda_graph", "kv_cache", "draft_kv", "mamba_state")
_NEEDED = ("visible", "weights", "activation", "kv_cache")
_ROUNDING_GIB = 0.05


def item(name: str) -> Handler:
    """A handler for one item of the waterfall, GiB in group 1."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        builder.add_memory(line, name, number(match[1]))

    return handle


def keep(builder: Builder, name: str, line: Line, value: float) -> None:
    """Keeps a figure of one rank; a later statement of the same rank counts."""
    builder.per_rank.setdefault(name, {})[rank_label(line)] = value


def in_gib(text: str, unit: str) -> float:
    """Returns a printed size in GiB; `unit` is MiB, or GiB (which older versions call GB)."""
    return round(number(text) / 1024, 4) if unit == "MiB" else number(text)


def v0_visible(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`can use total_gpu_memory (79.19GiB) x gpu_memory_utilization (0.90) = 71.27GiB`."""
    builder.add_memory(line, "visible", number(match[1]))
    builder.configure({"memory_fraction": float(match[2])})


# From 0.6.4 on V0 and V1 (at DEBUG) print these, on one line, on several, or in a table; `take` and `=` come and go.
_IS = r"(?: takes?)?[ =\t(]{1,12}"
_ITEMS = (
    ("visible", re.compile(rf"total_gpu_memory{_IS}{NUM} ?GiB")),
    ("weights", re.compile(rf"(?:model weights|weights memory:){_IS}{NUM} ?GiB")),
    ("non_torch", re.compile(rf"(?:non_torch_memory|non-torch forward increase memory:){_IS}{NUM} ?GiB")),
    ("activation", re.compile(rf"(?:PyTorch activation peak memory|torch peak memory increase:){_IS}{NUM} ?GiB")),
    (
        "kv_cache",
        re.compile(rf"(?:memory reserved for KV Cache is|kv_cache_size|available_kv_cache_memory){_IS}{NUM} ?GiB"),
    ),
)
_FACTS = (
    ("peak_torch_gib", re.compile(rf"\bpeak_torch_memory{_IS}{NUM} ?GiB")),
    ("consumed_gib", re.compile(rf"total consumed \(from mem_get_info\): {NUM} ?GiB")),
)
# Characters; what stands further on is another statement, glued behind this one.
_LONGEST_STATEMENT = 2_000
_FRACTION = re.compile(r"gpu_memory_utilization[ =\t]{1,12}(0?\.\d+|1\.0+)\b")


def profile(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """A line with several items; False where it has none."""
    found = False
    reach = match.start(), match.start() + _LONGEST_STATEMENT
    for name, pattern in _ITEMS:
        if part := pattern.search(line.text, *reach):
            found = True
            builder.add_memory(line, name, number(part[1]))
            if name == "weights":
                keep(builder, "weights_gib", line, number(part[1]))
            if name == "kv_cache":
                builder.binding_at_rank("kv_cache_gib", line, number(part[1]))
    for name, pattern in _FACTS:
        if part := pattern.search(line.text, *reach):
            found = True
            keep(builder, name, line, number(part[1]))
    if fraction := _FRACTION.search(line.text, *reach):
        found = True
        builder.configure({"memory_fraction": float(fraction[1])})
    return found


def estimated(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """What the graphs will take, before they are captured. A negative figure makes the KV cache too large."""
    gib = float(match[1])
    keep(builder, "graph_estimate_gib", line, gib)
    if gib < 0:
        builder.incidents.add(
            Kind.KV_OVERCOMMIT,
            line,
            message=f"the engine estimates {gib:.2f} GiB for the graphs, so that it sizes the KV cache too large",
            advice="switch the estimate of the graphs off, or set kv-cache-memory",
            key="estimate",
            rank=rank_label(line),
        )


def estimate_off(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The estimate of the graphs is made but not used."""
    builder.single["graph_estimate_off"] = True


def pool_of_graphs(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`CUDA graph pool memory: 0.44 GiB (actual), 0.36 GiB (estimated)`."""
    builder.add_memory(line, "cuda_graph", number(match[1]))
    if match[2]:
        keep(builder, "graph_estimate_gib", line, number(match[2]))


def graph_estimate(builder: Builder, label: Any) -> float | None:
    """What the activations of this rank hold for graphs; None where the log does not tell."""
    if builder.single.get("graph_estimate_off"):
        return 0.0
    values: Mapping[Any, float] = builder.per_rank.get("graph_estimate_gib", {})
    return values.get(label, max(values.values()) if values else None)


def resolve(builder: Builder) -> None:
    """Completes the waterfall of each rank: parts that follow from others, and what remains."""
    ranks: dict[Any, Rank | None] = {label: found.rank for (_, label), found in builder.memory.items()}
    for label, rank in ranks.items():
        _split_consumed(builder, label, rank)
        _add_activation(builder, label, rank)
        graphs = _largest(builder, "graph_capture_gib", label)
        if ("cuda_graph", label) not in builder.memory and graphs is not None:
            _put(builder, "cuda_graph", label, rank, graphs)
        _add_remaining(builder, label, rank)


def _put(builder: Builder, name: str, label: Any, rank: Rank | None, gib: float) -> None:
    builder.memory[name, label] = MemoryItem(name, round(gib, 2), rank)


def _gib(builder: Builder, name: str, label: Any) -> float | None:
    found = builder.memory.get((name, label))
    return None if found is None else found.gib


def _largest(builder: Builder, name: str, label: Any) -> float | None:
    parts = builder.summed.get(name, {}).get(label)
    if parts:
        return float(sum(parts.values()))
    return builder.per_rank.get(name, {}).get(label)


def _split_consumed(builder: Builder, label: Any, rank: Rank | None) -> None:
    """Newer versions print weights and other memory as one figure; the size of the loaded model tells them apart."""
    consumed = builder.per_rank.get("consumed_gib", {}).get(label)
    if consumed is None:
        return
    loaded = builder.per_rank.get("model_load_gib", {}).get(label)
    weights = builder.per_rank.get("weights_gib", {}).get(label, loaded)
    if weights is not None and weights <= consumed:
        _put(builder, "weights", label, rank, weights)
        _put(builder, "non_torch", label, rank, consumed - weights)
    else:
        _put(builder, "weights", label, rank, consumed)


def _add_activation(builder: Builder, label: Any, rank: Rank | None) -> None:
    """Activations without the graphs that are counted for themselves, or without the weights."""
    weights, peak = _gib(builder, "weights", label), builder.per_rank.get("peak_torch_gib", {}).get(label)
    if peak is not None and weights is not None and peak >= weights:
        _put(builder, "activation", label, rank, peak - weights)
    printed = builder.per_rank.get("activation_with_graphs_gib", {}).get(label)
    if printed is not None:
        without = printed - (graph_estimate(builder, label) or 0.0)
        _put(builder, "activation", label, rank, without if without >= 0 else printed)


def _add_remaining(builder: Builder, label: Any, rank: Rank | None) -> None:
    known = {name: gib for name in ("visible", *_PARTS) if (gib := _gib(builder, name, label)) is not None}
    builder.memory.pop(("remaining", label), None)
    if not all(name in known for name in _NEEDED):
        return
    left = 2 * known["visible"] - sum(known.values())
    if left >= -_ROUNDING_GIB:
        _put(builder, "remaining", label, rank, max(left, 0.0))
    else:
        builder.raw["memory_remaining_withheld"] = f"the parts exceed the visible memory by {-left:.2f} GiB"


def requested(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Initial free memory: 78.80 GiB; Requested memory: 0.90 (util), 71.29 GiB`: visible is requested over share."""
    share, wanted = float(match[1]), number(match[2])
    if not 0 < share <= 1:
        return
    builder.configure({"memory_fraction": share})
    if _gib(builder, "visible", rank_label(line)) is None:
        builder.add_memory(line, "visible", round(wanted / share, 2))
        builder.raw["visible_derived"] = f"{wanted:g} GiB requested / {share:g}"


KINDS = (
    kind(
        "requested",
        "; Requested memory: ",
        rf"; Requested memory: (0?\.\d+|1\.0+) \(util\), {NUM} GiB",
        requested,
    ),
    kind(
        "v0_visible",
        "can use total_gpu_memory",
        rf"can use total_gpu_memory \({NUM} ?GiB\) x gpu_memory_utilization \((0?\.\d+|1\.0+)\)",
        v0_visible,
    ),
    kind(
        "profile",
        (
            "model weights take",
            "Total non KV cache memory",
            "Memory profiling results:",
            "] total_gpu_memory ",
            "] non_torch_memory ",
            "PyTorch activation peak memory ",
            "available_kv_cache_memory ",
            "] gpu_memory_utilization ",
        ),
        r"model weights take\s+\d|Total non KV cache memory: \d|Memory profiling results: \w"
        r"|(?:total_gpu_memory|non_torch_memory|available_kv_cache_memory|gpu_memory_utilization)[ \t]{1,12}\d"
        r"|PyTorch activation peak memory(?: takes)?[ \t]{1,12}\d",
        profile,
        spans=4,
    ),
    kind(
        "snapshot",
        "worker init memory snapshot:",
        rf"worker init memory snapshot: [^\n]{{1,200}}?total_memory={NUM}GiB",
        item("visible"),
    ),
    kind(
        "graph_estimate",
        ("Estimated CUDA graph memory:", "Estimated ACL graph memory:", "Estimated NPU graph memory:"),
        r"Estimated \w{2,8} graph memory: (-?\d[\d.]{0,12}) GiB total",
        estimated,
    ),
    kind(
        "graph_estimate_off",
        "graph memory profiling is disabled",
        r"CUDA graph memory profiling is disabled",
        estimate_off,
        figure=False,
    ),
    kind(
        "graph_pool",
        " graph pool memory:",
        rf"\w{{2,8}} graph pool memory: {NUM} GiB \(actual\)(?:, {NUM} GiB \(estimated\))?",
        pool_of_graphs,
    ),
)
