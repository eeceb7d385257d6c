"""Writes a report as JSON or CSV, record by record: a long log needs no more memory on its way out."""

from __future__ import annotations

import csv
import json
from typing import IO, Any

from crossover.logs.model import RECORDS, EngineReport, plain

_USUAL = ("intervals", "decode_batches", "prefill_batches", "incidents")


def write_json(report: EngineReport, out: IO[str], *, file: str | None = None) -> None:
    """Writes the JSON contract (see `EngineReport.to_dict`); `file` comes first where several are written."""
    rest = {
        "effective_config": report.effective_config,
        "lines": report.lines,
        "unparsed": report.unparsed,
    }
    out.write("{")
    if file is not None:
        out.write(f'"file": {json.dumps(file)}, ')
    head = {"engine": report.engine, "version": report.version, "clock": report.clock}
    for name, value in {**head, "startup": plain(report.startup)}.items():
        out.write(f"{json.dumps(name)}: {_dump(value)}, ")
    for name in RECORDS:
        out.write(f"{json.dumps(name)}: [")
        for number, record in enumerate(getattr(report, name)):
            out.write((",\n  " if number else "\n  ") + _dump(plain(record)))
        out.write("], ")
    out.write(", ".join(f"{json.dumps(name)}: {_dump(value)}" for name, value in rest.items()) + "}")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def write_csv(report: EngineReport, table: str | None, out: IO[str], *, file: str) -> None:
    """Writes one list of records, the file's name in front; by default what is printed while it runs.

    Args:
        table: a name of `RECORDS`, or None.
    """
    name = table or next(
        (name for name in ("intervals", "decode_batches", "prefill_batches", "incidents") if getattr(report, name)),
        "intervals",
    )
    writer = None
    for record in getattr(report, name):
        row = {"file": file, **plain(record)}
        row.setdefault("t_outer", None)
        if writer is None:
            writer = csv.DictWriter(out, list(row), extrasaction="ignore")
            writer.writeheader()
        writer.writerow({key: _cell(value) for key, value in row.items()})


def _cell(value: Any) -> Any:
    return _dump(value) if isinstance(value, list | dict) else value
