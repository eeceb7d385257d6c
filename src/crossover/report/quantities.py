"""The quantities of the report: name, unit, which way is better, where a cell's metrics hold them.

Each is a row of the registry `QUANTITIES`; tables, figures, comparisons and the published figures all refer
to it by key.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """One quantity of a cell.

    `source` is the path in `metrics.json`; `statistic` the figure of it that stands for the cell; `scale`
    multiplies the stored value into `unit`. `better` is "lower", "higher" or "" where neither is.
    """

    key: str
    label: str
    unit: str
    source: tuple[str, ...]
    statistic: str
    better: str
    meaning: str
    scale: float = 1.0

    @property
    def heading(self) -> str:
        """The label with its unit, as a column heading or an axis label."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


def _seconds(key: str, label: str, statistic: str, meaning: str) -> Quantity:
    return Quantity(key, label, "s", ("metrics", key), statistic, "lower", meaning)


def _millis(key: str, label: str, meaning: str) -> Quantity:
    return Quantity(key, label, "ms", ("metrics", key), "mean", "lower", meaning, scale=1000)


_ALL = (
    Quantity(
        "duration_s",
        "Total time",
        "s",
        ("duration_s",),
        "value",
        "lower",
        "first send to last output of the whole cell",
    ),
    _seconds("e2e_s", "End-to-end", "mean", "last output event minus send, mean over requests"),
    Quantity(
        "stable_decode_tok_s",
        "Stable decode",
        "tok/s",
        ("metrics", "stable_decode_tok_s"),
        "value",
        "higher",
        "tokens per second over the spans in which all wanted requests are decoding, from the client",
    ),
    Quantity(
        "output_tok_s",
        "Output",
        "tok/s",
        ("metrics", "output_tok_s"),
        "value",
        "higher",
        "all completion tokens over the wall time from first send to last output",
    ),
    _seconds("ttft_s", "TTFT", "mean", "first event with output of any kind, reasoning included, minus send"),
    _seconds("ttfot_s", "TTFOT", "mean", "first event with output that is not reasoning, minus send"),
    _millis("tpot_s", "TPOT", "(last output - first output) / (tokens - 1), mean over requests"),
    _millis("itl_s", "ITL", "gaps between output events shared out over the tokens they carry"),
    _millis("icl_s", "ICL", "gaps between output events, one a chunk"),
    Quantity(
        "goodput",
        "Goodput",
        "share",
        ("metrics", "goodput"),
        "value",
        "higher",
        "share of requests inside the stated TTFT and TPOT limits",
    ),
    Quantity(
        "engine_decode_tok_s",
        "Decode in engine log",
        "tok/s",
        ("engine", "stable_decode_tok_s"),
        "mean",
        "higher",
        "stable decode throughput as the engine itself logged it",
    ),
    Quantity(
        "acceptance_length",
        "Acceptance length",
        "tok/step",
        ("engine", "acceptance_length"),
        "mean",
        "higher",
        "tokens accepted a step, the bonus token included, from the engine log",
    ),
    Quantity(
        "prefix_hit_rate",
        "Prefix hits",
        "share",
        ("engine", "prefix_hit_rate"),
        "value",
        "",
        "share of prompt tokens served from the prefix cache, from the engine log",
    ),
)

QUANTITIES: dict[str, Quantity] = {quantity.key: quantity for quantity in _ALL}

# Which quantity decides "who is faster", first that both cells have.
DECISIVE = ("e2e_s", "duration_s")
