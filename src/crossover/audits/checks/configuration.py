"""Requested against effective configuration, and flags against the table that describes them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed
from crossover.audits.printed import plain
from crossover.audits.table import Table, number, variant_of
from crossover.confounds.names import canonical_arguments, canonical_name, same_value

IDENTITY = "what ran is what was asked for, and what is said to have run"
TOLERANCE = "none; spellings of one value (fp8, fp8_e4m3) are equal, `auto` equals anything"
REASON = "engines change what they are asked for, and say so in their log or their endpoints only"
# Settings that an engine states in parts.
_PARTS = {"attention_backend": ("decode_attention_backend", "prefill_attention_backend")}


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Compares what was asked of the engine with what its log and its endpoints say it runs with."""
    engine = evidence.engine or {}
    merged = _mapping(engine.get("configuration")).get("settings")
    known = yield from _merged(merged) if merged is not None else _logged(evidence.cell, engine)
    # A kernel that fell back is not the one that the engine's own configuration names.
    for incident in engine.get("incidents") or []:
        if incident.get("kind") == "fallback_kernel":
            yield Finding(
                "contradiction",
                "kernel",
                str(incident.get("message")),
                advice=str(incident.get("advice")),
            )
    if known:
        yield passed("configuration", f"compared: {', '.join(sorted(known))}")
    else:
        yield not_applicable("configuration", "the engine states none of the settings that were asked for")


def _merged(settings: Iterable[Mapping[str, Any]]) -> Generator[Finding, None, list[str]]:
    """Judges settings that `crossover.configuration` has merged and compared; returns the names that were compared."""
    compared = [one for one in settings if one.get("verdict") in ("as asked", "changed")]
    for one in compared:
        if one["verdict"] == "changed":
            yield _changed(str(one["flag"]), one["requested"], one["value"], f" (its {one['source']} says so)")
    return [str(one["setting"]) for one in compared]


def _logged(cell: Mapping[str, Any], engine: Mapping[str, Any]) -> Generator[Finding, None, list[str]]:
    """The same by the names of the log alone, where nothing else was read."""
    effective = engine.get("effective_config") or {}
    flags = canonical_arguments(_mapping(_mapping(cell.get("requested_config")).get("arguments")))
    known = [name for name in flags if _stated(name, flags, effective)]
    for name in known:
        flag, asked = flags[name]
        for found in _stated(name, flags, effective):
            if not same_value(asked, found):
                yield _changed(flag, asked, found)
    return known


def _changed(flag: str, asked: Any, found: Any, source: str = "") -> Finding:
    return Finding(
        "contradiction",
        f"configuration.{flag}",
        f"{_say(asked)} was asked for, the engine runs with {_say(found)}{source}",
        plain(asked),
        plain(found),
        "ask for what the engine can do, or name the effective value in the comparison",
    )


def _stated(name: str, flags: Mapping[str, Any], effective: Mapping[str, Any]) -> list[Any]:
    """What the engine says of a setting, each value once; a part that has a flag of its own is left out."""
    names = [name, *(part for part in _PARTS.get(name, ()) if part not in flags)]
    values = [effective[one] for one in names if effective.get(one) is not None]
    return [value for number, value in enumerate(values) if value not in values[:number]]


def check_table(table: Table) -> Iterator[Finding]:
    """Compares the flags of each variant with the comparison table and with the engine's log."""
    configuration = table.section("configuration")
    described = configuration.get("table")
    for variant, settings in configuration.items():
        if variant == "table" or not isinstance(settings, Mapping):
            continue
        flags = canonical_arguments(_mapping(settings.get("args")))
        for place, values in _statements(table, str(variant), _mapping(described).get(variant)):
            yield from _compare(str(variant), flags, place, values)


def _statements(table: Table, variant: str, described: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(described, Mapping):
        yield "comparison table", described
    for cell, log in table.section("engine_log").items():
        if isinstance(log, Mapping) and variant_of(str(cell)) == variant:
            yield f"engine log of {cell}", {key: log[key] for key in log if key in ("dcp", "tp", "dp", "ep")}
    memory = table.section("memory").get(variant)
    if isinstance(memory, Mapping):
        yield (
            "memory section",
            {key: memory[key] for key in memory if key in ("context_length", "max_model_len")},
        )


def _compare(
    variant: str, flags: Mapping[str, tuple[str, Any]], place: str, values: Mapping[str, Any]
) -> Iterator[Finding]:
    for name, value in values.items():
        common = canonical_name(str(name))
        if common not in flags:
            continue
        flag, asked = flags[common]
        # Both engines call the memory fraction something else than a reader does.
        subject = f"configuration.{variant}.{common if common == 'memory_fraction' else flag}"
        if same_value(asked, value):
            yield passed(subject, f"flags and {place} agree", plain(asked))
        else:
            yield Finding(
                "contradiction",
                subject,
                f"flags say {_say(asked)} ({flag}), {place} says {_say(value)}",
                plain(asked),
                plain(value),
                "publish the effective value, from the engine's own log",
            )


def _say(value: Any) -> str:
    return f"{value:g}" if number(value) is not None else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
