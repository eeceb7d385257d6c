"""The root cause of a server's death, from the last lines of its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TAIL_BYTES = 256 * 1024
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ?")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PROCESS = re.compile(r"^\s*(?:\[rank\d+\]:?\s*)?\((?P<name>[A-Za-z]\w*)[^)]*\)\s?")
_LEVEL = re.compile(r"^(?:ERROR|CRITICAL|FATAL)\s+[\d:.\- ]+(?:\[[^\]]*\]|\S+\])\s?")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Fault)\b(?::|$)")
_WRAPPER = re.compile(
    r"see root cause above|engine core initialization failed|EngineDeadError|EngineCore encountered", re.I
)

# How a container's runtime says why it could not begin (Apptainer; Go programs).
_FATAL = re.compile(r"^FATAL\s*:\s*(?P<words>\S.*)")
_SPOKEN = re.compile(r"error|fail|fatal|killed|errno", re.IGNORECASE)

# The class of a failure and the words that show it, the more telling ones first.
_CLASSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (
            "port_in_use",
            r"address already in use|EADDRINUSE|errno 98\b|port \d+ is (?:already )?(?:in use|not available)",
        ),
        (
            "out_of_memory",
            r"out of memory|OutOfMemoryError|can't allocate memory|cannot allocate memory|std::bad_alloc",
        ),
        (
            "kv_too_small",
            r"larger than the (?:maximum number of tokens|available KV cache)"
            r"|no available memory for the cache|not enough memory.*mem.fraction|needed, which is larger",
        ),
        ("shm_too_small", r"no space left on device.*shm|/dev/shm.*(?:no space|too small)|bus error"),
        (
            "download_corrupt",
            r"safetensor.*(?:header|deserializ)|HeaderTooLarge|MetadataIncompleteBuffer|InvalidHeader",
        ),
        (
            "config_conflict",
            r"unrecognized arguments|invalid choice|not (?:yet )?supported|incompatible|must be"
            r"|cannot be used|expected (?:one|at least one) argument|validation error",
        ),
        ("warmup_failed", r"warm-?up error|initialization failed\. warmup"),
        ("nccl_timeout", r"nccl.*(?:timeout|timed out)|watchdog caught collective"),
    )
)


@dataclass(frozen=True)
class RootCause:
    """Why a server died. `kind` is a failure class or engine_died; `line` is the telling line, None if none
    was found."""

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

    The last exception is often a wrapper around one that stands above it, printed by another process. So the
    first exception of a worker or engine process counts, then the first of any process that is no wrapper; a
    line of a known failure class is preferred to one without.
    """
    told = [_strip(line) for line in lines]
    exceptions = [(process, text) for process, text in told if _EXCEPTION.match(text) and not _WRAPPER.search(text)]
    workers = [text for process, text in exceptions if process and not process.startswith("APIServer")]
    candidates = workers or [text for _, text in exceptions]
    for text in candidates:
        kind = _classify(text)
        if kind:
            return RootCause(kind, text)
    said = [text for _, text in told if _SPOKEN.search(text)]
    for text in said:
        kind = _classify(text)
        # Loose words, such as "must be", stand in many a warning; beside an exception they explain nothing.
        if kind and not (candidates and kind == "config_conflict"):
            return RootCause(kind, _joined(text, candidates))
    fatal = [match["words"] for _, text in told if (match := _FATAL.match(text))]
    return RootCause("engine_died", next(iter([*candidates, *fatal]), None))


def _joined(text: str, exceptions: Sequence[str]) -> str:
    head, traceback, _ = text.partition("Traceback (most recent call last)")
    return head + exceptions[0] if traceback and exceptions else text


def _classify(text: str) -> str | None:
    return next((kind for kind, pattern in _CLASSES if pattern.search(text)), None)


def _strip(line: str) -> tuple[str | None, str]:
    text = _ANSI.sub("", _STAMP.sub("", line)).rstrip()
    match = _PROCESS.match(text)
    process = match["name"] if match else None
    text = text[match.end() :] if match else text
    return process, _LEVEL.sub("", text).strip()


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
