"""Numbers with decimal commas, HTML tables, and summaries in nanoseconds, in tables that somebody published."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossover.audits import audit_table, read_table
from crossover.audits.notation import has_decimal_commas, with_points
from crossover.audits.printed import parse_number
from crossover.audits.table import Cell

# 255 gaps of 12.21 ms behind 45.3 ms are 3,158.9 ms, so one request at a time makes 256 / 3.159 = 81.0 tokens a second;
# 8 and 32 at once: 8 x 256 / 4.1774 = 490.3 and 32 x 256 / 7.3029 = 1,121.7 at the most.
COMMAS = """
| Concurrency | TTFT (ms) | TPOT (ms) | E2E (s) | Output tokens | Throughput (tok/s) |
|---|---|---|---|---|---|
| 1 | 45,3 | 12,21 | 3,159 | 256 | 81,0 |
| 8 | 112,7 | 15,94 | 4,177 | 256 | 489,9 |
| 32 | 410,2 | 27,03 | 7,303 | 256 | 1.121,7 |
"""
SPANS = """<p>Measured with 256 tokens.</p><style>td { width: 10 }</style>
<table><thead><tr><th rowspan="2">Concurrency</th><th colspan="2">TTFT (ms)</th><th colspan="2">TPOT (ms)</th></tr>
<tr><th>vLLM</th><th>SGLang</th><th>vLLM</th><th>SGLang</th></tr></thead>
<tbody><tr><td>1<td>52.1<td>48.0<td>9.8<td>9.1</tr>
<tr><td>16</td><td>152.1</td><td>1,148.0</td><td>19.8</td><td>19.1</td></tr></tbody></table>"""
LOADGEN = """
Completed tokens per second                 : 1454.33
Mean First Token latency (ns)                : 531231234
99.00 percentile first token latency (ns)   : 1610023123
99.90 percentile first token latency (ns)   : 1710023123
Mean Time per Output Token (ns)               : 54231234
50.00 percentile time to output token (ns)   : 53002312
"""


def _cells(tmp_path: Path, text: str, name: str = "table.md") -> list[Cell]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return list(read_table(path).cells)


def _base(cell: Cell, quantity: str, statistic: str = "mean") -> float:
    return cell.figures[quantity, statistic].interval.middle


def test_decimal_commas_are_read_as_such(tmp_path: Path) -> None:
    cells = _cells(tmp_path, COMMAS)
    assert [_base(cell, "latency") for cell in cells] == pytest.approx([3.159, 4.177, 7.303])
    assert [_base(cell, "output_rate") for cell in cells] == pytest.approx([81.0, 489.9, 1121.7])


def test_an_honest_table_with_decimal_commas_has_no_finding(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    path.write_text(COMMAS)
    verdict = audit_table(read_table(path))
    assert verdict.findings == ()
    assert verdict.passed


def test_a_broken_one_is_found(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    path.write_text(COMMAS.replace("12,21", "8,21"))
    (finding,) = audit_table(read_table(path)).findings
    # (3.159 - 0.0453) / 0.00821 = 379 gaps where 255 belong to 256 tokens.
    assert finding.verdict == "not closed"


def test_csv_with_semicolons(tmp_path: Path) -> None:
    text = "Name;TTFT (ms);TPOT (ms)\nA;1.045,3;12,21\nB;112,7;15,94\n"
    first, second = _cells(tmp_path, text, "table.csv")
    assert (_base(first, "ttft"), _base(second, "tpot")) == pytest.approx((1.0453, 0.01594))


@pytest.mark.parametrize(
    ("cells", "commas"),
    [
        (["3,159", "12,21"], True),  # two digits are no group of thousands
        (["3,159", "4,177"], False),  # nothing says that they are
        (["3,159", "12.21"], False),
        (["12,21", "12.21"], False),  # two notations in one table: neither is guessed
        (["1.121,7 ms"], True),
        (["1 121,7"], True),
        (["34,838.8"], False),
        (["0,1,2,3"], False),  # a list
        (["v0.9 vLLM", "12,21"], True),  # a version is no figure
    ],
)
def test_what_decides_the_notation(cells: list[str], commas: bool) -> None:
    assert has_decimal_commas(cells) is commas


@pytest.mark.parametrize(
    ("cell", "commas", "expected"),
    [
        ("1.121,7 ms", True, "1121.7 ms"),
        ("1.234", True, "1234"),
        ("**+3,5 %**", True, "**+3.5 %**"),
        ("1 234 567,25", True, "1234567.25"),
        ("1'234.5", False, "1234.5"),
        ("12\u202f345.5", False, "12345.5"),
        ("128 256", False, "128 256"),
        ("DeepSeek-V3, 4,5", True, "DeepSeek-V3, 4,5"),
    ],
)
def test_numbers_get_points(cell: str, commas: bool, expected: str) -> None:
    assert with_points(cell, commas) == expected


@pytest.mark.parametrize(("text", "value"), [("1,234,567.5", 1234567.5), ("12,34,567", 1234567), ("12,21", None)])
def test_commas_stand_before_groups(text: str, value: float | None) -> None:
    assert parse_number(text) == value


def test_html_cells_that_span(tmp_path: Path) -> None:
    cells = {cell.name: cell for cell in _cells(tmp_path, SPANS, "page.html")}
    assert set(cells) == {"vLLM 1", "vLLM 16", "SGLang 1", "SGLang 16"}
    assert _base(cells["SGLang 16"], "ttft") == pytest.approx(1.148)
    assert _base(cells["vLLM 1"], "tpot") == pytest.approx(0.0098)


def test_html_rows_share_a_cell_and_console_text_in_a_page(tmp_path: Path) -> None:
    shared = "<table><tr><th>Name<th>TTFT (ms)<th>TPOT (ms)<tr><td>A<td rowspan=2>50.5<td>9.5<tr><td>B<td>8.5</table>"
    first, second = _cells(tmp_path, shared)
    assert (_base(first, "ttft"), _base(second, "ttft")) == pytest.approx((0.0505, 0.0505))
    page = f"<pre>Mean TTFT (ms): 12.5\nMean TPOT (ms): 3.5</pre>{shared}"
    assert [_base(cell, "tpot") for cell in _cells(tmp_path, page)] == pytest.approx([0.0035, 0.0095, 0.0085])


def test_a_summary_in_nanoseconds(tmp_path: Path) -> None:
    (cell,) = _cells(tmp_path, LOADGEN, "summary.txt")
    assert _base(cell, "output_rate") == pytest.approx(1454.33)
    assert _base(cell, "ttft") == pytest.approx(0.531231234)
    assert _base(cell, "ttft", "p99") == pytest.approx(1.610023123)
    assert _base(cell, "ttft", "p999") == pytest.approx(1.710023123)
    assert _base(cell, "tpot", "p50") == pytest.approx(0.053002312)
