"""Reading a sheet: bad input is one line, missing documents are failed cells, withheld figures stay withheld."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from crossover.errors import InputError
from crossover.report.sheet import Reading, read_sheet


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is no JSON"),
        ("[]", "is no report sheet"),
        ('{"cells": []}', "`experiment` is missing"),
        ('{"experiment": "x"}', "`cells` is missing"),
        ('{"experiment": "x", "cells": [{}]}', "cells[0]: a cell without an id"),
        ('{"experiment": "x", "cells": [], "published": "none.yaml"}', "cannot read the published figures"),
    ],
)
def test_bad_sheet_is_told_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    sheet = tmp_path / "sheet.json"
    sheet.write_text(text)
    with pytest.raises(InputError) as caught:
        read_sheet(sheet, tmp_path)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_sheet_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the report sheet"):
        read_sheet(tmp_path / "none.json", tmp_path)


def test_cell_without_its_metrics_is_shown_as_not_measured(tmp_path: Path) -> None:
    row = {"id": "a", "variant": "vllm", "metrics": "results/metrics/k/metrics.json"}
    path = tmp_path / "sheet.json"
    path.write_text(json.dumps({"experiment": "x", "cells": [row]}))
    cell = read_sheet(path, tmp_path).cells[0]
    assert not cell.ok
    assert "not measured" in str(cell.reason)


def test_readings(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path)
    document = sheets.metrics("vllm", 64_000)
    document["metrics"]["output_tok_s"]["withheld"] = "impossible"
    document["audits"].append({"audit": "closure", "verdict": "not closed", "why": "no", "withholds": ["itl_s"]})
    factory.sheet["cells"] = [factory.cell("vllm", 64_000, document)]
    cell = read_sheet(factory.write(), tmp_path).cells[0]

    # 84.4 s with the interval of the factory, 3 % either way.
    assert cell.reading("e2e_s") == Reading(84.4, pytest.approx(84.4 * 0.97), pytest.approx(84.4 * 1.03), 10)
    # TPOT is stored in seconds and shown in milliseconds: (84.4 - 34.8) / 2999 s = 16.54 ms.
    assert cell.reading("tpot_s").value == pytest.approx(16.5388, rel=1e-4)
    assert cell.reading("acceptance_length").value == 2.39
    assert cell.reading("duration_s").value == pytest.approx(84.4 * 1.05)
    # The metric's own reason, and an audit's.
    assert cell.reading("output_tok_s") == Reading(withheld="impossible")
    audited = cell.reading("itl_s")
    assert (audited.value, audited.withheld, audited.audited) == (None, "not closed: no", True)
    assert cell.reading("ttft_s", "p99").withheld == "99 % needs 299 requests, there are 10"
    assert cell.reading("prefix_hit_rate").value == 0.0


def test_withheld_for_one_statistic_leaves_the_others(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path)
    factory.sheet["cells"] = [factory.cell("vllm", 64_000, sheets.metrics("vllm", 64_000))]
    cell = read_sheet(factory.write(), tmp_path).cells[0]
    assert cell.reading("ttft_s", "p90").withheld
    assert cell.reading("ttft_s", "p50").value == 34.8
