"""The confound ledger of two variants of a sheet, from their effective configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossover.confounds import ledger
from crossover.report.formatting import join
from crossover.report.retest import isolated_effects
from crossover.report.sheet import Sheet


@dataclass(frozen=True)
class Confound:
    """The effective configurations of two variants set side by side."""

    first: str
    second: str
    verdict: str
    items: Sequence[Mapping[str, Any]]
    label: str

    @property
    def controlled(self) -> bool:
        """Whether nothing but the factor under test differs."""
        return self.verdict == "controlled"


def ledger_of(sheet: Sheet, first: str, second: str) -> Confound:
    """Returns the confound ledger of two variants: their effective configurations, the engine being under test."""
    ours, theirs = effective_config(sheet, first), effective_config(sheet, second)
    if not ours or not theirs:
        missing = join([name for name, config in ((first, ours), (second, theirs)) if not config])
        label = f"The effective configuration of {missing} is not known: nothing rules out other differences."
        return Confound(first, second, "undetermined", [], label)
    found = ledger(ours, theirs, under_test=("engine",), effects=isolated_effects(sheet))
    items = [vars(item) for item in found.items if item.status != "same"]
    return Confound(first, second, found.verdict, items, found.sentence(first, second))


def effective_config(sheet: Sheet, variant: str) -> Mapping[str, Any]:
    """Returns a variant's effective configuration from its engine report, or nothing where no log told it."""
    for cell in sheet.cells:
        if cell.variant == variant:
            for told in (cell.engine_report.get("effective_config"), cell.engine_facts.get("effective_config")):
                if isinstance(told, Mapping) and told:
                    return told
    return {}
