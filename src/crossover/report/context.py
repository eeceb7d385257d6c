"""What every table and figure is built from: the sheet, its analysis, and the footnotes of the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from crossover.report.analysis import Analysis, analyse
from crossover.report.formatting import slug
from crossover.report.labels import entry_href
from crossover.report.notes import Notes
from crossover.report.sheet import Cell, Sheet


@dataclass
class Context:
    """The sheet with what is derived from it once."""

    sheet: Sheet
    notes: Notes = field(default_factory=Notes)

    @cached_property
    def analysis(self) -> Analysis:
        """Comparisons, crossovers and attribution of the sheet's cells."""
        return analyse(self.sheet)

    def href(self, cell: Cell) -> str:
        """Returns the anchor of the entry that a cell's numbers come from."""
        return entry_href(cell.run_key) or f"#cell-{slug(cell.id)}"
