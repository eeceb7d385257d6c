"""Reads the coefficients of the simulated engines from `data/calibration.yaml`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from crossover.errors import InputError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DIALECTS = ("vllm", "sglang")


@cache
def load_calibration() -> Mapping[str, Any]:
    """Returns the whole calibration: `hardware`, `model`, `text` and one section for each dialect."""
    text = resources.files(__package__).joinpath("data/calibration.yaml").read_text(encoding="utf-8")
    document: Mapping[str, Any] = yaml.load(text, Loader=_Loader)
    return document


def read_calibration(path: Path) -> Mapping[str, Any]:
    """Returns the calibration with the sections of a file in place of its own: refitted coefficients, other hardware.

    Mappings are merged key by key, anything else is replaced.

    Raises:
        InputError: the file cannot be read, or is no mapping, or has a key that the calibration lacks.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"cannot be read: {error}".replace("\n", " "), file=path) from None
    return _merged(load_calibration(), document, path, "")


def _merged(base: Mapping[str, Any], changes: Any, path: Path, place: str) -> Mapping[str, Any]:
    if not isinstance(changes, Mapping):
        raise InputError("is no mapping", file=path, place=place or None)
    merged = dict(base)
    for key, value in changes.items():
        inner = f"{place}.{key}".lstrip(".")
        if key not in base:
            raise InputError("unknown key", file=path, place=inner, remedy=f"use one of {', '.join(map(str, base))}")
        merged[key] = _merged(base[key], value, path, inner) if isinstance(base[key], Mapping) else value
    return merged


def interpolate(points: list[list[float]], x: float) -> float:
    """Returns the value at `x` on the line through `points` ([x, y], ascending x), constant outside them."""
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return points[-1][1]
