"""Reads the coefficients of the simulated engines from `data/calibration.yaml`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DIALECTS = ("vllm", "sglang")


@cache
def load_calibration() -> Mapping[str, Any]:
    """Returns the whole calibration: `hardware`, `model`, `text` and one section for each dialect."""
    text = resources.files(__package__).joinpath("data/calibration.yaml").read_text(encoding="utf-8")
    document: Mapping[str, Any] = yaml.load(text, Loader=_Loader)
    return document


def interpolate(points: list[list[float]], x: float) -> float:
    """Returns the value at `x` on the line through `points` ([x, y], ascending x), constant outside them."""
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return points[-1][1]
