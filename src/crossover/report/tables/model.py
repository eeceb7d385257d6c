"""What a table is, before it becomes HTML, Markdown or CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Value = float | int | str | bool | None


@dataclass(frozen=True)
class Datum:
    """One cell of a table: `text` to read, `value` for the CSV and for sorting.

    `below` is a second, smaller line such as an interval; `note` the number of a footnote; `href` an anchor
    on the page; `tone` one of "", "good", "bad", "warn", "quiet".
    """

    text: str
    value: Value = None
    below: str = ""
    note: int | None = None
    href: str = ""
    tone: str = ""
    low: float | None = None
    high: float | None = None

    @property
    def sort_key(self) -> Value:
        """What the page sorts by: the value where there is one, else the text."""
        return self.text if self.value is None and not self.note else self.value


@dataclass(frozen=True)
class Column:
    """One column. `name` heads the CSV, units included; `interval` adds `_low` and `_high` columns there."""

    name: str
    label: str
    unit: str = ""
    numeric: bool = False
    meaning: str = ""
    interval: bool = False


@dataclass(frozen=True)
class Table:
    """A table; the first column heads its rows. `shown` limits the page, never the CSV; `folded` hides it at first."""

    name: str
    title: str
    lead: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Datum]]
    shown: int | None = None
    folded: bool = False

    @property
    def page_rows(self) -> Sequence[Sequence[Datum]]:
        """The rows that stand on the page."""
        return self.rows if self.shown is None else self.rows[: self.shown]

    @property
    def left_out(self) -> int:
        """How many rows are in the CSV alone."""
        return len(self.rows) - len(self.page_rows)

    def records(self) -> list[dict[str, Value]]:
        """Returns the rows as flat records, the form of the CSV and of `report.json`."""
        records = []
        for row in self.rows:
            record: dict[str, Value] = {}
            for column, datum in zip(self.columns, row, strict=True):
                record[column.name] = datum.value if column.numeric or datum.value is not None else datum.text
                if column.interval:
                    record[f"{column.name}_low"], record[f"{column.name}_high"] = datum.low, datum.high
            records.append(record)
        return records


def text(words: str, **keywords: object) -> Datum:
    """Returns a datum of words alone."""
    return Datum(words, **keywords)  # type: ignore[arg-type]
