"""Why a server died: deaths get their root cause, and of all incidents one is named as the failure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from crossover.logs.builder import Builder
from crossover.logs.crash import advice_of_code, root_cause
from crossover.logs.incidents import CATALOGUE, Kind, Severity, Told
from crossover.logs.model import Incident

_DEATHS = (Kind.ENGINE_DIED, Kind.SCHEDULER_EXCEPTION)
_GENERIC = (*_DEATHS, Kind.HEALTH_CHECK_FAILED)
# These may follow from the end of another rank, so that any other error is rather the cause.
_CONSEQUENCES = (Kind.NCCL_ERROR, Kind.NCCL_TIMEOUT, Kind.KILLED, Kind.START_TIMEOUT, Kind.STALLED)
# No start goes on after one of these, though no statement says that it ended.
_ENDS_A_START = (
    Kind.OUT_OF_MEMORY, Kind.CUDA_ERROR, Kind.NCCL_ERROR, Kind.CONFIG_CONFLICT, Kind.MODEL_UNSUPPORTED,
)  # fmt: skip
_TRACEBACK_LINES = 200
_LOOKED_AT = 200  # errors since the death before
_BESIDE_LINES = 40
_END_LINES = 60
_LAST_LINES = 10
_SILENT = (
    "another process ended without a word while this one waited for it: look at its exit code (137 = out of host "
    "memory) and the kernel log"
)
_TRACEBACK = re.compile(r":? *Traceback \(most recent call last\).*$")


def stamped(found: Sequence[Told]) -> list[Told]:
    """Gives what stands in a traceback without stamps the time of the line that begins it."""
    result: list[Told] = []
    began: Told | None = None
    for one in found:
        if one.incident.kind in _DEATHS and one.incident.t is not None:
            began = one
        if one.incident.t is None and began is not None and one.first - began.first <= _TRACEBACK_LINES:
            timed = dataclasses.replace(one.incident, t=began.incident.t, t_outer=began.incident.t_outer)
            one = one._replace(incident=timed)
        result.append(one)
    return result


def with_causes(found: Sequence[Told], shared: Builder) -> tuple[list[Incident], Incident | None]:
    """Adds to each death what it came from.

    Args:
        found: in the order of the log.
        shared: the builder that remembers exceptions.

    Returns:
        The incidents, and the cause of the last death; None where nothing died.
    """
    result: list[Incident] = []
    errors = _errors(found)
    failure, previous, begin = None, -1, 0
    for number, _, incident in found:
        if incident.kind in _DEATHS:
            below = root_cause(shared, number - 1, number + _TRACEBACK_LINES)
            above = root_cause(shared, previous, number) if incident.kind == Kind.ENGINE_DIED else None
            begin = next((at for at in range(begin, len(errors)) if errors[at].last > previous), len(errors))
            since = [one for one in errors[begin : begin + _LOOKED_AT] if one.last > previous]
            cause = above or below or _earlier(since, number)
            own = _own_incident(since, cause) if cause else None
            incident = _told(incident, cause[1] if cause else None, own)
            failure = own or (dataclasses.replace(incident, message=cause[1]) if cause else incident)
            previous = number
        result.append(incident)
    return result, failure


def _told(death: Incident, cause: str | None, own: Incident | None) -> Incident:
    short = _TRACEBACK.sub("", death.message[:200]).rstrip(". :") or "an exception"
    if cause is None:
        advice = advice_of_code(death.message) if death.advice == CATALOGUE[Kind(death.kind)].advice else None
        return dataclasses.replace(death, message=short, advice=advice or death.advice)
    advice = own.advice if own else f"look at the root cause: {cause[:200]}"
    if cause.startswith("EOFError"):
        advice = _SILENT
    return dataclasses.replace(death, message=f"{short}. Root cause: {cause}", advice=advice)


def _errors(found: Sequence[Told]) -> list[Told]:
    return [one for one in found if one.incident.severity == Severity.ERROR and one.incident.kind not in _GENERIC]


def _own_incident(errors: Sequence[Told], cause: tuple[int, str]) -> Incident | None:
    """The incident that is the cause itself: told by the same line or text, or else one right beside it."""
    at, text = cause
    same = [one.incident for one in errors if at in (one.first, one.last) or text[:80] in one.incident.message]
    beside = [one.incident for one in errors if one.first - _BESIDE_LINES <= at <= one.last + _BESIDE_LINES]
    return _first(same) or _first(beside)


def _first(errors: Sequence[Incident]) -> Incident | None:
    return next((one for one in errors if one.kind not in _CONSEQUENCES), errors[0] if errors else None)


def _earlier(errors: Sequence[Told], before: int) -> tuple[int, str] | None:
    """The first error of another kind up to a line: no exception was printed, but what happened was."""
    return next(((one.first, one.incident.message) for one in errors if one.first <= before), None)


def without_death(found: Sequence[Told], chosen: Builder, shared: Builder) -> Incident | None:
    """The failure of a log in which nothing says that the server died: an error that ends a start."""
    errors = [one.incident for one in _errors(found)]
    if not (chosen.dead or shared.dead):
        served = chosen.ready_seen or shared.ready_seen or chosen.intervals or chosen.decode_batches
        errors = [] if served else [one for one in errors if one.kind in _ENDS_A_START]
    return _first(errors)


def no_start(
    chosen: Builder, shared: Builder, known: Sequence[Incident], lines: int
) -> tuple[Incident, Incident] | None:
    """A log that ends before the server was ready, where no statement says that it failed.

    It ends with an exception, or with Python's word of what a process left behind that was ended from outside.

    Returns:
        The incident, and the failure; None where the log does not end so.
    """
    if chosen.ready_seen or shared.ready_seen or chosen.intervals:
        return None
    if any(incident.severity == Severity.ERROR or incident.kind == Kind.REQUEST_FAILED for incident in known):
        return None
    begun = bool(chosen.version or chosen.raw or chosen.config)
    leaked = shared.facts.get("leaked")
    if begun and leaked is not None and leaked > lines - _LAST_LINES:
        text = "the log ends while the server starts, without an error: the process was ended from outside"
        advice = "look for a supervisor's time limit, the exit code (137 = out of host memory) and the kernel log"
        killed = Incident(None, Kind.KILLED, Severity.ERROR, 1, text, advice)
        return killed, killed
    errors = shared.facts.get("errors")
    traceback = shared.facts.get("traceback", lines)
    if not errors or not 0 < errors[-1][0] - traceback < _TRACEBACK_LINES or errors[-1][0] < lines - _END_LINES:
        return None
    if not begun and not traceback < shared.facts.get("process_frame", -1) < errors[-1][0]:
        return None  # the log does not hold the start, and the exception may be a request's
    cause = root_cause(shared, errors[-1][0] - _TRACEBACK_LINES, lines)
    text = cause[1] if cause else ""
    advice = f"look at the root cause: {text[:200]}"
    failure = Incident(None, Kind.ENGINE_DIED, Severity.ERROR, 1, text, advice)
    return (
        dataclasses.replace(failure, message=f"the log ends with an exception before the server was ready: {text}"),
        failure,
    )
