"""What a reader of a recording must know beside its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from crossover.client.outcome import REASONS


def findings_of(
    events: pd.DataFrame,
    requests: pd.DataFrame,
    fitness: Mapping[str, Any],
    about: Mapping[str, Any],
    unknown: set[str],
) -> list[dict[str, Any]]:
    """Returns the findings on a recording, worst first; each has `finding`, `severity`, `count` and `why`."""
    order = ("error", "warning", "note")
    found = [
        *_of_recorder(fitness, about),
        *_of_fields(unknown),
        *_of_outcomes(requests),
        *_of_counts(events, requests),
    ]
    return sorted(found, key=lambda finding: order.index(finding["severity"]))


def _finding(finding: str, severity: str, count: int, why: str) -> dict[str, Any]:
    return {"finding": finding, "severity": severity, "count": count, "why": why}


def _of_recorder(fitness: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for reason in fitness["reasons"]:
        yield _finding("recorder_unfit", "error", 1, reason)
    if fitness["clock"] == "user":
        yield _finding(
            "user_clock",
            "note",
            1,
            "the connection is encrypted: times are those after decryption, not the kernel's",
        )
    if about.get("state") != "finished":
        yield _finding(
            "recorder_killed",
            "error",
            1,
            "the recorder ended before the load did: requests under way count as stopped",
        )
    if (about.get("observed") or {}).get("stopped"):
        yield _finding("stopped", "warning", 1, "the load was stopped before it was through")


def _of_fields(unknown: set[str]) -> Iterator[dict[str, Any]]:
    for name in sorted(unknown):
        yield _finding("unknown_field", "error", 1, f"events carry {name!r}, which may hold output and was not counted")


def _of_outcomes(requests: pd.DataFrame) -> Iterator[dict[str, Any]]:
    bad = requests[requests["status"] != "ok"]
    for (status, reason), group in bad.groupby(["status", "reason"]):
        messages = group["message"].dropna()
        said = f"; the first said: {str(messages.iloc[0])[:200]}" if len(messages) else ""
        severity = "error" if reason == "client_limit" else "warning"
        yield _finding(str(reason), severity, len(group), f"{status}: {REASONS.get(str(reason), reason)}{said}")


def _of_counts(events: pd.DataFrame, requests: pd.DataFrame) -> Iterator[dict[str, Any]]:
    ok = requests[requests["status"] == "ok"]
    yield from _of_lengths(ok, "output_length", "warning", "completion_tokens", "output_tokens_asked")
    yield from _of_lengths(ok, "prompt_length", "note", "prompt_tokens", "prompt_tokens_expected")
    unknown = ok[ok["tokens_source"].isna()]
    if len(unknown):
        why = "the tokens of each event are not known: no ITL for these requests"
        yield _finding("tokens_per_event", "warning", len(unknown), why)
    several = ok[(ok["choices"] > 1).fillna(False)]
    if len(several):
        why = (
            "responses have several choices: TTFT, E2E and tokens are the request's, gaps lie within a "
            "choice, and TPOT is undefined"
        )
        yield _finding("choices", "warning", len(several), why)
    repeated = len(requests) - requests["prompt_index"].nunique()
    if repeated > 0:
        why = "prompts were sent more than once: a prefix cache may answer them"
        yield _finding("prompts_repeated", "warning", repeated, why)


def _of_lengths(ok: pd.DataFrame, finding: str, severity: str, counted: str, wanted: str) -> Iterator[dict[str, Any]]:
    off = ok[(ok[counted] != ok[wanted]).fillna(False)]
    if len(off):
        first = off.iloc[0]
        why = f"usage counts {first[counted]} where {first[wanted]} were asked (request {first['request']})"
        yield _finding(finding, severity, len(off), why)
