"""What was read from a client's output."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from crossover.audits.printed import Printed
from crossover.peers.meanings import MEANINGS, Meaning

OK, FAILED, INCOMPLETE = "ok", "failed", "incomplete"


@dataclass(frozen=True)
class Figure:
    """One figure of the output.

    Attributes:
        column: its name in the tool.
        meaning: name of its meaning (`crossover.peers.meanings`).
        statistic: mean, p50, p90, p95, p99, min, max, std, or value for a single one.
        value: in the base unit of the meaning; None where the tool printed a mark for missing, or a zero that
            means that no clock ever started.
    """

    column: str
    meaning: str
    statistic: str
    value: float | None

    @property
    def means(self) -> Meaning:
        return MEANINGS[self.meaning]


@dataclass(frozen=True)
class Requests:
    """Requests by outcome; None where the tool does not tell."""

    ok: int | None = None
    failed: int | None = None
    incomplete: int | None = None


@dataclass(frozen=True)
class PeerReport:
    """A client's output in our terms.

    Attributes:
        tool: its name in `TOOLS`.
        version: of the tool, where the output tells.
        backend: which of its protocols it used, where it matters to the meaning of a column.
        requests: counts by outcome.
        duration_s: of the run, as printed.
        prompt_tokens: total.
        completion_tokens: total of successful requests.
        made_requests: how many were made or were to be made, where the output tells that beside the outcomes.
        mean_prompt_tokens, mean_completion_tokens: of a request, where the output has no total to divide.
        concurrency: asked for; None where not set or not told.
        achieved_concurrency: as the tool reports it.
        figures: all others.
        per_request: rows of `{"status", "ttft_s", "e2e_s", "tpot_s", "prompt_tokens", "completion_tokens"}`
            of single requests, where the output holds them.
        gaps_s: gaps between the events of successful requests, where the output holds them.
        gap_meaning: what those gaps are.
        extra: other facts by name.
        structured: whether it was read from JSON or CSV, whose numbers are not rounded for print.
    """

    tool: str
    version: str | None = None
    backend: str | None = None
    requests: Requests = field(default_factory=Requests)
    duration_s: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    made_requests: int | None = None
    mean_prompt_tokens: float | None = None
    mean_completion_tokens: float | None = None
    concurrency: int | None = None
    achieved_concurrency: float | None = None
    figures: tuple[Figure, ...] = ()
    per_request: tuple[Mapping[str, Any], ...] = ()
    gaps_s: tuple[float, ...] = ()
    gap_meaning: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    structured: bool = False

    def figure(self, metric: str, statistic: str = "mean") -> float | None:
        """Returns a figure of one of our metrics, or None."""
        for figure in self.figures:
            if figure.means.metric == metric and figure.statistic == statistic:
                return figure.value
        return None

    def in_declared_time(self, clock_scale: float) -> PeerReport:
        """Returns the report of a run on a simulated engine in the time that the engine declares.

        Args:
            clock_scale: declared seconds a second; 1 for a real engine.
        """
        if clock_scale == 1:
            return self
        times = ("ttft_s", "e2e_s", "tpot_s")
        return replace(
            self,
            duration_s=_scaled(self.duration_s, clock_scale),
            figures=tuple(
                replace(figure, value=_scaled(figure.value, _factor(figure.means.unit, clock_scale)))
                for figure in self.figures
            ),
            per_request=tuple(
                {**row, **{name: _scaled(row.get(name), clock_scale) for name in times}} for row in self.per_request
            ),
            gaps_s=tuple(gap * clock_scale for gap in self.gaps_s),
        )

    def ours(self) -> list[dict[str, Any]]:
        """Returns the figures that are, or are nearest to, one of our metrics, each with its definition.

        Returns:
            `{"metric", "statistic", "value", "unit", "column", "same_as_ours", "definition", "audited_as"}`; times in
            s, rates in tok/s. `audited_as` is the figure's name in `to_table`.
        """
        return [
            {
                "metric": figure.means.metric,
                "statistic": figure.statistic,
                "value": figure.value,
                "unit": figure.means.unit,
                "column": figure.column,
                "same_as_ours": figure.means.same,
                "definition": figure.means.formula,
                "audited_as": _table_name(figure),
            }
            for figure in self.figures
            if figure.means.metric is not None and figure.value is not None
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns the report for JSON; absent is null."""
        from crossover.peers.implied import implied
        from crossover.peers.recomputation import recompute
        from crossover.peers.tools import TOOLS

        return {
            "tool": self.tool,
            "version": self.version,
            "backend": self.backend,
            "requests": asdict(self.requests),
            "duration_s": self.duration_s,
            "tokens": {"prompt": self.prompt_tokens, "completion": self.completion_tokens, "source": "client"},
            "concurrency": {"asked": self.concurrency, "achieved": self.achieved_concurrency},
            "metrics": self._metrics(),
            "not_ours": [_entry(figure) for figure in self.figures if figure.means.metric is None],
            "recomputed": recompute(self),
            "implied": implied(self),
            "percentile_method": TOOLS[self.tool].percentiles if self.tool in TOOLS else None,
            "extra": dict(self.extra),
        }

    def _metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for figure in self.figures:
            means = figure.means
            if means.metric is not None:
                entry = found.setdefault(
                    means.metric,
                    {
                        "unit": means.unit,
                        "column": figure.column,
                        "meaning": means.name,
                        "same_as_ours": means.same,
                        "formula": means.formula,
                    },
                )
                entry.setdefault(figure.statistic, figure.value)
        return found

    def to_table(self) -> dict[str, Any]:
        """Returns the report as a table for `crossover.audits.make_table`: what can be audited, under our names."""
        printed = partial(_as_printed, structured=self.structured)
        figures: dict[str, Any] = {
            "requests": self.requests.ok,
            "failed": self.requests.failed,
            "incomplete": self.requests.incomplete,
            "total_requests": self.made_requests,
            "total_s": printed(self.duration_s),
            "total_input_tokens": self.prompt_tokens,
            "total_output_tokens": self.completion_tokens,
            "total_generated_tokens_retokenized": self.extra.get("retokenized_completion_tokens"),
        }
        if self.completion_tokens is None:
            figures["output_tokens"] = printed(self.mean_completion_tokens)
        if self.prompt_tokens is None:
            figures["input_tokens"] = printed(self.mean_prompt_tokens)
        for figure in self.figures:
            name = _table_name(figure)
            if name is not None and not self._peak_of_a_short_run(figure):
                absent = "--" if figure.statistic == "mean" else None
                figures.setdefault(name, absent if figure.value is None else printed(figure.value))
        workload = {"concurrency": self.concurrency, "requests": self.requests.ok}
        return {
            "workload": {key: value for key, value in workload.items() if value is not None},
            "client": {self.tool: {key: value for key, value in figures.items() if value is not None}},
        }

    def _peak_of_a_short_run(self, figure: Figure) -> bool:
        """Says whether a peak may lie below the mean without fault.

        Peaks are taken over whole seconds from the start: in 1.25 s of 128 tokens/s, two seconds of 108 hold them all.
        Only a peak that so many seconds cannot add up to the tokens from is impossible.
        """
        if not figure.meaning.startswith("peak-") or None in (figure.value, self.duration_s, self.completion_tokens):
            return False
        seconds, tokens = math.ceil(self.duration_s or 0), self.completion_tokens or 0
        below_mean = (figure.value or 0) * (self.duration_s or 0) < tokens
        return below_mean and (figure.value or 0) * seconds >= tokens


