"""Outputs of load clients as they were printed: exactly the findings that were worked out by hand (`audit.json`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crossover.audits import audit_table, make_table, read_table, with_workload

CASES = Path(__file__).parents[2] / "cases"
NAMES = sorted(path.parent.name for path in CASES.glob("*/audit.json"))


@pytest.mark.parametrize("name", NAMES)
def test_case(name, tmp_path):
    golden = json.loads((CASES / name / "audit.json").read_text())
    file = tmp_path / f"input{golden['suffix']}"
    file.write_text((CASES / name / "input.txt").read_text())
    table = read_table(file)
    if "workload" in golden:
        table = make_table({**table.data, "workload": golden["workload"]})
    found = sorted([finding.verdict, finding.subject] for finding in audit_table(table).findings)
    assert found == sorted(golden["findings"])


def test_two_clients_that_print_itl_by_other_definitions_are_kept_apart(tmp_path):
    # 8.72 ms a chunk and 3.20 ms a token of one server: two blocks, none of them a fault by itself.
    file = tmp_path / "two.txt"
    file.write_text(
        "Output token throughput (tok/s):         292.29\nMedian ITL (ms):   8.72\n"
        "Output token throughput (tok/s):         293.48\nMedian ITL (ms):   3.20\n"
    )
    table = read_table(file)
    assert [cell.get("itl", "p50").printed for cell in table.cells] == [8.72, 3.20]
    assert audit_table(table).findings == ()


def test_a_published_table_is_read_from_any_file_and_takes_what_it_lacks_from_outside(tmp_path):
    (case,) = CASES.glob("71-*")
    file = tmp_path / "input.txt"
    file.write_text((case / "input.txt").read_text())
    table = with_workload(read_table(file), {"requests": 10, "output_tokens": 3000, "concurrency": 10})
    found = sorted([finding.verdict, finding.subject] for finding in audit_table(table).findings)
    assert found == sorted(json.loads((case / "audit.json").read_text())["findings"])
