"""What the report concludes from cells: ratios, crossovers, attribution, confounds. Expected values by hand."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import pytest

from crossover.report.analysis import about, analyse
from crossover.report.confounding import ledger_of
from crossover.report.labels import workload_label
from crossover.report.sheet import Sheet, read_sheet


def sheet_of(root: Path, sheets: ModuleType, repeats: dict[str, dict[int, tuple[float, ...]]]) -> Sheet:
    """Returns a sheet of two variants whose repeats are the published cells times a factor each."""
    factory = sheets.SheetFactory(root)
    for engine, contexts in repeats.items():
        factory.variant(engine)
        for context, factors in contexts.items():
            for number, factor in enumerate(factors):
                document = sheets.metrics(engine, context, factor=factor)
                factory.sheet["cells"].append(factory.cell(engine, context, document, repeat=number))
    return read_sheet(factory.write(), root)


def test_one_run_each_decides_nothing(tmp_path: Path, sheets: ModuleType) -> None:
    once = {engine: {64_000: (1.0,), 200_000: (1.0,)} for engine in ("vllm", "sglang")}
    found = analyse(sheet_of(tmp_path, sheets, once))
    by = {(one.quantity, one.input_tokens): one for one in found.comparisons}
    first = by["e2e_s", 64_000]
    assert first.ratio.ratio == pytest.approx(84.4 / 141.5)
    assert (first.ahead, first.shown, first.verdict) == ("vllm", False, "vllm ahead in one run each")
    # For a rate the larger figure is ahead.
    assert by["stable_decode_tok_s", 200_000].ahead == "sglang"


def test_crossover_by_interpolation(tmp_path: Path, sheets: ModuleType) -> None:
    once = {engine: {64_000: (1.0,), 200_000: (1.0,)} for engine in ("vllm", "sglang")}
    crossing = next(one for one in analyse(sheet_of(tmp_path, sheets, once)).crossings if one.quantity == "e2e_s")
    # By hand: ln(84.4/141.5) = -0.51676, ln(284.6/217.8) = 0.26750; zero at 64K + 136K x 0.51676/0.78426.
    low, high = math.log(84.4 / 141.5), math.log(284.6 / 217.8)
    assert crossing.context == pytest.approx(64_000 + 136_000 * -low / (high - low))
    assert "vllm ahead below, sglang above a crossover at 154K" in crossing.sentence
    assert "without an interval" in crossing.sentence


def test_an_order_that_flips_twice_has_no_crossover(tmp_path: Path, sheets: ModuleType) -> None:
    # vllm leads at 64K as published; ten times slower it loses at 128K; ten times faster it leads at 200K.
    contexts = {"vllm": {64_000: (1.0,), 128_000: (10.0,), 200_000: (0.1,)}}
    contexts["sglang"] = dict.fromkeys(contexts["vllm"], (1.0,))
    found = analyse(sheet_of(tmp_path, sheets, contexts)).crossings
    time = next(one for one in found if one.quantity == "e2e_s")
    assert time.context is None
    assert (
        time.sentence == "End-to-end time: the order flips 2 times between 64K and 200K; there is no single crossover."
    )


@pytest.mark.parametrize(("context", "told"), [(162.4, "162"), (1_620, "1.62K"), (147_700, "148K")])
def test_an_estimated_context_reads_like_a_measured_one(context: float, told: str) -> None:
    assert about(context) == told


def test_prompts_of_their_own_lengths_are_said_to_have_them() -> None:
    assert workload_label(("jsonl", None, 2, None)) == "jsonl, c2"
    assert workload_label(("random", 3000, 10, None)) == "random, 3K out, c10"


def test_repeats_show_a_difference_or_say_that_they_do_not(tmp_path: Path, sheets: ModuleType) -> None:
    clear = {"vllm": {64_000: (1.0, 1.01, 0.99)}, "sglang": {64_000: (1.0, 1.01, 0.99)}}
    first = next(o for o in analyse(sheet_of(tmp_path / "a", sheets, clear)).comparisons if o.quantity == "e2e_s")
    assert first.shown
    assert first.verdict == "vllm ahead"
    # 84.4 x 1.68 = 141.8 against 141.5: the spread of 4 % hides it.
    same = {"vllm": {64_000: (1.68, 1.62, 1.74)}, "sglang": {64_000: (1.0, 1.04, 0.96)}}
    second = next(o for o in analyse(sheet_of(tmp_path / "b", sheets, same)).comparisons if o.quantity == "e2e_s")
    assert second.verdict == "no difference shown"


def test_attribution_of_the_published_order(tmp_path: Path, sheets: ModuleType) -> None:
    once = {engine: {64_000: (1.0,), 200_000: (1.0,)} for engine in ("vllm", "sglang")}
    factors = {one.label: one for one in analyse(sheet_of(tmp_path, sheets, once)).factors}
    one = factors["vllm / sglang, random, 64K"]
    # 501/335 = 1.4955 = (2.39/1.38) x step ratio, so the step speaks against vllm: 1.4955/1.7319 = 0.8635.
    assert one.decode is not None
    assert one.decode[0] == pytest.approx(501 / 335)
    assert one.factors["acceptance length"][0] == pytest.approx(2.39 / 1.38)
    assert one.factors["step time"][0] == pytest.approx(501 / 335 / (2.39 / 1.38))
    assert math.prod(part[0] for part in one.factors.values()) == pytest.approx(one.decode[0])
    assert "accepted length" in one.sentence
    assert "vllm, random, 64K / 200K" in factors
    # The waterfall of the latency ends at the second cell's mean.
    assert one.start_s is not None
    assert one.start_s + sum(seconds for _, seconds in one.steps) == pytest.approx(one.end_s)


def test_withheld_figures_explain_nothing(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path)
    for engine in ("vllm", "sglang"):
        document = sheets.metrics(engine, 64_000)
        document["audits"].append({"audit": "closure", "verdict": "not closed", "withholds": ["ttft_s", "e2e_s"]})
        factory.sheet["cells"].append(factory.cell(engine, 64_000, document))
    found = analyse(read_sheet(factory.write(), tmp_path))
    assert all(not one.steps for one in found.factors)
    assert all(one.quantity not in ("ttft_s", "e2e_s") for one in found.comparisons)


def test_confound_ledger(tmp_path: Path, sheets: ModuleType) -> None:
    sheet = read_sheet(sheets.full(tmp_path).write(), tmp_path)
    ledger = ledger_of(sheet, "vllm", "sglang")
    assert ledger.verdict == "confounded"
    assert {item["item"] for item in ledger.items} == {"decode_context_parallel", "attention_backend"}


def test_confound_ledger_without_configurations_is_undetermined(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path)
    for engine in ("vllm", "sglang"):
        document = sheets.metrics(engine, 64_000)
        document["engine"] = None
        factory.sheet["cells"].append(factory.cell(engine, 64_000, document))
    ledger = ledger_of(read_sheet(factory.write(), tmp_path), "vllm", "sglang")
    assert not ledger.controlled
    assert "not known" in ledger.label
