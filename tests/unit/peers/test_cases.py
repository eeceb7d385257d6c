"""Outputs found in the wild, read into our definitions; the golden values were worked out by hand (see their `how`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossover.audits import audit_table, make_table
from crossover.client import fields
from crossover.metrics.percentiles import percentile
from crossover.peers import Figure, comparable, read_output, why_not_comparable

CASES = Path(__file__).parents[2] / "cases" / "clients"
REPORTS = sorted(path.parent.name for path in CASES.glob("*/golden.json") if "report" in json.loads(path.read_text()))


def _golden(prefix: str) -> dict[str, Any]:
    (path,) = CASES.glob(f"{prefix}*/golden.json")
    return dict(json.loads(path.read_text("utf-8")))


def _input(prefix: str) -> Path:
    (path,) = CASES.glob(f"{prefix}*/input.txt")
    return path


def _assert_holds(wanted: Any, found: Any, place: str = "report") -> None:
    """Compares only what the golden file names; numbers to six digits."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            assert key in found, f"{place}.{key} is missing"
            _assert_holds(value, found[key], f"{place}.{key}")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=2e-6), place
    else:
        assert found == wanted, place


@pytest.mark.parametrize("name", REPORTS)
def test_an_output_gives_what_was_worked_out_by_hand(name: str) -> None:
    golden = _golden(name)
    (report,) = read_output(_input(name))
    found = report.to_dict()
    _assert_holds(golden["report"], found)
    assert not set(golden["absent_metrics"]) & set(found["metrics"])
    apart = {entry["column"]: [entry["value"], entry["meaning"]] for entry in found["not_ours"]}
    for column, wanted in golden["apart"].items():
        assert apart[column] == wanted


@pytest.mark.parametrize("name", REPORTS)
def test_the_audits_find_what_is_wrong_in_it_and_nothing_else(name: str) -> None:
    (report,) = read_output(_input(name))
    findings = audit_table(make_table(report.to_table())).findings
    found = [[finding.verdict, finding.subject] for finding in findings if finding.verdict != "under-sampled"]
    assert found == _golden(name)["audits"]


def test_two_versions_of_a_client_give_itls_that_must_not_be_compared() -> None:
    golden = _golden("53")
    older, newer = read_output(_input("53"))
    unknown = [report.figures[0] for report in (older, newer)]
    assert all(figure.meaning == "gap-of-unknown-kind" for figure in unknown)
    assert not comparable(*unknown)
    assert unknown[0].value / unknown[1].value == pytest.approx(golden["ratio"])
    assert 1000 / older.figure("output_tok_s", "value") == pytest.approx(golden["least_ms_a_token"])

    text = _input("53").read_text("utf-8")
    before = read_output(text, "sglang-bench", backend="sglang-oai", version="0.5.3")[0].figures[0]
    after = read_output(text, "sglang-bench", backend="sglang-oai", version="0.5.4.post1")[1].figures[0]
    native = read_output(text, "sglang-bench", backend="sglang", version="0.5.4")[1].figures[0]
    assert (before.meaning, after.meaning) == ("gap-per-chunk", "gap-per-retokenized-token")
    assert native.meaning == "gap-per-token"
    assert not comparable(before, after)
    assert not comparable(before, native)
    vllm = Figure("Median ITL (ms)", "gap-per-chunk", "p50", 0.009)
    assert comparable(before, vllm)
    assert "tokenized again" in str(why_not_comparable(before, after))


def test_zero_and_dashes_are_missing_where_no_clock_was_ever_started() -> None:
    for report, wanted in zip(read_output(_input("56")), _golden("56")["runs"], strict=True):
        found = report.to_dict()
        assert report.tool == "gpustack"
        assert found["metrics"]["ttft_s"]["mean"] is None
        assert found["metrics"]["tpot_s"]["mean"] is None
        assert found["metrics"]["e2e_s"]["mean"] == wanted["latency_s"]
        assert found["extra"]["text_counted"] is False
        for key in ("live_ttft_s", "tpot_from_live_ttft_s"):
            assert found["extra"][key] == (None if wanted[key] is None else pytest.approx(wanted[key], rel=1e-5))
        (entry,) = found["not_ours"]
        assert entry["meaning"] == "latency-per-token"
        # Printed to a tenth of a millisecond: 72.0 and 58.4 for 71.9 and 58.6 of a latency printed to 0.1 s.
        assert entry["value"] == pytest.approx(wanted["latency_per_token_s"], rel=0.05 / wanted["latency_s"])


def test_reasoning_under_any_name_and_white_space_are_output() -> None:
    golden = _golden("57")
    events = [json.loads(line.removeprefix("data: ")) for line in _input("57").read_text("utf-8").split("\n") if line]
    kinds = [fields.KINDS[fields.classify(event["choices"][0]["delta"])] for event in events]
    assert kinds == golden["kinds"]
    assert next(n for n, kind in enumerate(kinds) if kind in fields.KINDS[:3]) == golden["first_output"]
    assert kinds.index("content") == golden["first_content"]


def test_percentiles_are_linear() -> None:
    import numpy as np

    golden = _golden("85")
    samples = [(np.array([10.0, 20.0, 30.0]), 0.99), (np.arange(1.0, 11.0), 0.9), (np.arange(1.0, 101.0), 0.99)]
    assert [percentile(values, fraction) for values, fraction in samples] == pytest.approx(golden["linear"])
    lines = _input("85").read_text("utf-8").split("# p99")[1].splitlines()[1:4]
    ttft = [float(line.split(",")[0]) for line in lines]
    assert max(ttft) / min(ttft) - 1 == pytest.approx(golden["p99_ttft_spread"], rel=1e-4)


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("real-*")))
def test_a_real_output_of_a_run_whose_truth_is_known(name: str) -> None:
    golden = _golden(name)
    (report,) = read_output(_input(name))
    found = report.to_dict()
    assert found["tool"] == golden["tool"]
    _assert_holds({key: golden[key] for key in ("requests", "tokens")}, found)
    assert found["concurrency"]["asked"] == golden["concurrency"]
    # No client can see a token before it was sent; the machine was busy, so later is possible.
    assert found["metrics"]["ttft_s"]["mean"] > golden["least_ttft_s"]
    assert found["metrics"]["e2e_s"]["mean"] > golden["least_e2e_s"]
    assert found["metrics"]["tpot_s"]["mean"] == pytest.approx(golden["tpot_s"], rel=0.05)
    assert found["implied"]["mean_output_tokens"] == 20
