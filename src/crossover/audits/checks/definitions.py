"""A column that equals another definition is named as such."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, passed
from crossover.audits.identities import SAME_FIGURE, decode_of, other_definition
from crossover.audits.printed import Interval, plain
from crossover.audits.table import Cell, Figure, Table

IDENTITY = "TTFT, TPOT and ITL are what their names say, and no other definition fits them better"
TOLERANCE = (
    "0.2 % beyond rounding for the other definition, and the own one does not close; 3 % between a client's "
    "figure and our recording of the same cell"
)
REASON = "tools use one name for different figures: a TPOT that includes TTFT, a TTFT that waits for `content`"


CLIENT_METRICS = (
    "ttft_s",
    "ttfot_s",
    "tpot_s",
    "itl_s",
    "icl_s",
    "e2e_s",
    "output_tok_s",
    "stable_decode_tok_s",
    "goodput",
)
_RECORDED_TOLERANCE = 0.03


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Judges whether all output was seen, and what a client's own TTFT of this cell is."""
    unseen = [finding for finding in evidence.findings if finding.get("finding") == "unknown_field"]
    for finding in unseen:
        yield Finding(
            "missing",
            "events",
            str(finding.get("why")),
            advice="teach the client this field: until then its times and counts are of a part of the output",
            withholds=CLIENT_METRICS,
        )
    if not unseen:
        yield passed("events", "every field that carries output is known")
    for cell in evidence.reported.cells if evidence.reported is not None else ():
        figure = cell.get("ttft")
        if figure is not None:
            yield from _reported_ttft(evidence, figure)


def _reported_ttft(evidence: Evidence, figure: Figure) -> Iterator[Finding]:
    """Sets a client's mean TTFT against the definitions that the recording gives."""
    observations = evidence.observations
    own = evidence.mean("ttft_s")
    others = {
        "the first event of any kind, a bare role included": observations.first_event_s - observations.sent_s,
        "the first output that is not reasoning (TTFOT)": observations.first_answer_s - observations.sent_s,
        "the last output (E2E)": observations.last_s - observations.sent_s,
    }
    if own is None or figure.interval.agrees(Interval.exactly(own), _RECORDED_TOLERANCE):
        return
    for name, values in others.items():
        if len(values) and not np.isnan(values).any():
            mean = float(values.mean())
            if figure.interval.agrees(Interval.exactly(mean), _RECORDED_TOLERANCE):
                yield Finding(
                    "mislabelled",
                    figure.path,
                    f"equals the time to {name} ({figure.in_own_unit(mean):g})",
                    plain(figure.printed),
                    figure.in_own_unit(own),
                    "stop the TTFT clock at the first event with non-empty output of any kind",
                )
                return


def check_table(table: Table) -> Iterator[Finding]:
    """Names the definition that a TPOT, ITL or TTFT column follows instead of its own."""
    for cell in table.cells:
        for quantity in ("tpot", "itl"):
            figure = cell.get(quantity)
            other = other_definition(cell, figure) if figure is not None else None
            if figure is not None and other is not None:
                name, value = other
                yield Finding(
                    "mislabelled",
                    figure.path,
                    f"equals {name} ({figure.in_own_unit(value.middle):g}){_truth(cell, figure)}",
                    plain(figure.printed),
                    _expected(cell, figure),
                    "rename the column, or compute it by its definition",
                )
        yield from _ttft(cell)


def _expected(cell: Cell, figure: Figure) -> float | None:
    decode = decode_of(cell)
    return figure.in_own_unit(decode.expected.middle) if decode else None


def _truth(cell: Cell, figure: Figure) -> str:
    decode = decode_of(cell)
    if decode is None:
        return ""
    text = f"; the true TPOT is (latency - TTFT) / (n - 1) = {figure.in_own_unit(decode.expected.middle):g}"
    itl = cell.get("itl")
    if figure.recognised.quantity == "tpot" and itl is not None and itl.interval.agrees(decode.expected, 0.005):
        text += ", which the column called ITL shows"
    return text


def _ttft(cell: Cell) -> Iterator[Finding]:
    ttft, latency, tokens = cell.get("ttft"), cell.get("latency"), cell.output_tokens
    if ttft is None or latency is None or tokens is None or tokens.low <= 2:
        return
    if ttft.interval.agrees(latency.interval, SAME_FIGURE):
        yield Finding(
            "mislabelled",
            ttft.path,
            "equals the latency: the response was read as a whole",
            plain(ttft.printed),
            None,
            "stream the response and stamp its first output",
        )
