"""Aggregate decode throughput = running requests x accepted length / step time, and ratios of it.

With speculation, a step of the engine emits for each running request the accepted tokens (bonus token
included); without it one. Two of the three are in the engine's log, so the step time follows, and the ratio
of two cells' throughputs is exactly the product of the ratios of the three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """A figure with the interval that its inputs allow; low = value = high where nothing is known of it."""

    value: float
    low: float
    high: float

    @staticmethod
    def exactly(value: float) -> Estimate:
        """Returns a figure without an interval."""
        return Estimate(float(value), float(value), float(value))

    @staticmethod
    def of_range(low: float, high: float) -> Estimate:
        """Returns the middle of a range, with the range as interval."""
        return Estimate((low + high) / 2, float(low), float(high))

    def __mul__(self, other: Estimate) -> Estimate:
        return Estimate(self.value * other.value, self.low * other.low, self.high * other.high)

    def __truediv__(self, other: Estimate) -> Estimate:
        return Estimate(self.value / other.value, self.low / other.high, self.high / other.low)

    def to_dict(self) -> dict[str, float]:
        """Returns value, low and high."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class DecodeState:
    """One cell while all its requests decode.

    Attributes:
        running: requests in the batch.
        accepted_length: tokens a request and step, bonus token included; 1 without speculation.
        decode_tok_s: aggregate throughput.
    """

    running: Estimate
    accepted_length: Estimate
    decode_tok_s: Estimate

    @property
    def step_time_s(self) -> Estimate:
        """Running x accepted length / throughput.

        The interval is that of the accepted length alone: within one cell throughput follows acceptance, so
        their ranges do not add.
        """
        rate = Estimate.exactly(self.decode_tok_s.value)
        return self.running * self.accepted_length / rate


@dataclass(frozen=True)
class Comparison:
    """The ratio of two cells' decode throughputs, and its three factors; above 1 favours the first.

    Attributes:
        decode_ratio: first throughput / second throughput.
        of_which_accept_len: first accepted length / second.
        of_which_step_time: second step time / first.
        of_which_running: first running / second.
    """

    decode_ratio: Estimate
    of_which_accept_len: Estimate
    of_which_step_time: Estimate
    of_which_running: Estimate

    @property
    def factors(self) -> Mapping[str, Estimate]:
        """The factors, whose values multiply to the ratio."""
        return {
            "accepted length": self.of_which_accept_len,
            "step time": self.of_which_step_time,
            "running requests": self.of_which_running,
        }

    @property
    def shares(self) -> Mapping[str, float]:
        """Each factor's share of the logarithm of the ratio; they add up to 1, and may be negative."""
        total = math.log(self.decode_ratio.value)
        if abs(total) < 1e-12:
            return dict.fromkeys(self.factors, 0.0)
        return {name: math.log(factor.value) / total for name, factor in self.factors.items()}

    def to_dict(self) -> dict[str, Any]:
        """Returns the ratio, its factors with intervals, shares and the sentence."""
        return {
            "decode_ratio": self.decode_ratio.to_dict(),
            "of_which_accept_len": self.of_which_accept_len.to_dict(),
            "of_which_step_time": self.of_which_step_time.to_dict(),
            "of_which_running": self.of_which_running.to_dict(),
            "shares": dict(self.shares),
        }


def compare(first: DecodeState, second: DecodeState) -> Comparison:
    """Splits the ratio of two decode throughputs into its factors."""
    return Comparison(
        decode_ratio=first.decode_tok_s / second.decode_tok_s,
        of_which_accept_len=first.accepted_length / second.accepted_length,
        of_which_step_time=second.step_time_s / first.step_time_s,
        of_which_running=first.running / second.running,
    )


def largest_factor(comparison: Comparison, first: str, second: str) -> str:
    """Returns one plain sentence: who decodes faster, by what factor, and what most of it comes from.

    Args:
        comparison: of the two.
        first, second: how the sentence names them.
    """
    ratio = comparison.decode_ratio.value
    ahead, behind, lead = (first, second, ratio) if ratio >= 1 else (second, first, 1 / ratio)
    toward = {name: (f.value if ratio >= 1 else 1 / f.value) for name, f in comparison.factors.items()}
    name, factor = max(toward.items(), key=lambda item: item[1])
    if lead < 1.005 and factor < 1.02:
        return f"{first} and {second} decode at the same rate."
    text = f"{ahead} decodes {lead:.2f} times as fast as {behind}; the largest factor is {name} ({factor:.2f})"
    against = {other: value for other, value in toward.items() if value < 0.98}
    if against:
        words = " and ".join(f"{other} ({value:.2f})" for other, value in against.items())
        text += f", while {words} is against it" if len(against) == 1 else f", while {words} are against it"
    return text + "."
