"""vLLM's summary of the memory after the start, and the check of the KV size that it suggests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crossover.logs.builder import Builder, rank_label
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.numbers import GIB, NUM, number
from crossover.logs.table import kind
from crossover.logs.vllm.waterfall import graph_estimate, keep

_MARGIN_GIB = 0.15  # the engine keeps 150 MiB back from what it suggests
_TOLERANCE_GIB = 0.2
_USAGE = (
    ("consumed", re.compile(rf"{NUM} GiB for consumed memory\b")),
    ("weights", re.compile(rf"{NUM} GiB for weights?\b")),
    ("activation", re.compile(rf"{NUM} GiB for peak activation")),
    ("non_torch", re.compile(rf"{NUM} GiB for non-torch memory")),
    (
        "cuda_graph",
        re.compile(rf"{NUM} GiB for (?:CUDA ?Graph|NPU ?graph|ACL ?graph|\w{{2,8}} ?[Gg]raph) memory"),
    ),
)
_IN_USE = re.compile(r"Current (?:kv|KV) cache memory(?: in use is|:) (\d[\d.]{0,20}) (bytes|GiB)")
_ADVISED = re.compile(r"`--kv-cache-memory(?:-bytes)?=(-?\d{1,18})`[^`]{0,30} to fit in")


@dataclass(frozen=True, slots=True)
class _Budget:
    """What the summary says, in GiB: `kv` is what the cache took, `advised` what would have fitted."""

    requested: float
    free: float
    parts: dict[str, float]
    kv: float | None
    advised: float

    def fits(self, estimate: float | None) -> float | None:
        """What the other figures leave for the cache; None where they do not tell.

        Versions that print weights and other memory as one figure count the estimate of the graphs in the
        activations, and the graphs again: the estimate has to come off.
        """
        if "cuda_graph" not in self.parts or "activation" not in self.parts:
            return None
        if "consumed" in self.parts:
            if estimate is None:
                return None
            return self.requested - sum(self.parts.values()) + estimate - _MARGIN_GIB
        return self.requested - sum(self.parts.values()) - _MARGIN_GIB if "weights" in self.parts else None


def usage(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The summary after start: what each part took, what the KV cache took, and what would have fitted."""
    free, visible, requested = (number(match[group]) for group in (1, 2, 4))
    builder.add_memory(line, "visible", visible)
    builder.configure({"memory_fraction": float(match[3])})
    parts: dict[str, float] = {}
    for name, pattern in _USAGE:
        if part := pattern.search(line.text, match.end()):
            parts[name] = number(part[1])
    for name, gib in parts.items():
        if name == "consumed":
            keep(builder, "consumed_gib", line, gib)
        elif name == "activation" and "consumed" in parts:
            keep(builder, "activation_with_graphs_gib", line, gib)
        else:
            builder.add_memory(line, name, gib)
    kv = None
    if in_use := _IN_USE.search(line.text, match.end()):
        kv = round(float(in_use[1].rstrip(".")) / (GIB if in_use[2] == "bytes" else 1), 2)
        builder.add_memory(line, "kv_cache", kv)
        builder.binding_at_rank("kv_cache_gib", line, kv)
    if advised := _ADVISED.search(line.text, match.end()):
        _check(builder, line, _Budget(requested, free, parts, kv, int(advised[1]) / GIB))


def _check(builder: Builder, line: Line, budget: _Budget) -> None:
    """Reports a suggestion that cannot be right, and a cache that is larger than what fits."""
    fits, advised = budget.fits(graph_estimate(builder, rank_label(line))), budget.advised
    wrong = advised < 0 or advised > budget.free or (fits is not None and abs(fits - advised) > _TOLERANCE_GIB)
    if wrong:
        builder.incidents.add(
            Kind.KV_SUGGESTION_WRONG,
            line,
            message=f"the engine suggests {advised:.2f} GiB of KV cache, which cannot be right" + _better(budget, fits),
            rank=rank_label(line),
        )
    if not wrong and "consumed" not in budget.parts:
        fits = advised  # the more exact of two figures that agree
    if fits is not None and budget.kv is not None and budget.kv - fits > 0.005:
        size = f", or set kv-cache-memory to {int(fits * GIB)} bytes ({fits:.2f} GiB)" if fits > 0 else ""
        builder.incidents.add(
            Kind.KV_OVERCOMMIT,
            line,
            message=f"KV cache took {budget.kv:.2f} GiB where {fits:.2f} GiB fit: {budget.kv - fits:.2f} GiB too much",
            advice=f"lower gpu-memory-utilization{size}",
            rank=rank_label(line),
        )


def _better(budget: _Budget, fits: float | None) -> str:
    if fits is None:
        twice = "consumed" in budget.parts and budget.parts.get("cuda_graph", 0) > _TOLERANCE_GIB
        return ": it counts the memory of the graphs twice" if twice else ""
    why = ", as the memory of the graphs counts once" if "consumed" in budget.parts else ""
    return f": requested {budget.requested:.2f} GiB less what is in use leaves {fits:.2f} GiB{why}"


KINDS = (
    kind(
        "usage",
        "Free memory on device",
        rf"Free memory on device [^(\n]{{0,20}}\({NUM}/{NUM} GiB\) on startup\. Desired GPU memory "
        rf"utilization is "
        rf"\((0?\.\d+|1(?:\.0+)?), {NUM} GiB\)",
        usage,
        figure=False,
        spans=4,
    ),
)
