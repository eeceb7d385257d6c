"""From a recording to tables of events and requests. It runs after the load, and can be run again at no
cost.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from crossover.client.columns import EventColumns, events_frame, requests_frame, stretched
from crossover.client.findings import findings_of
from crossover.client.fitness import FitnessLimits, fitness_of
from crossover.client.reads import reads_by_request
from crossover.client.spool import READS_NAME, RECORDING_NAME, SENDS_NAME, SPOOL_NAME, finish_spool
from crossover.client.tables import Tables
from crossover.client.tokens import load_counter
from crossover.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Interpretation:
    """What a recording says.

    Args:
        event_columns: a row an event, as arrays.
        rows: a row a request, with the columns of `requests`; None is missing.
        fitness: figures of the recorder itself, in real time, with a verdict.
        findings: what a reader must know, each with `finding`, `severity` (error, warning, note), `count` and
            `why`.
    """

    event_columns: EventColumns
    rows: list[dict[str, Any]]
    fitness: dict[str, Any]
    findings: list[dict[str, Any]]

    @cached_property
    def events(self) -> pd.DataFrame:
        """
        A row an event: request, seq, t_kernel_ns, t_user_ns, kind, tokens, choice. `t_kernel_ns` is missing where only
        user times exist (TLS). `tokens` is missing where it is not known, 0 for events without output.
        """
        return events_frame(self.event_columns)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """
        A row a request: request, prompt_index, request_id, scheduled_ns, sent_ns, send_end_ns, first_byte_ns, end_ns,
        status, reason, http_status, finish_reason, message, prompt_tokens, completion_tokens, cached_tokens,
        reasoning_tokens, tokens_source, output_tokens_asked, prompt_tokens_expected, output_events, choices, attempts.
        """
        return requests_frame(self.rows)


def interpret(
    recording_dir: Path,
    clock_scale: float = 1.0,
    *,
    tokenizer: Path | None = None,
    limits: FitnessLimits | None = None,
) -> Interpretation:
    """Interprets a recording.

    Args:
        recording_dir: where `record` wrote; a recording whose recorder was killed is read as far as it got.
        clock_scale: declared seconds per real second; all times become t0 + (t - t0) x scale, with t0 the
            first send.
        tokenizer: a tokenizer.json (or its folder), used only where the stream itself does not tell tokens
            per event.
        limits: beyond which the recording is rejected.

    Raises:
        InputError: the folder holds no recording.
    """
    about = _load_about(recording_dir)
    sends = pq.ParquetFile(recording_dir / SENDS_NAME).read().to_pylist()
    counter = load_counter(tokenizer) if tokenizer is not None else None
    tables = Tables(counter)
    by_request = {int(row["request"]): row for row in sends}
    seen = set()
    for request, reads in reads_by_request(recording_dir / READS_NAME):
        seen.add(request)
        tables.add(by_request.get(request, {"request": request}), reads)
    for request in sorted(by_request.keys() - seen):
        tables.add(by_request[request], None)
    events, requests = tables.columns()
    fitness = fitness_of(recording_dir, about, tables.coalesced, limits or FitnessLimits())
    findings = findings_of(requests, fitness, about, tables.unknown_fields)
    if about["clock"] == "user":
        events = replace(events, kernel_ns=None)
    if clock_scale != 1.0:
        events = stretched(events, requests, clock_scale)
    return Interpretation(events, requests, fitness, findings)


def _load_about(recording_dir: Path) -> dict[str, Any]:
    file = recording_dir / RECORDING_NAME
    if not file.exists():
        raise InputError("no recording here", file=recording_dir, remedy=f"a recording has a {RECORDING_NAME}")
    if (recording_dir / SPOOL_NAME).exists():
        finish_spool(recording_dir)
    about: dict[str, Any] = json.loads(file.read_text())
    return about
