"""Tokens that the client saw = usage = the engine's own counters = what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed
from crossover.audits.printed import plain
from crossover.audits.table import Table

IDENTITY = (
    "tokens in events = usage; usage over all requests = change of the engine's counters; usage = asked for; in tables "
    "tokens that are reported = tokens of the texts"
)
TOLERANCE = "0.5 %, and one token a request (an end token has no text); in tables 5 % and one token a request"
REASON = "tokens that are dropped, counted twice, or asked for but never made change every rate"
_TOLERANCE = 0.005
_TEXT_TOLERANCE = 0.05
_TOKEN_METRICS = ("output_tok_s", "tpot_s", "itl_s", "stable_decode_tok_s")


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Compares the four counts, as far as they are known."""
    usage = _total(evidence.observations.completion_tokens)
    if usage is None:
        yield not_applicable("completion_tokens", "a successful request came without usage")
        return
    yield from _events(evidence, usage)
    yield from _asked(evidence)
    yield from _engine(evidence, usage)


def check_table(table: Table) -> Iterator[Finding]:
    """Compares the tokens that a client reports with those of the texts it got, where it tokenized them again."""
    for cell in table.cells:
        reported, again = cell.get("total_output_tokens"), cell.get("total_retokenized")
        if reported is None or again is None:
            continue
        short = float(reported.printed) - float(again.printed)
        words = f"{reported.printed:.0f} tokens are reported, and their texts have {again.printed:.0f}"
        if short > _TEXT_TOLERANCE * reported.printed + (cell.requests or 0):
            yield Finding(
                "inconsistent",
                reported.path,
                f"{words}: the length that was asked for was counted, or a part of the output was not read",
                plain(reported.printed),
                plain(again.printed),
                "take the counts from usage",
            )
        else:
            yield passed(reported.path, words, plain(reported.printed), plain(again.printed))


def _events(evidence: Evidence, usage: float) -> Iterator[Finding]:
    seen = _total(evidence.observations.event_tokens)
    if seen is None:
        return
    if abs(seen - usage) > _allowed(usage, evidence.observations.ok):
        why = f"the events carry {seen:.0f} tokens, usage says {usage:.0f}"
        yield Finding(
            "not closed",
            "completion_tokens",
            why,
            seen,
            usage,
            "find the events that were lost or counted twice",
            _TOKEN_METRICS,
        )
    else:
        yield passed("completion_tokens", f"events {seen:.0f}, usage {usage:.0f}", seen, usage)


def _asked(evidence: Evidence) -> Iterator[Finding]:
    asked = evidence.workload.get("output_tokens")
    if not asked or not (evidence.cell.get("sampling") or {}).get("ignore_eos"):
        return
    tokens = evidence.observations.completion_tokens
    off = int((tokens != float(asked)).sum())
    if off:
        why = f"{off} of {len(tokens)} requests ended with another length than {asked}: mean {tokens.mean():.1f}"
        yield Finding(
            "inconsistent",
            "output_tokens",
            why,
            float(tokens.mean()),
            asked,
            "check that the engine honours ignore_eos; rates use what usage says",
        )
    else:
        yield passed("output_tokens", f"every request made {asked} tokens", asked, asked)


def _engine(evidence: Evidence, usage: float) -> Iterator[Finding]:
    counters = evidence.cell.get("counters") or {}
    before, after = counters.get("before"), counters.get("after")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        yield not_applicable("engine counters", "the engine's counters were not read before and after the cell")
        return
    observations = evidence.observations
    lost = observations.failed + observations.incomplete
    sides = {
        "generation_tokens": (usage, _TOKEN_METRICS),
        "prompt_tokens": (_total(observations.prompt_tokens), ("ttft_s",)),
    }
    for name, (counted, withholds) in sides.items():
        change = _change(before, after, name)
        if change is None or counted is None:
            continue
        allowed = _allowed(counted, observations.ok)
        # Requests that failed half-way left tokens in the engine's counter that no usage tells of.
        if change < counted - allowed or (not lost and change > counted + allowed):
            why = f"usage says {counted:.0f}, the engine counted {change:.0f}"
            yield Finding(
                "not closed",
                name,
                why,
                counted,
                change,
                "look for foreign requests, lost events or retokenised counts",
                withholds,
            )
        else:
            yield passed(name, f"usage {counted:.0f}, engine {change:.0f}", counted, change)


def _change(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> float | None:
    if before.get(name) is None or after.get(name) is None:
        return None
    return float(after[name]) - float(before[name])


def _allowed(tokens: float, requests: int) -> float:
    return max(_TOLERANCE * tokens, requests)


def _total(values: np.ndarray) -> float | None:
    return None if not len(values) or np.isnan(values).any() else float(values.sum())
