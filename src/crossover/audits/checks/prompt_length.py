"""Prompts and answers were as long as was asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed
from crossover.audits.printed import Interval, plain
from crossover.audits.table import Cell, Table, context_of

IDENTITY = "mean prompt tokens from usage = input tokens of the workload; in tables also the tokens of an answer"
TOLERANCE = (
    "1 % is named, 5 % is an error; a chat template of up to 64 tokens is allowed for; answers in tables: 0.5 %; a "
    "length that only a cell's name says (64K) is no plan"
)
REASON = (
    "random tokens that are decoded and encoded again change in number, by up to five times with the wrong tokenizer"
)
_WARN, _ERROR, _TEMPLATE_TOKENS = 0.01, 0.05, 64
_OUTPUT_TOLERANCE = 0.005


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Compares the mean of usage with the plan."""
    asked = evidence.workload.get("input_tokens")
    tokens = evidence.observations.prompt_tokens
    if not asked or not len(tokens) or np.isnan(tokens).any():
        yield not_applicable("prompt_tokens", "the workload has no fixed length, or usage is missing")
        return
    mean = float(tokens.mean())
    yield _prompts("prompt_tokens", mean, float(asked), asked)


def check_table(table: Table) -> Iterator[Finding]:
    """Compares the mean lengths of a cell, from its totals or as printed, with those that the workload states."""
    for cell in table.cells:
        stated = cell.get("asked_input_tokens")
        asked = float(stated.printed) if stated is not None else cell.workload.get("input_tokens")
        printed = _mean(cell, "input_tokens", "total_input_tokens")
        if asked and printed is not None and context_of(cell.name) != asked:
            yield _prompts(printed[0], printed[1].middle, asked, plain(asked))
        wanted = cell.workload.get("output_tokens")
        printed = _mean(cell, "output_tokens", "total_output_tokens")
        if wanted and printed is not None:
            yield _answers(*printed, wanted)


def _mean(cell: Cell, quantity: str, total: str) -> tuple[str, Interval] | None:
    """The path and the mean of a length: the total over the requests, else the mean that is printed."""
    whole, mean, requests = cell.get(total), cell.get(quantity), cell.requests
    if whole is not None and requests:
        return whole.path, Interval.exactly(float(whole.printed) / requests)
    return None if mean is None else (mean.path, mean.interval)


def _prompts(subject: str, mean: float, asked: float, plain_asked: object) -> Finding:
    drift = mean / asked - 1
    words = f"{mean:.1f} prompt tokens on average where {plain_asked} were asked for ({drift:+.2%})"
    if abs(drift) <= _WARN or 0 <= mean - asked <= _TEMPLATE_TOKENS:
        return passed(subject, words, mean, plain_asked)
    size = "an error" if abs(drift) > _ERROR else "a warning"
    advice = "send token ids, or adjust the text until the server's count holds"
    return Finding("inconsistent", subject, f"{words}: {size}", mean, plain_asked, advice)


def _answers(subject: str, mean: Interval, wanted: float) -> Finding:
    drift = mean.middle / wanted - 1
    words = f"{mean.middle:.1f} output tokens on average where {wanted:g} were asked for ({drift:+.2%})"
    if mean.agrees(Interval.exactly(wanted), _OUTPUT_TOLERANCE):
        return passed(subject, words, plain(mean.middle), plain(wanted))
    reason = "the requests stopped early" if drift < 0 else "tokens are counted twice, or by another tokenizer"
    advice = "ignore the end token, and take the counts from usage"
    return Finding("inconsistent", subject, f"{words}: {reason}", plain(mean.middle), plain(wanted), advice)
