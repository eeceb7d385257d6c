"""Expands an experiment, and retest items laid over it, into cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.experiment.load import CONFIG_DIR, check_models, parse_workloads, resolve_variants
from crossover.experiment.model import Experiment, RetestItem, Variant, Workload


@dataclass(frozen=True)
class Cell:
    """Engine variant x workload x repeat: the unit that gets numbers.

    Attributes:
        items: the retest items that want the cell; empty where only the base does.
        in_base: whether the experiment itself wants it.
    """

    variant: Variant
    workload: Workload
    repeat: int
    items: tuple[int, ...] = ()
    in_base: bool = True

    @property
    def id(self) -> str:
        """Name of the cell for people, such as `vllm/random/64000+3000/c10/r0`; part of no key."""
        return f"{self.variant.name}/{self.workload.label}/r{self.repeat}"


@dataclass(frozen=True)
class Expansion:
    """Everything an experiment wants with some retest items applied.

    Attributes:
        cells: base cells first, then those that each item adds, one after the other.
        variants: all variants by name, the items' included.
        metrics: metrics wanted, the items' included (shape of experiment.schema.json#/$defs/metrics).
        diagnoses: questions to the logs.
        items: the applied items in the order of their numbers.
    """

    cells: tuple[Cell, ...]
    variants: Mapping[str, Variant]
    metrics: Mapping[str, Any]
    diagnoses: tuple[str, ...]
    items: tuple[RetestItem, ...]


def expand(experiment: Experiment, retest: Iterable[int] = (), config_dir: Path = CONFIG_DIR) -> Expansion:
    """Returns the cells of an experiment with retest items laid over it, each item over the base alone.

    Raises:
        InputError: an item that the plan does not have, or a cell that stands twice.
    """
    variants = dict(experiment.variants)
    cells = list(_cells(experiment, experiment.variants.values(), experiment.workloads))
    metrics = dict(experiment.settings["metrics"])
    diagnoses = list(experiment.settings["diagnoses"])
    items = [_item(experiment, number) for number in sorted(set(retest))]
    for item in items:
        added = resolve_variants(
            item.change.get("variants", {}),
            experiment.file,
            config_dir,
            experiment.variants,
            f"retest.{item.id}.variants",
        )
        check_models(added, experiment.models, experiment.file, f"retest.{item.id}.variants")
        workloads = list(
            parse_workloads(item.change.get("workloads", []), variants, experiment.file, f"retest.{item.id}.workloads")
        )
        base = [cell for cell in cells if cell.in_base]
        base_workloads = {cell.workload.label: cell.workload for cell in base}
        cells += _cells(experiment, added.values(), list(base_workloads.values()), item.id)
        cells += _cells(experiment, experiment.variants.values(), workloads, item.id)
        variants |= added
        _add_metrics(metrics, item.change.get("metrics", {}))
        diagnoses += [name for name in item.change.get("diagnoses", []) if name not in diagnoses]
    merged = _merge_equal(cells, experiment.file)
    if not merged:
        raise InputError(
            "the experiment has no cell",
            file=experiment.file,
            place="workloads",
            remedy="let at least one workload apply to one variant",
        )
    return Expansion(tuple(merged), variants, metrics, tuple(diagnoses), tuple(items))


def _item(experiment: Experiment, number: int) -> RetestItem:
    if number not in experiment.retest:
        known = ", ".join(str(known) for known in experiment.retest) or "none; add `retest_plan`"
        raise InputError(
            f"no retest item {number}", file=experiment.file, place="retest_plan", remedy=f"known items: {known}"
        )
    return experiment.retest[number]


def _cells(
    experiment: Experiment, variants: Iterable[Variant], workloads: Sequence[Workload], item: int | None = None
) -> Iterable[Cell]:
    """Yields cells, repeats outermost and variants innermost, so that a slow drift touches all variants alike."""
    known = list(variants)
    for repeat in range(int(experiment.settings["repeats"])):
        for workload in workloads:
            for variant in known:
                if item is None and workload.variants and variant.name not in workload.variants:
                    continue
                yield Cell(variant, workload, repeat, (item,) if item else (), item is None)


def _add_metrics(metrics: dict[str, Any], change: Mapping[str, Any]) -> None:
    for field, values in change.items():
        if field in metrics:  # an absent field means all, to which nothing can be added
            metrics[field] = [*metrics[field], *(value for value in values if value not in metrics[field])]


def _merge_equal(cells: Sequence[Cell], file: Path) -> list[Cell]:
    """Merges cells that several items want; the same cell twice in the base is an error of the file."""
    merged: dict[str, Cell] = {}
    for cell in cells:
        old = merged.get(cell.id)
        if old is None:
            merged[cell.id] = cell
        elif old.in_base and cell.in_base:
            raise InputError(f"cell {cell.id} stands twice", file=file, place="workloads", remedy="remove one of them")
        else:
            merged[cell.id] = Cell(
                old.variant, old.workload, old.repeat, old.items + cell.items, old.in_base or cell.in_base
            )
    return list(merged.values())
