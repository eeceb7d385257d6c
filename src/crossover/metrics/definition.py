"""What a metric's file has to say about itself, and what its computation may hand back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Definition:
    """A metric in words: the text that the documentation page prints and the report links to.

    Attributes:
        name: key in metrics.json, ends with its unit where it has one.
        title: name that a table heading shows.
        unit: `s`, `tok/s` or `share`.
        better: whether a lower or a higher figure is the better one.
        kind: `distribution` (one value a request or a gap) or `value` (one for the cell).
        formula: the computation in one line.
        clock: which stamps enter.
        exclusions: what is left out, and why.
        source: where the definition comes from, and who computes it otherwise.
    """

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher"]
    kind: Literal["distribution", "value"]
    formula: str
    clock: str
    exclusions: str
    source: str


@dataclass(frozen=True)
class Context:
    """What a metric may know beside the observations.

    Attributes:
        concurrency: requests that were to run at the same time, or None under an open loop.
        goodput_limits: `{"ttft_s": limit, "tpot_s": limit}`, either may be missing.
        percentiles: the percentiles of every distribution, in percent.
    """

    concurrency: int | None = None
    goodput_limits: dict[str, float] | None = None
    percentiles: tuple[float, ...] = (50, 90, 99)


@dataclass(frozen=True)
class Sample:
    """Values of a distribution, in the metric's unit.

    Attributes:
        values: shape (n,).
        missing: why there is none, where there is none.
        blocks: shape (n,) for values that are not independent of one another (gaps share engine steps):
            the block that each value falls into, the unit that intervals count. None: independent.
    """

    values: FloatArray
    missing: str | None = None
    blocks: IntArray | None = None


@dataclass(frozen=True)
class Value:
    """A single figure of a cell, in the metric's unit; `value` is None exactly where `withheld` says why."""

    value: float | None
    withheld: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
