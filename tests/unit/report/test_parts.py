"""Small parts of the report, each against values worked out by hand."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from crossover.report import formatting
from crossover.report.figures.cold_start import phases
from crossover.report.figures.waterfall import ratio_ticks
from crossover.report.notes import Notes
from crossover.report.published import beside
from crossover.report.retest import changed_settings, decide, describe_change, effects, outcome
from crossover.report.sheet import Deployment, read_sheet
from crossover.report.timeline import cell_seconds, seconds, shares


@pytest.mark.parametrize(
    ("value", "text"),
    [(1111.61, "1,112"), (150.82, "150.8"), (12.28, "12.3"), (2.387, "2.39"), (0.93, "0.930"), (0, "0"), (None, "–"),
     (float("nan"), "–"), (-41.25, "-41.2")],
)  # fmt: skip
def test_number(value: float | None, text: str) -> None:
    assert formatting.number(value) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (64_000, "64K"),
        (200_000, "200K"),
        (1_000_000, "1M"),
        (65_536, "64Ki"),
        (1537, "1,537"),
        (8, "8"),
        (None, "own length"),
    ],
)
def test_tokens(count: int | None, text: str) -> None:
    assert formatting.tokens(count) == text


def test_words() -> None:
    assert formatting.join(["a", "b", "c"]) == "a, b and c"
    assert formatting.plural(1, "cell") == "1 cell"
    assert formatting.plural(1000, "cell") == "1,000 cells"
    assert formatting.slug("vLLM / <b>, 64K") == "vllm-b-64k"
    assert formatting.duration(410) == "6.8 min"
    assert formatting.cut("abcdef", 4) == "abc…"


def test_notes_share_a_number() -> None:
    notes = Notes()
    assert [notes.number(reason) for reason in ("too few", "impossible", "too few")] == [1, 2, 1]
    assert notes.reasons == ["Too few", "Impossible"]


def test_stamps_to_the_nanosecond() -> None:
    first, second = seconds("2026-11-29T20:53:26.123456789Z"), seconds("2026-11-29T20:53:27.5Z")
    assert first is not None
    assert second is not None
    assert second - first == pytest.approx(1.376544, abs=1e-5)
    assert seconds("yesterday") is None
    assert seconds(None) is None


def test_shares_of_a_deployment_in_declared_time() -> None:
    line = {
        "launched": "2026-11-29T00:00:00Z", "ready": "2026-11-29T00:00:10Z", "warmup_start": "2026-11-29T00:00:10Z",
        "warmup_end": "2026-11-29T00:00:11Z", "stopped": "2026-11-29T00:00:20Z",
        "cells": [{"id": "a", "start": "2026-11-29T00:00:11Z", "end": "2026-11-29T00:00:15Z"},
                  {"id": "b", "start": "2026-11-29T00:00:15.5Z", "end": "2026-11-29T00:00:19.5Z"}],
    }  # fmt: skip
    deployment = Deployment("vllm", "k", None, ["a", "b"], line, {}, clock_scale=40)
    split = shares(deployment)
    assert split is not None
    # 20 s of wall time at scale 40: 800 s, of which 400 start-up, 40 warm-up, 320 measurement, 40 other.
    assert (split.total_s, split.startup_s, split.warmup_s, split.measure_s, split.other_s) == pytest.approx(
        (800, 400, 40, 320, 40)
    )
    assert cell_seconds(deployment) == pytest.approx({"a": 160, "b": 160})
    assert shares(Deployment("vllm", "k", None, [], {}, {}, 1.0)) is None


def test_cold_start_phases_add_up() -> None:
    parts = phases({"weights_load_s": 160.0, "model_load_s": 200.0, "graph_capture_s": 86.0, "compile_s": None}, 600.0)
    assert parts["rest of model"] == 40.0
    assert parts["other until ready"] == pytest.approx(600 - 160 - 40 - 86)
    assert sum(parts.values()) == pytest.approx(600)
    # Without the whole, nothing is made up.
    assert phases({"weights_load_s": 160.0}, None)["other until ready"] == 0.0


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.8), (-1.7, 0.0), (-0.05, 0.04), (-5.0, 3.0)])
def test_ratio_ticks_hold_one_and_stay_apart(low: float, high: float) -> None:
    ticks = ratio_ticks(low, high)
    assert 1.0 in ticks
    assert len(ticks) <= 8
    assert ticks == sorted(set(ticks))


def test_retest_effect_and_rule(tmp_path: Path, sheets: ModuleType) -> None:
    sheet = read_sheet(sheets.full(tmp_path).write(), tmp_path)
    item, waiting = sheet.retest
    found = [one for one in effects(sheet, item) if one.quantity == "e2e_s"]
    # The item's cells are the base's times 0.93, at both contexts.
    assert [one.ratio.ratio for one in found] == pytest.approx([0.93, 0.93])
    assert decide({"metric": "e2e_s", "ratio_below": 1.0}, found) == "holds (one run each)"
    assert decide({"metric": "e2e_s", "ratio_below": 0.9}, found) == "does not hold (one run each)"
    assert decide({"metric": "e2e_s", "ratio_above": 1.02}, found) == "does not hold (one run each)"
    assert decide({"text": "judge"}, found) == "no rule over a figure: read the effect"
    assert outcome(sheet, item).gpu_hours == 2.6
    told = outcome(sheet, waiting)
    assert (told.decision, told.gpu_hours, told.predicted) == ("open", 3.1, True)


def test_items_without_cells_read_what_is_there(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path)
    report = {"diagnoses": [{"name": "kda_verify_fell_back", "conclusion": "limits forbid the fast path"}]}
    factory.sheet["cells"] = [factory.cell("sglang", 64_000, sheets.metrics("sglang", 64_000), engine_report=report)]
    changes = [{"metrics": {"wanted": ["ttft_s", "ttfot_s"]}}, {"diagnoses": ["kda-verify-fell-back", "all-reduce"]}]
    factory.sheet["retest"] = [
        {"id": number, "title": "x", "status": "measured", "cells": [], "change": change, "decision": {"text": "y"}}
        for number, change in enumerate(changes)
    ]
    sheet = read_sheet(factory.write(), tmp_path)
    first, second = (outcome(sheet, item) for item in sheet.retest)
    # TTFOT of the factory is 1.3 x TTFT: 41.7 and 54.2 s.
    assert first.effects == ["sglang, random, 64K, c10: TTFT 41.7 s, TTFOT 54.2 s"]
    assert second.effects == ["sglang: limits forbid the fast path", "all reduce: no log says so"]
    assert first.gpu_hours == 0.0


def test_change_in_words() -> None:
    change = {"variants": {"a": {"inherits": "vllm", "arguments": {"dcp-size": None, "max-len": 210}}}}
    assert describe_change(change) == "a: without dcp-size, max-len 210"
    assert changed_settings(change) == ["dcp-size", "max-len"]
    assert describe_change({"metrics": {"percentiles": [99]}}) == 'metrics: {"percentiles": [99]}'
    assert describe_change(None) == "–"


def test_published_contexts_meet_within_five_percent(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path)
    factory.variant("vllm")
    factory.sheet["cells"] = [factory.cell("vllm", 65_536, sheets.metrics("vllm", 65_536))]
    factory.sheet["published"] = factory.put(
        "p.yaml",
        "client:\n  near: {total_s: 100.5}\n  far: {total_s: 1.0}\n"
        "cells:\n  near: {engine: vllm, input_tokens: 64000}\n  far: {engine: vllm, input_tokens: 32000}\n",
    )
    found = beside(read_sheet(factory.write(), tmp_path))
    assert [(one.group, one.published) for one in found] == [("near", 100.5)]
