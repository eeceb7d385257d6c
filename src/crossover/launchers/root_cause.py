"""The root cause of a server's death, from the last lines of its log, which `crossover.logs` reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TAIL_BYTES = 256 * 1024
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ?")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Fault)\b(?::|$)")
_GENERIC = ("engine_died", "scheduler_exception", "health_check_failed")

# How a container's runtime says why it could not begin (Apptainer; Go programs).
_FATAL = re.compile(r"^FATAL\s*:\s*(?P<words>\S.*)")


@dataclass(frozen=True)
class RootCause:
    """Why a server died. `kind` is an incident kind of the log (see `crossover.logs.incidents.Kind`), engine_died
    where it has no kind of its own; `line` is what the log says of it, None if it says nothing."""

    kind: str
    line: str | None

    def __str__(self) -> str:
        return self.line or "root cause unknown (the log does not show it)"


def log_tail(path: Path, lines: int = 20) -> tuple[str, ...]:
    """Returns the last lines of a log, without the receive times."""
    return tuple(_STAMP.sub("", line) for line in _last(path)[-lines:])


def root_cause_of(path: Path) -> RootCause:
    """Returns the root cause that the log shows."""
    return root_cause(_last(path))


def root_cause(lines: Sequence[str]) -> RootCause:
    """Finds the root cause in log lines.

    What the reader of engine logs names as the failure; else its first error; else, as the server may be no engine
    that the reader knows, the first exception or fatal word that stands in the log.
    """
    from crossover.logs import read_log

    report = read_log(lines)
    errors = [incident for incident in report.incidents if incident.severity == "error"]
    known = report.failure or next((one for one in errors if one.kind not in _GENERIC), None)
    if known is not None and known.kind not in _GENERIC:
        return RootCause(known.kind, known.message)
    if known is not None and not _says_only_that_it_died(known.message):
        return RootCause("engine_died", known.message)
    told = [_ANSI.sub("", _STAMP.sub("", line)).strip() for line in lines]
    exceptions = [text for text in told if _EXCEPTION.match(text) and not _says_only_that_it_died(text)]
    fatal = [match["words"] for text in told if (match := _FATAL.match(text))]
    return RootCause("engine_died", next(iter([*exceptions, *fatal]), None))


_ONLY_DIED = re.compile(
    r"root cause above|for the root cause|EngineDeadError|EngineCore|hit an exception|Engine background task"
    r"|failed to start|child process|an exception$",
    re.IGNORECASE,
)


def _says_only_that_it_died(text: str) -> bool:
    return _ONLY_DIED.search(text) is not None


def _last(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    lines = text.splitlines()
    return lines[1:] if size > TAIL_BYTES else lines
