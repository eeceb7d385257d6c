"""What a reader of a recording must know beside its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crossover.client.outcome import REASONS


def findings_of(
    requests: Sequence[Mapping[str, Any]],
    fitness: Mapping[str, Any],
    about: Mapping[str, Any],
    unknown: set[str],
) -> list[dict[str, Any]]:
    """Returns the findings on a recording, worst first; each has `finding`, `severity`, `count` and `why`.

    Args:
        requests: rows of the table of requests.
        fitness: the recorder's own figures.
        about: the content of recording.json.
        unknown: fields that are not known and may carry output.
    """
    order = ("error", "warning", "note")
    found = [
        *_of_recorder(fitness, about),
        *_of_fields(unknown),
        *_of_outcomes(requests),
        *_of_counts(requests),
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


def _of_outcomes(requests: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    groups: dict[tuple[str, str], list[str]] = {}
    codes: dict[str, set[int]] = {}
    for row in requests:
        if row["status"] != "ok" and row["reason"] is not None:
            groups.setdefault((row["status"], row["reason"]), []).append(row["message"])
            if (row["http_status"] or 0) >= 300:
                codes.setdefault(row["reason"], set()).add(row["http_status"])
    for (status, reason), messages in sorted(groups.items()):
        said = next((f"; the first said: {str(message)[:200]}" for message in messages if message), "")
        if reason in codes:
            said = f" (HTTP {', '.join(map(str, sorted(codes[reason])))}){said}"
        severity = "error" if reason == "client_limit" else "warning"
        yield _finding(reason, severity, len(messages), f"{status}: {REASONS.get(reason, reason)}{said}")


def _of_counts(requests: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    ok = [row for row in requests if row["status"] == "ok"]
    yield from _of_lengths(ok, "output_length", "warning", "completion_tokens", "output_tokens_asked")
    yield from _of_lengths(ok, "prompt_length", "note", "prompt_tokens", "prompt_tokens_expected")
    unknown = sum(row["tokens_source"] is None for row in ok)
    if unknown:
        why = "the tokens of each event are not known: no ITL for these requests"
        yield _finding("tokens_per_event", "warning", unknown, why)
    several = sum((row["choices"] or 0) > 1 for row in ok)
    if several:
        why = (
            "responses have several choices: TTFT, E2E and tokens are the request's, gaps lie within a "
            "choice, and TPOT is undefined"
        )
        yield _finding("choices", "warning", several, why)
    repeated = len(requests) - len({row["prompt_index"] for row in requests} - {None})
    if repeated > 0:
        why = "prompts were sent more than once: a prefix cache may answer them"
        yield _finding("prompts_repeated", "warning", repeated, why)


def _of_lengths(
    ok: Sequence[Mapping[str, Any]], finding: str, severity: str, counted: str, wanted: str
) -> Iterator[dict[str, Any]]:
    known = [row for row in ok if row[counted] is not None and row[wanted] is not None]
    off = [row for row in known if row[counted] != row[wanted]]
    if off:
        why = f"usage counts {off[0][counted]} where {off[0][wanted]} were asked (request {off[0]['request']})"
        yield _finding(finding, severity, len(off), why)
