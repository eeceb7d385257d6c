"""`crossover compare`: sources of every kind, matching, regression verdicts, trend. Expected values by hand."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crossover.cli import main
from crossover.errors import InputError
from crossover.report.build import assemble, document_of
from crossover.report.changes import changes, matched
from crossover.report.sheet import read_sheet
from crossover.report.sources import Measured, Source, read_source

PUBLISHED = Path(__file__).parents[3] / "config" / "published"


def report(root: Path, sheets: ModuleType, name: str, factor: float, repeats: int = 3) -> Path:
    """Writes the `report.json` of an experiment with both engines at 64K, its times scaled by `factor`."""
    factory = sheets.SheetFactory(root / name)
    for engine in ("vllm", "sglang"):
        factory.variant(engine)
        for repeat in range(repeats):
            document = sheets.metrics(engine, 64_000, factor=factor * (1 + 0.002 * repeat))
            factory.sheet["cells"].append(factory.cell(engine, 64_000, document, repeat=repeat))
    context = read_sheet(factory.write(), factory.root)
    # Without its drawings, which `compare` does not read and which take seconds.
    from crossover.report import build

    kept, build.FIGURES = build.FIGURES, {}
    try:
        text = json.dumps(document_of(assemble(context)))
    finally:
        build.FIGURES = kept
    path = root / "reports" / name / "report.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Runs `crossover compare --json` and returns its rows by cell and metric."""
    assert main(["compare", "--json", *arguments]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    return {(row["cell"], row["metric"]): row for row in rows}


def test_a_slower_version_has_regressed(tmp_path: Path, sheets: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path, sheets, "old", 1.0)
    report(tmp_path, sheets, "new", 1.1)
    rows = told(capsys, "old", "new", "--root", str(tmp_path))
    row = rows["vllm, random, 64K, c10", "End-to-end, s"]
    assert row["change"] == pytest.approx(0.1)
    assert row["verdict"] == "regressed"
    # The rates fall by the same factor: 1/1.1 - 1 = -9.1 %.
    assert rows["sglang, random, 64K, c10", "Stable decode, tok/s"]["change"] == pytest.approx(1 / 1.1 - 1)
    assert main(["compare", "old", "new", "--root", str(tmp_path), "--strict"]) == 1
    assert main(["compare", "new", "old", "--root", str(tmp_path), "--strict"]) == 0
    assert main(["compare", "old", "new", "--root", str(tmp_path), "--threshold", "20", "--strict"]) == 0
    assert "SIMULATED: old, new" in capsys.readouterr().out


def test_trend_over_three(tmp_path: Path, sheets: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    for name, factor in (("a", 1.0), ("b", 1.05), ("c", 0.8)):
        report(tmp_path, sheets, name, factor)
    rows = told(capsys, "a", "b", "c", "--metric", "e2e_s", "--root", str(tmp_path))
    row = rows["vllm, random, 64K, c10", "End-to-end, s"]
    # 84.4 s times the mean of the three repeats' factors, 1.002.
    assert [row["source_1"], row["source_2"], row["source_3"]] == pytest.approx(
        [84.4 * 1.002 * factor for factor in (1.0, 1.05, 0.8)]
    )
    assert row["verdict"] == "improved"


def test_variants_of_one_report_against_each_other(
    tmp_path: Path, sheets: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path, sheets, "one", 1.0, repeats=1)
    rows = told(capsys, "one:vllm", "one:sglang", "--root", str(tmp_path))
    row = rows["sglang / vllm, random, 64K, c10", "End-to-end, s"]
    assert row["change"] == pytest.approx(141.5 / 84.4 - 1)
    assert row["verdict"] == "not repeated"


def test_published_against_an_experiment(
    tmp_path: Path, sheets: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path, sheets, "one", 1.0, repeats=1)
    rows = told(capsys, str(PUBLISHED / "kimi-k3-b300.yaml"), "one", "--root", str(tmp_path))
    assert rows["vllm, random, 64K, c10", "Total time, s"]["baseline"] == 100.5
    # Published in milliseconds, compared in seconds.
    assert rows["sglang, random, 64K, c10", "TTFT, s"]["baseline"] == pytest.approx(41.6706)


def test_published_versions_reproduce_the_claimed_changes(capsys: pytest.CaptureFixture[str]) -> None:
    table = PUBLISHED / "vllm-kimi-k3-optimisation.yaml"
    rows = told(capsys, f"{table}:baseline", f"{table}:candidate")
    changed = {cell.rpartition(", ")[2]: {} for cell, _ in rows}
    for (cell, metric), row in rows.items():
        changed[cell.rpartition(", ")[2]][metric] = round(100 * row["change"], 1)
    # As published, but for 180.6, which is 180.7 from the printed figures.
    assert changed == {
        "c1": {"Output, tok/s": 120.0, "End-to-end, s": -57.2, "TTFT, s": -83.4},
        "c4": {"Output, tok/s": 150.0, "End-to-end, s": -55.6, "TTFT, s": -72.3},
        "c16": {"Output, tok/s": 180.7, "End-to-end, s": -60.3, "TTFT, s": -85.3},
    }


def test_store_key_of_a_metrics_entry_or_of_its_run(tmp_path: Path, sheets: ModuleType) -> None:
    folder = tmp_path / "results" / "metrics" / "abcdef0123456789"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(json.dumps(sheets.metrics("vllm", 64_000)))
    (folder / "entry.json").write_text(json.dumps({"recipe": {"run": "feedbeef00000000"}}))
    (tmp_path / "results" / "run" / "feedbeef00000000").mkdir(parents=True)
    for key in ("abcdef01", "feedbeef"):
        source = read_source(key, tmp_path)
        assert source.cells[0].values["e2e_s", "mean"] == 84.4
        assert source.simulated


def test_what_a_source_does_not_state_agrees_with_anything() -> None:
    values = {("e2e_s", "mean"): 2.0}
    stated = Measured("a", "vllm", "random", 64_000, 3000, 10, None, 0, values)
    open_one = Measured("a", "vllm", None, 65_536, None, 10, None, 0, values)
    other = Measured("a", "vllm", None, 200_000, None, 10, None, 0, values)
    first = Source("x", "report", False, [stated])
    assert len(matched(first, Source("y", "published", False, [open_one, other]))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one"], "one source is nothing to compare"),
        (["one", "none"], "nothing to compare is called 'none'"),
        (["one:other", "one"], "its variants are: vllm, sglang"),
        (["one", "one", "--metric", "speed"], "there is no metric 'speed'"),
        (["one", "one", "--threshold", "0"], "0 is no threshold"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    tmp_path: Path, sheets: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    report(tmp_path, sheets, "one", 1.0, repeats=1)
    assert main(["compare", *arguments, "--root", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_nothing_in_common_is_said(tmp_path: Path, sheets: ModuleType) -> None:
    report(tmp_path, sheets, "one", 1.0, repeats=1)
    first = read_source("one", tmp_path)
    second = read_source(str(PUBLISHED / "vllm-kimi-k3-optimisation.yaml"), tmp_path)
    with pytest.raises(InputError, match="share no figure"):
        changes(first, second, threshold=0.05)
