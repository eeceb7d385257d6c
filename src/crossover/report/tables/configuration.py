"""Effective configuration: what was asked of each variant, what it ran with, and which source says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossover.report.context import Context
from crossover.report.tables.model import Column, Datum, Table

# What a reader looks for first, asked for or not; the other settings that nothing asked for are in the engine report.
IMPORTANT = frozenset(
    {
        "tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel", "decode_context_parallel",
        "dcp_comm_backend", "kv_cache_dtype", "kv_scale", "attention_backend", "decode_attention_backend",
        "prefill_attention_backend", "mla_prefill_backend", "moe_backend", "all2all_backend",
        "disable_custom_all_reduce", "allreduce_fusion", "symmetric_memory", "speculative_method",
        "speculative_tokens", "speculative_steps", "speculative_topk", "speculative_window",
        "max_model_len", "max_running_requests", "max_batched_tokens", "chunked_prefill_tokens",
        "memory_fraction", "kv_cache_tokens", "max_concurrency", "block_size", "prefix_caching", "graph_mode",
    }
)  # fmt: skip
_ORDER = {"changed": 0, "not stated": 2, "as asked": 3, "left open": 4}
_DISAGREE, _QUIET, _ENGINES_CHOICE = 1, 2, 5
_TONES = {"changed": "bad", "not stated": "warn"}


def build(context: Context) -> Table | None:
    """Returns one row a variant and setting: of all variants what was changed, then those whose sources disagree; then
    the rest, variant by variant."""
    found = [
        (_place(one), variant, one)
        for variant, settings in _merged(context).items()
        for one in settings
        if one["verdict"] or one["disagree"] or one["setting"] in IMPORTANT
    ]
    if not found:
        return None
    variants = list(dict.fromkeys(variant for _, variant, _ in found))
    found.sort(key=lambda row: (min(row[0], _QUIET), variants.index(row[1]), row[0], str(row[2]["setting"])))
    rows = [_row(variant, one) for _, variant, one in found]
    columns = (
        Column("variant", "Variant"),
        Column("setting", "Setting"),
        Column("requested", "Asked for"),
        Column("effective", "Ran with"),
        Column("verdict", "Verdict"),
        Column("source", "Source"),
        Column("stated", "What else is said"),
    )
    lead = (
        "What each engine was asked for and what it ran with, from its log, its endpoints and its metrics; the source "
        "nearest to what really runs counts, and other values stand beside it."
    )
    return Table("configuration", "Effective configuration", lead, columns, rows, shown=60)


def _merged(context: Context) -> dict[str, list[Mapping[str, Any]]]:
    """The settings of each variant, from its first cell that has any."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for cell in [*context.sheet.cells, *context.sheet.retest_cells]:
        told = cell.engine_report.get("configuration")
        settings = told.get("settings") if isinstance(told, Mapping) else None
        if settings:
            found.setdefault(cell.variant, settings)
    return found


def _place(setting: Mapping[str, Any]) -> int:
    quiet = _ORDER.get(str(setting["verdict"]), _ENGINES_CHOICE)
    return min(quiet, _DISAGREE) if setting["disagree"] else quiet


def _row(variant: str, setting: Mapping[str, Any]) -> list[Datum]:
    flag, verdict = setting["flag"], setting["verdict"]
    asked = Datum(_text(setting["requested"]), below=str(flag)) if flag else Datum("–", tone="quiet")
    return [
        Datum(variant),
        Datum(_name(str(setting["setting"])), str(setting["setting"])),
        asked,
        Datum(_text(setting["value"])),
        Datum(verdict or "the engine's choice", tone=_TONES.get(str(verdict), "" if verdict else "quiet")),
        Datum(str(setting["source"] or "–")),
        Datum("; ".join(_others(setting)) or "–", tone="warn" if setting["disagree"] else "quiet"),
    ]


def _others(setting: Mapping[str, Any]) -> Iterator[str]:
    """The sources whose value is not the one that counts."""
    for source, value in setting["stated"].items():
        if value != setting["value"]:
            yield f"{source}: {_text(value)}"


def _name(setting: str) -> str:
    """A variable keeps its underscores."""
    return setting if setting.isupper() else setting.replace("_", " ")


def _text(value: object) -> str:
    if value is None:
        return "not stated"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "yes" if value is True else "no" if value is False else str(value)
