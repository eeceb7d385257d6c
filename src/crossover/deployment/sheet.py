"""The deployment sheet as frozen data; its shape is written by `crossover.planning.receipts.deployment_sheet`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover.errors import InputError


@dataclass(frozen=True)
class CellSheet:
    """One cell to measure: its name for people, its key, and its run recipe."""

    id: str
    key: str
    recipe: Mapping[str, Any]
    goodput: Mapping[str, float] | None

    @property
    def workload(self) -> Mapping[str, Any]:
        workload: Mapping[str, Any] = self.recipe["workload"]
        return workload


@dataclass(frozen=True)
class DeploymentSheet:
    """One server and the cells that are wanted of it.

    Attributes:
        server: the server's recipe (engine, arguments, environment, warm-up, hardware, ...).
        launcher: all launcher options, those that are part of no key included.
        clock_scale: simulated seconds a second; 1 for a real engine.
        warmup: keys of the prompts entries of the warm-up, one a shape.
    """

    key: str
    server_key: str
    server: Mapping[str, Any]
    label: str
    launcher: Mapping[str, Any]
    secrets: tuple[str, ...]
    image: str | None
    version: str | None
    simulated: bool
    clock_scale: float
    warmup: tuple[str, ...]
    cells: tuple[CellSheet, ...]

    @property
    def isolation(self) -> str:
        return str(self.cells[0].recipe["isolation"])


def read_sheet(file: Path) -> DeploymentSheet:
    """Returns the sheet of a file.

    Raises:
        InputError: no such file, or no deployment sheet.
    """
    try:
        return sheet_of(json.loads(file.read_text()))
    except FileNotFoundError:
        raise InputError("no such file", file=file, remedy="write it with `crossover plan --sheets`") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"not a deployment sheet ({type(error).__name__}: {error})",
            file=file,
            remedy="write it with `crossover plan --sheets`",
        ) from None


def sheet_of(data: Mapping[str, Any]) -> DeploymentSheet:
    """Returns the sheet with these contents; ValueError, KeyError or TypeError where they are none."""
    cells = tuple(CellSheet(cell["id"], cell["key"], cell["recipe"], cell.get("goodput")) for cell in data["cells"])
    return DeploymentSheet(
        key=data["key"],
        server_key=data["server_key"],
        server=data["server"],
        label=data["label"],
        launcher=data["launcher"],
        secrets=tuple(data["secrets"]),
        image=data.get("image"),
        version=data.get("version"),
        simulated=data["simulated"],
        clock_scale=float(data["clock_scale"]),
        warmup=tuple(data["warmup"]),
        cells=cells,
    )
