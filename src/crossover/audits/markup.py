"""Tables of HTML pages, and of Markdown that holds HTML, with cells that span rows and columns."""

from __future__ import annotations

from html.parser import HTMLParser

from crossover.audits.layout import header_lines
from crossover.grids import Grid, make_grid

# Text of these is never shown.
_HIDDEN = frozenset({"script", "style", "template"})
_LINES = frozenset({"p", "div", "br", "li", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "tr", "summary", "details"})
# What a name that goes on from the line above leaves below it: not empty, so that no neighbour's name fills it.
_CONTINUED = " "
_LARGEST_SPAN = 1000


def split_markup(text: str) -> tuple[list[Grid], str]:
    """Separates the tables of an HTML text from the rest.

    Args:
        text: a page, or any text with `<table>` in it.

    Returns:
        The tables that have names and rows, and the text outside of them without its tags.
    """
    parser = _Parser()
    parser.feed(text)
    parser.close()
    return [grid for table in parser.tables if (grid := _grid(table)) is not None], "".join(parser.outside)


class _Cell:
    def __init__(self, tag: str, attributes: dict[str, str | None], in_head: bool) -> None:
        self.is_name = tag == "th" or in_head
        self.columns, self.rows = _span(attributes.get("colspan")), _span(attributes.get("rowspan"))
        self.parts: list[str] = []

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())


class _Parser(HTMLParser):
    """Collects rows of cells; a table inside a cell of another one is a table of its own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[_Cell]]] = []
        self.outside: list[str] = []
        self._open: list[list[list[_Cell]]] = []
        self._cells: list[_Cell | None] = []
        self._hidden = 0
        self._in_head = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        if tag == "table":
            self.tables.append([])
            self._open.append(self.tables[-1])
            self._cells.append(None)
        elif not self._open:
            self.outside.extend("\n" * (tag in _LINES))
        elif tag == "tr":
            self._open[-1].append([])
            self._cells[-1] = None
        elif tag in ("td", "th"):
            if not self._open[-1]:
                self._open[-1].append([])
            cell = _Cell(tag, dict(attrs), self._in_head)
            self._cells[-1] = cell
            self._open[-1][-1].append(cell)
        elif tag == "thead":
            self._in_head = True
        elif tag == "br" and self._cells[-1] is not None:
            self._cells[-1].parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(self._hidden - (tag in _HIDDEN), 0)
        if tag == "table" and self._open:
            self._open.pop()
            self._cells.pop()
        elif tag == "thead":
            self._in_head = False
        elif tag in ("td", "th") and self._cells:
            self._cells[-1] = None
        elif tag in _LINES and not self._open:
            self.outside.append("\n")

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if not self._open:
            self.outside.append(data)
        elif self._cells[-1] is not None:
            self._cells[-1].parts.append(data)


def _span(value: str | None) -> int:
    return min(max(int(value), 1), _LARGEST_SPAN) if value and value.strip().isdecimal() else 1


def _grid(table: list[list[_Cell]]) -> Grid | None:
    rows = [row for row in table if row]
    names = next((n for n, row in enumerate(rows) if not all(cell.is_name for cell in row)), len(rows))
    laid = _laid_out(rows, names)
    if len(rows) < 2 or names == len(rows):
        return None
    return make_grid(laid, names or header_lines(laid))


def _laid_out(rows: list[list[_Cell]], names: int) -> list[list[str]]:
    """Gives each cell its places; one that spans rows of figures stands in each of them."""
    placed: dict[tuple[int, int], str] = {}
    for down, row in enumerate(rows):
        across = 0
        for cell in row:
            while (down, across) in placed:
                across += 1
            for below in range(min(cell.rows, len(rows) - down)):
                text = _CONTINUED if below and down + below < names else cell.text
                for right in range(cell.columns):
                    placed[down + below, across + right] = text
            across += cell.columns
    width = 1 + max(across for _, across in placed) if placed else 0
    return [[placed.get((down, across), _CONTINUED) for across in range(width)] for down in range(len(rows))]
