"""Finds out which tool wrote an output, and has it read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossover.audits.printed import Printed
from crossover.errors import InputError
from crossover.peers.report import PeerReport

_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)


@dataclass(frozen=True)
class Output:
    """A client's output.

    Attributes:
        text: as it is.
        data: the text as JSON, or the object of one of its lines; None for console text.
        backend, version: what the user says of the run, where the output does not.
    """

    text: str
    data: Any = None
    backend: str | None = None
    version: str | None = None


def read_output(
    source: Path | str, tool: str = "auto", *, backend: str | None = None, version: str | None = None
) -> list[PeerReport]:
    """Reads what a client wrote: its JSON, CSV or console text; one report for each run in it.

    Args:
        source: the file, or the text itself.
        tool: a name in `TOOLS`, or "auto".
        backend: the tool's backend, where the output leaves it out and the meaning of a column depends on it.
        version: of the tool, likewise.

    Raises:
        InputError: no such file, an unknown tool, or nothing that a tool is known to write.
    """
    from crossover.peers.tools import TOOLS

    file = source if isinstance(source, Path) else None
    if tool != "auto" and tool not in TOOLS:
        raise InputError(f"unknown client {tool!r}", remedy=f"use one of {', '.join(sorted(TOOLS))}")
    text = _text(source)
    documents = [Output(text, data, backend, version) for data in _documents(text)]
    for outputs in (documents, [Output(text, None, backend, version)]):
        reports = [
            replace(report, structured=report.structured or output.data is not None)
            for output in outputs
            for report in _read(output, tool)
        ]
        if reports:
            return reports
    raise InputError(
        "not the output of a known client" if tool == "auto" else f"not the output of {tool}",
        file=file,
        remedy=f"known are {', '.join(sorted(TOOLS))}; `crossover audit` reads other tables too",
    )


def _read(output: Output, tool: str) -> list[PeerReport]:
    from crossover.peers.tools import TOOLS

    if tool != "auto":
        asked = TOOLS[tool]
        return asked.read(output) if output.data is None or asked.recognises(output) else []
    candidates = (found for found in TOOLS.values() if found.recognises(output))
    return next((reports for candidate in candidates if (reports := candidate.read(output))), [])


def _text(source: Path | str) -> str:
    if isinstance(source, str):
        return source
    try:
        return source.read_text("utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=source, remedy="give a client's output") from error


def _documents(text: str) -> list[Any]:
    """Returns the JSON of a text: the whole of it, or every object that begins on a line of its own, one a run."""
    if text.lstrip().startswith("["):
        try:
            return [json.loads(text)]
        except ValueError:
            return []
    decoder, found, at = json.JSONDecoder(), [], 0
    while (match := _OBJECT.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, match.end() - 1)
            found.append(value)
        except ValueError:
            at = match.end()
    return found


def mapping(value: Any) -> Mapping[str, Any]:
    """Returns the value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def amount(value: Any) -> float | None:
    """Returns a finite number of a JSON document, or one as it was printed, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):
        return None
    return value if isinstance(value, Printed) else float(value)


def count(value: Any) -> int | None:
    """Returns a whole number of a JSON document, or None."""
    found = amount(value)
    return None if found is None else round(found)
