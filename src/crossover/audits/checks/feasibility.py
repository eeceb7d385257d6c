"""What a configuration promises against what it can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossover.audits.finding import Finding, passed
from crossover.audits.printed import plain
from crossover.audits.table import Table, number, variant_of
from crossover.confounds.names import canonical_arguments

IDENTITY = "context length <= token pool; input + output <= context length; concurrency <= request limit"
TOLERANCE = "none"
REASON = "a request as long as the stated context can never be served, whatever the flags say"
_POOLS = ("full_attention_pool_tokens", "kv_cache_tokens", "kv_tokens", "pool_tokens", "max_total_num_tokens")


def check_table(table: Table) -> Iterator[Finding]:
    """Judges each variant's context length against its pool, and the workload against both."""
    for variant in dict.fromkeys((*table.section("memory"), *table.section("configuration"))):
        if variant != "table":
            yield from _variant(table, str(variant))


def _variant(table: Table, variant: str) -> Iterator[Finding]:
    memory = _mapping(table.section("memory").get(variant))
    configuration = _mapping(table.section("configuration").get(variant))
    settings = canonical_arguments(_mapping(configuration.get("args")))
    name, length = _context(variant, memory, settings)
    pool_name = next((key for key in _POOLS if number(memory.get(key)) is not None), None)
    if length is not None and pool_name is not None:
        pool = float(memory[pool_name])
        if pool < length:
            yield Finding(
                "infeasible",
                name,
                f"pool of {pool:.0f} tokens is smaller than the {length:.0f} context",
                plain(length),
                plain(pool),
                "lower the context length to the pool, or enlarge the pool",
            )
        else:
            yield passed(name, f"a pool of {pool:.0f} tokens holds the context of {length:.0f}")
    yield from _workload(table, variant, memory, name, length, settings)


def _context(
    variant: str, memory: Mapping[str, Any], settings: Mapping[str, tuple[str, Any]]
) -> tuple[str, float | None]:
    if "max_model_len" in settings and (length := number(settings["max_model_len"][1])) is not None:
        return f"configuration.{variant}.{settings['max_model_len'][0]}", length
    for key in ("context_length", "max_model_len"):
        if (length := number(memory.get(key))) is not None:
            return f"memory.{variant}.{key}", length
    return f"configuration.{variant}", None


def _workload(
    table: Table, variant: str, memory: Mapping[str, Any], name: str, length: float | None,
    settings: Mapping[str, tuple[str, Any]],
) -> Iterator[Finding]:  # fmt: skip
    cells = [cell for cell in table.cells if variant_of(cell.name) == variant]
    for cell in cells:
        tokens, output = cell.workload.get("input_tokens"), cell.workload.get("output_tokens")
        if length is not None and tokens is not None and output is not None and tokens + output > length:
            yield Finding(
                "infeasible",
                f"{cell.path}",
                f"{tokens:.0f} + {output:.0f} tokens exceed {name} = {length:.0f}",
                plain(tokens + output),
                plain(length),
                "raise the context length, or shorten the workload",
            )
    limit = number(memory.get("max_running_requests"))
    flag = f"memory.{variant}.max_running_requests"
    if limit is None and "max_running_requests" in settings:
        flag = f"configuration.{variant}.{settings['max_running_requests'][0]}"
        limit = number(settings["max_running_requests"][1])
    wanted = max((cell.concurrency for cell in cells if cell.concurrency is not None), default=None)
    if limit is not None and wanted is not None and wanted > limit:
        yield Finding(
            "infeasible",
            flag,
            f"{wanted:g} requests at once were offered, and at most {limit:g} run",
            plain(limit),
            plain(wanted),
            "raise the limit: the measured concurrency is not the offered one",
        )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