def _factor(unit: str, clock_scale: float) -> float:
    """Returns what a figure is to be multiplied by: times grow, rates shrink, counts stay."""
    return clock_scale if unit == "s" else 1 / clock_scale if unit.endswith("/s") else 1.0


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _entry(figure: Figure) -> dict[str, Any]:
    means = figure.means
    return {
        "column": figure.column,
        "statistic": figure.statistic,
        "value": figure.value,
        "unit": means.unit,
        "meaning": means.name,
        "formula": means.formula,
    }


_TABLE_NAMES = {
    "ttft_s": "ttft_{}_s",
    "tpot_s": "tpot_{}_s",
    "icl_s": "icl_{}_s",
    "itl_s": "itl_{}_s",
    "e2e_s": "e2e_latency_{}_s",
    "output_tok_s": "output_tokens_per_s",
}
_APART = {
    "peak-chunks-per-second": "peak_output_tokens_per_s",
    "peak-of-unknown-kind": "peak_output_tokens_per_s",
    "peak-tokens-per-second": "peak_output_tokens_per_s",
    "output-over-counted-span": "output_tokens_per_s",
    "output-over-decode-time": "output_tokens_per_s",
    "total-over-wall": "total_tokens_per_s",
    "requests-over-wall": "requests_per_s",
    "chunks-per-request": "events_per_request",
    "speed-per-user": "output_{}_tokens_per_s_per_user",
    "latency-per-token": "tpot_{}_s",
    "tpot-by-chunks": "tpot_{}_s",
    "tpot-of-unknown-kind": "tpot_{}_s",
    "inverse-throughput": "tpot_{}_s",
}


def _as_printed(value: float | None, *, structured: bool) -> float | None:
    """Returns a value with the digits it was given with, from which the audits take how far rounding may have moved it.

    A number of a JSON document was not rounded: 1.0 stands for itself, not for all from 0.95 to 1.05.
    """
    if value is None or isinstance(value, Printed):
        return value
    return Printed(value, f"{value:.12f}") if structured else float(f"{value:.12g}")


def _table_name(figure: Figure) -> str | None:
    means = figure.means
    pattern = _TABLE_NAMES.get(means.metric or "") or _APART.get(means.name)
    statistic = {"value": "mean"}.get(figure.statistic, figure.statistic)
    return pattern.format(statistic) if pattern else None
