"""Two outputs side by side: what may be compared is, what may not says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crossover import cli
from crossover.peers import Figure, PeerReport, compare_reports, read_output

CASES = Path(__file__).parents[2] / "cases" / "clients"


def _run(tool: str, *figures: tuple[str, str, str, float]) -> PeerReport:
    return PeerReport(tool, "1", figures=tuple(Figure(*figure) for figure in figures))


def test_figures_that_go_by_one_name_are_set_side_by_side_whatever_they_are() -> None:
    a = _run(
        "vllm-bench",
        ("Mean ITL (ms)", "gap-per-chunk", "mean", 0.008),
        ("Mean E2EL (ms)", "e2e-last-output", "mean", 2.0),
        ("Peak output token throughput (tok/s)", "peak-chunks-per-second", "value", 9.0),
        ("Request throughput (req/s)", "requests-over-wall", "value", 2.0),
    )
    b = _run(
        "aiperf",
        ("inter_token_latency", "tpot-per-request-labelled-itl", "mean", 0.004),
        ("request_latency", "e2e-last-output", "mean", 3.0),
        ("output_token_throughput", "output-over-wall", "value", 50.0),
        ("request_throughput", "requests-over-wall", "value", 3.0),
    )
    rows = {row["figure"]: row for row in compare_reports(a, b)}
    assert set(rows) == {"itl", "latency", "request_rate"}
    assert rows["itl"]["ratio"] is None
    assert "under the name of an ITL" in rows["itl"]["why_not"]
    assert (rows["latency"]["ratio"], rows["request_rate"]["ratio"]) == (1.5, 1.5)


def test_two_versions_of_a_client_are_told_apart_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    (case,) = CASES.glob("53-*/input.txt")
    assert cli.main(["peers", "compare", str(case), "--json"]) == 0
    rows = {row["figure"]: row for row in json.loads(capsys.readouterr().out)["figures"]}
    assert rows["itl"]["why_not"] is not None
    # 293.48 / 292.29.
    assert rows["output_rate"]["ratio"] == pytest.approx(1.004071)
    assert cli.main(["peers", "compare", str(case)]) == 0
    assert "not compared" in capsys.readouterr().out


def test_files_take_backend_and_version_in_turn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (case,) = CASES.glob("53-*/input.txt")
    lines = case.read_text("utf-8").splitlines()
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("\n".join(lines[:2]))
    second.write_text("\n".join(lines[2:]))
    told = [
        "--backend",
        "sglang-oai",
        "--backend",
        "sglang-oai",
        "--client-version",
        "0.5.4",
        "--client-version",
        "0.5.3",
    ]
    assert cli.main(["peers", "compare", str(first), str(second), "--json", *told]) == 0
    rows = {row["figure"]: row for row in json.loads(capsys.readouterr().out)["figures"]}
    assert rows["itl"]["ratio"] == pytest.approx(3.20 / 8.72)


def test_one_run_alone_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    (case,) = CASES.glob("48-*/input.txt")
    assert cli.main(["peers", "compare", str(case)]) != 0
    assert "1 runs in the files, not two" in capsys.readouterr().err


def test_a_missing_figure_is_no_figure_to_compare() -> None:
    (run,) = read_output((next(CASES.glob("48-*/input.txt"))).read_text("utf-8"))
    other = PeerReport("vllm-bench", figures=(Figure("Mean TTFT (ms)", "ttft-first-event", "mean", None),))
    assert compare_reports(run, other) == []


def test_a_rate_that_was_rounded_for_print_is_taken_from_its_counts() -> None:
    (slow,) = read_output(next(CASES.glob("68-*/input.txt")))
    (fast,) = read_output(next(CASES.glob("48-*/input.txt")))
    row = next(row for row in compare_reports(slow, fast) if row["figure"] == "request_rate")
    # 500 / 10821.24 rather than the printed 0.05; 60 / 48.40.
    assert (row["a"], row["b"]) == pytest.approx((0.0462054, 1.2396694), rel=1e-6)
