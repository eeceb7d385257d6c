"""Puts together what the ranks said: pools, memory, capacity, and what needs more than one line."""

from __future__ import annotations

from typing import Any

from crossover.logs.builder import Builder
from crossover.logs.model import MemoryItem, Pool
from crossover.logs.sglang.bars import CAPTURING, CAPTURING_PREFILL, COMPILING, DEEP_GEMM, WEIGHTS
from crossover.logs.sglang.batches import Batches, flush
from crossover.logs.sglang.graphs import is_secondary
from crossover.logs.sglang.startup import KvLine, RankStart, Start, start_of


def finish(builder: Builder) -> None:
    """Called at the end of the log, or for a report on the way: may run again, and then says the same."""
    flush(builder)
    builder.facts["own_ready"] = True
    builder.single.setdefault("ready", None)
    start = start_of(builder)
    _engines(builder, start)
    _pools(builder, start)
    _memory(builder, start)
    _graphs(builder, start)
    _bars(builder, start)


def _engines(builder: Builder, start: Start) -> None:
    """Without printed arguments, the highest data-parallel rank seen says how many engines there are.

    A prefix names the rank only where there are several. An excerpt that shows few of them may not hold the last one:
    then their number stays unknown.
    """
    seen = start.dp_ranks | Batches.of(builder).dp_ranks
    if seen and builder.single.get("dp_size") in (None, start.dp_counted):
        start.dp_counted = max(seen) + 1 if len(seen) > max(1, max(seen) // 2) else None
        builder.single["dp_size"] = start.dp_counted


def pools_of(at: RankStart) -> dict[str, KvLine]:
    """Returns the pools of one rank by name: target, draft, swa.

    Which line is which is not printed: a sliding-window model has a full and a window pool, in either order;
    the first pool of full length is the target's, and what comes after belongs to the draft model.
    """
    found: dict[str, KvLine] = {}
    for line in at.kv:
        window = line.label == "swa" or (
            line.label == "" and at.swa_tokens is not None and line.tokens == at.swa_tokens != at.full_tokens
        )
        name = "swa" if window and "swa" not in found else "draft" if "target" in found else "target"
        if name == "draft" and not at.rank and line == found["target"]:
            continue  # another rank's line, in a log whose prefixes were cut off
        if name == "draft" and name in found:
            found[name] = KvLine("", found[name].tokens, _plus(found[name].gib, line.gib), line.reserved)
        else:
            found[name] = line
    if not at.kv and at.swa_tokens is not None:  # their own lines are missing: the sizes alone are known
        found = {"target": KvLine("full", at.full_tokens, None)} if at.full_tokens is not None else {}
        found["swa"] = KvLine("swa", at.swa_tokens, None)
    if at.final_target:
        found["target"] = at.final_target
    if at.final_draft:
        found["draft"] = at.final_draft
    if at.final_swa_tokens and at.final_target:  # its size is part of the target's
        found["swa"] = KvLine("swa", at.final_swa_tokens, None)
    return {name: pool for name, pool in found.items() if not pool.reserved}


def _plus(one: float | None, other: float | None) -> float | None:
    return round((one or 0.0) + (other or 0.0), 2) if (one, other) != (None, None) else None


def _binding(pools: list[KvLine]) -> KvLine:
    """The smallest pool: it binds, as all ranks hold the same tokens."""
    return min(pools, key=lambda pool: (pool.tokens is None, pool.tokens or 0, pool.gib or 0.0))


def _pools(builder: Builder, start: Start) -> None:
    by_name: dict[str, list[KvLine]] = {}
    for at in start.ranks.values():
        for name, pool in pools_of(at).items():
            by_name.setdefault(name, []).append(pool)
    if slots := [at for at in start.ranks.values() if at.mamba_gib is not None]:
        by_name["mamba"] = [KvLine("", at.mamba_slots, _mamba_gib(at)) for at in slots]
    builder.pools = {}
    for name in ("target", "draft", "swa", "mamba"):
        if name in by_name:
            pool = _binding(by_name[name])
            builder.pools[name] = {None: Pool(name, pool.tokens, pool.gib)}
    target = builder.pools.get("target", {}).get(None)
    draft = builder.pools.get("draft", {}).get(None)
    _draft_in_virtual_space(builder, target, draft)
    totals = [at.max_total for at in start.ranks.values() if at.max_total is not None]
    tokens = target.tokens if target and target.tokens is not None else min(totals, default=None)
    if target and target.tokens is None and tokens is not None:  # early 0.4: only the limits' line has them
        builder.pools["target"] = {None: Pool("target", tokens, target.gib)}
    builder.per_rank["kv_cache_tokens"] = {None: tokens} if tokens is not None else {}
    builder.per_rank["kv_cache_gib"] = {None: target.gib} if target and target.gib is not None else {}
    builder.single["kv_cache_tokens_total"] = _total(start, tokens, builder.single.get("dp_size", 1))


def _total(start: Start, tokens: int | None, engines: int | None) -> int | None:
    """Capacity over all engines: their sum where each has told of its pool, else as if all had the smallest."""
    smallest: dict[int, int] = {}
    for at in start.ranks.values():
        pool = pools_of(at).get("target")
        capacity = pool.tokens if pool and pool.tokens is not None else at.max_total
        if capacity is not None:
            dp = (at.rank or {}).get("dp", 0)
            smallest[dp] = min(capacity, smallest.get(dp, capacity))
    if len(smallest) == engines:
        return sum(smallest.values())
    return tokens * engines if tokens is not None and engines is not None else None


def _draft_in_virtual_space(builder: Builder, target: Pool | None, draft: Pool | None) -> None:
    """A draft model is not sharded: its pool spans the tokens of all context-parallel ranks."""
    ranks = builder.config.get("decode_context_parallel")
    if not (target and draft and target.tokens and isinstance(ranks, int) and ranks > 1):
        return
    if draft.tokens == target.tokens * ranks:
        builder.keep(
            "draft_pool_virtual", f"draft pool of {draft.tokens} tokens = {target.tokens} x {ranks} context ranks"
        )


def _mamba_gib(at: RankStart) -> float | None:
    return _plus(at.mamba_gib, at.mamba_rings_gib) if at.mamba_gib is not None else None


def _graph_gib(at: RankStart) -> float | None:
    """A capture may free more than it takes; all of them together cannot."""
    total = round(sum(at.graph_gib.values()), 2) if at.graph_gib else None
    return total if total is not None and total >= 0 else None


def _kv_taken(at: RankStart) -> float | None:
    """Where no line states the size of the pool (before 0.4.1): what went between the weights and the pool's end.

    It includes the table of requests, so it stands in the waterfall only.
    """
    if at.unified_gib is not None:
        return at.unified_gib
    before, after = at.loaded_left_gib, at.pooled_left_gib
    return round(before - after, 2) if before is not None and after is not None and at.mamba_gib is None else None


def _memory(builder: Builder, start: Start) -> None:
    """The waterfall per rank. `visible` is what was free before the weights, plus what came before that."""
    builder.memory = {}
    for label, at in start.ranks.items():
        pools = pools_of(at)
        visible = at.visible_gib
        if visible is not None and at.non_torch_gib is not None:
            visible = round(visible + at.non_torch_gib, 2)
        draft, window = pools.get("draft"), pools.get("swa")
        target = pools.get("target")
        stated = _plus(target.gib if target else None, window.gib if window else None)
        items: dict[str, float | None] = {
            "visible": visible,
            "non_torch": at.non_torch_gib,
            "weights": round(sum(at.weights_gib), 2) if at.weights_gib else None,
            "kv_cache": stated if stated is not None else _kv_taken(at),
            "draft_kv": draft.gib if draft else None,
            "mamba_state": _mamba_gib(at),
            "cuda_graph": _graph_gib(at),
            "remaining": at.left_gib,
        }
        for item, gib in items.items():
            if gib is not None:
                builder.memory[item, label] = MemoryItem(item, gib, at.rank)


def _graphs(builder: Builder, start: Start) -> None:
    taken = builder.summed.get("graph_capture_gib", {})
    for label in [label for label, parts in taken.items() if sum(parts.values()) < 0]:
        del taken[label]
    first = next((sizes for phase, sizes in start.graph_sizes.items() if not is_secondary(phase)), None)
    sizes: Any = first or next(iter(start.graph_sizes.values()), None)
    builder.single["graph_sizes"] = sizes
    if sizes is None:
        builder.single["graph_count"] = start.graph_count


def _prefill_capture_stated(builder: Builder) -> bool:
    """Before 0.5.6 no line says how long the second capture took, that of prefill graphs."""
    stated = builder.summed.get("graph_capture_s", {}).values()
    return any("prefill" in phase or "piecewise" in phase for parts in stated for phase in parts)


def _bars(builder: Builder, start: Start) -> None:
    """What progress bars tell, by the second: they stand in where no line states the time.

    The bar of compiling covers the graphs that are stated one by one, so the longer of the two counts.
    """
    taken = {label: sum(bars.seconds.values()) for label, bars in start.bars.items() if bars.seconds}
    for name, label in (("weights_load_s", WEIGHTS), ("graph_capture_s", CAPTURING)):
        builder.per_rank.pop(name, None)
        if label in taken and not builder.summed.get(name):
            builder.per_rank[name] = {None: taken[label]}
    if CAPTURING_PREFILL in taken and not _prefill_capture_stated(builder):
        builder.per_rank["graph_capture_s"] = {
            None: round((builder.longest("graph_capture_s") or 0.0) + taken[CAPTURING_PREFILL], 2)
        }
    if COMPILING in taken:
        builder.per_rank["compile_s"] = {None: taken[COMPILING]}
    if DEEP_GEMM in taken:
        tuned = [
            sum(seconds for part, seconds in parts.items() if part.startswith("autotune"))
            for parts in builder.summed.get("kernel_warmup_s", {}).values()
        ]
        builder.per_rank["kernel_warmup_s"] = {None: taken[DEEP_GEMM] + max(tuned, default=0.0)}
