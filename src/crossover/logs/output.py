"""Writes a report as JSON or CSV, record by record: a long log needs no more memory on its way out."""

from __future__ import annotations

import csv
import dataclasses
import json
from typing import IO, Any

from crossover.logs.model import (
    RECORDS,
    DecodeBatch,
    EngineReport,
    Incident,
    Interval,
    MemoryItem,
    Pool,
    PrefillBatch,
    Speculation,
    plain,
)

_USUAL = ("intervals", "decode_batches", "prefill_batches", "incidents")
_TYPES: dict[str, type] = {
    "pools": Pool, "memory": MemoryItem, "intervals": Interval, "prefill_batches": PrefillBatch,
    "decode_batches": DecodeBatch, "speculation": Speculation, "incidents": Incident,
}  # fmt: skip


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


def usual_table(report: EngineReport) -> str:
    """Returns the name of the list that says how the server ran, else of the incidents."""
    return next((name for name in _USUAL if getattr(report, name)), _USUAL[0])


def columns_of(table: str) -> list[str]:
    """Returns the columns of a table: the file, and the fields of its records, whether a log has them or not."""
    kind = _TYPES[table]
    fields = list(getattr(kind, "_fields", ())) or [field.name for field in dataclasses.fields(kind)]
    return ["file", *fields, *([] if "t_outer" in fields or "t" not in fields else ["t_outer"])]


def write_csv(report: EngineReport, table: str, out: IO[str], *, file: str, header: bool = True) -> None:
    """Writes one list of records, the file's name in front. Its columns are the same for every log.

    Args:
        table: a name of `RECORDS`.
        header: whether the line of names comes first.
    """
    writer = csv.DictWriter(out, columns_of(table))
    if header:
        writer.writeheader()
    for record in getattr(report, table):
        writer.writerow({"file": file, **{key: _cell(value) for key, value in plain(record).items()}})


def _cell(value: Any) -> Any:
    return _dump(value) if isinstance(value, list | dict) else value
