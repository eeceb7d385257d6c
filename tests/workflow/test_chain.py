"""The whole chain: run once, run nothing the second time, and remake exactly what is gone."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DERIVED = {"render_report", "plan_report", "report"}


def test_the_first_run_measures_every_cell_and_draws_the_report(finished) -> None:
    jobs = finished.jobs(finished.first_output)
    assert jobs["deployment_vllm"] == jobs["deployment_sglang"] == 1
    assert len(finished.store.keys("run")) == 4
    assert len(finished.store.keys("deployment")) == 2
    page = finished.page.read_text()
    assert "SIMULATED" in page
    assert finished.servers() == []
    statuses = [
        json.loads((finished.store.path("metrics", key) / "metrics.json").read_text())["status"]
        for key in finished.store.keys("metrics")
    ]
    assert statuses == ["ok"] * 4


def test_every_number_is_traced_to_tokens_that_the_engine_counted(finished) -> None:
    for key in finished.store.keys("metrics"):
        metrics = json.loads((finished.store.path("metrics", key) / "metrics.json").read_text())
        # 6 requests of 60 tokens each, as the experiment says.
        assert metrics["requests"] == {"ok": 6, "failed": 0, "incomplete": 0}
        assert metrics["tokens"]["completion"] == 360
        counters = [audit for audit in metrics["audits"] if audit["audit"] == "counters"]
        assert counters
        assert {audit["verdict"] for audit in counters} == {"passed"}


def test_the_second_run_does_nothing(finished) -> None:
    output = finished.run()
    assert "Nothing to be done" in output
    assert finished.jobs(output) == {}


def test_touched_files_rerun_nothing(finished) -> None:
    for path in [finished.file, *finished.store.root.rglob("*.json")]:
        path.touch()
    assert "Nothing to be done" in finished.run("-n")


def test_a_new_name_and_order_rerun_nothing(finished) -> None:
    before = finished.data
    variants = before["variants"]
    finished.data = {**before, "variants": {"s": variants["sglang"], "v": variants["vllm"]}, "title": "Other"}
    try:
        assert "Nothing to be done" in finished.run("-n")
    finally:
        finished.data = before


def test_another_cell_is_measured_alone(finished) -> None:
    before = finished.data
    workload = {**before["workloads"][0], "input_tokens": [2000, 8000, 4000]}
    finished.data = {**before, "workloads": [workload]}
    try:
        output = finished.run("-n")
    finally:
        finished.data = before
    assert "Deployment vllm: 1 of 3 cells missing." in output
    assert finished.jobs(output)["deployment_sglang"] == 1


def edited_source(tmp_path: Path, module: str) -> Path:
    """Returns a copy of the package in which one module has one more comment."""
    shutil.copytree(ROOT / "src", tmp_path / "src" / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "workflow", tmp_path / "src" / "workflow")
    file = tmp_path / "src" / "src" / "crossover" / module
    file.write_text(file.read_text() + "\n# edited\n")
    return tmp_path / "src" / "src"


def test_an_edited_metric_reruns_metrics_and_report_alone(finished, tmp_path) -> None:
    finished.python_path = edited_source(tmp_path, "metrics/percentiles.py")
    try:
        jobs = finished.jobs(finished.run("-n"))
    finally:
        finished.python_path = None
    assert set(jobs) == {"compute_metrics", *DERIVED}
    assert jobs["compute_metrics"] == 2


def test_an_edited_log_reader_reruns_parse_metrics_and_report(finished, tmp_path) -> None:
    finished.python_path = edited_source(tmp_path, "logs/reader.py")
    try:
        jobs = finished.jobs(finished.run("-n"))
    finally:
        finished.python_path = None
    assert set(jobs) == {"parse_logs", "compute_metrics", *DERIVED}


def test_the_page_is_always_that_of_the_plan_that_was_asked_for(finished) -> None:
    before = finished.data
    finished.data = {**before, "metrics": {"percentiles": [50]}}
    try:
        finished.run()
    finally:
        finished.data = before
    assert finished.jobs(finished.run("-n")).keys() == {"render_report", "report"}
    finished.run()
    key = json.loads((finished.page.parent / "report.json").read_text())["key"]
    assert list((finished.store.root / "receipts" / "report").iterdir()) == [
        finished.store.root / "receipts" / "report" / f"small-{key}.json"
    ]


def test_a_deleted_entry_is_made_again_although_its_receipt_is_there(finished) -> None:
    victim = finished.store.keys("run")[0]
    finished.store.remove("run", victim)
    output = finished.run()
    assert "1 of 2 cells missing" in output
    assert finished.store.has("run", victim)
    assert_derived_from(finished, victim)
    assert "Nothing to be done" in finished.run("-n")


def test_an_altered_entry_is_found_named_and_made_again(finished) -> None:
    victim = finished.store.keys("run")[1]
    file = finished.store.path("run", victim) / "reads.parquet"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    verify = subprocess.run(
        [sys.executable, "-m", "crossover.cli", "store", "--store", str(finished.store.root), "verify", "--keep"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert verify.returncode == 1
    assert f"{victim}: reads.parquet has other bytes than were written" in verify.stdout
    assert "1 of 2 cells missing" in finished.run()
    assert finished.store.faults("run", victim) == []
    assert_derived_from(finished, victim)


def assert_derived_from(flow, run: str) -> None:
    """What was worked out of a cell is of the measurement that stands there, though its key is that of the old one."""
    measured = hashlib.sha256((flow.store.path("run", run) / "entry.json").read_bytes()).hexdigest()
    for kind in ("engine_report", "metrics"):
        entries = [
            one for one in flow.store.entries(kind) if one.recipe["run"] == run and flow.store.has(kind, one.key)
        ]
        # Those that other tests made with an edited source are of the measurement before.
        assert [entry.sources for entry in entries] == [{f"run/{run}": measured}]


def test_a_logged_command_can_be_pasted_and_run(finished) -> None:
    done = [key for key in finished.store.keys("metrics") if finished.store.has("metrics", key)]
    sheets = (finished.store.root / "sheets" / "metrics").glob("*.json")
    sheet = next(file for file in sheets if all(c["key"] in done for c in json.loads(file.read_text())["cells"]))
    done = subprocess.run(
        [sys.executable, "-m", "crossover.cli", "metrics", str(sheet), "--store", str(finished.store.root)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "0 made, 2 reused, 0 failed\n")


def test_a_wrong_experiment_ends_the_workflow_with_its_one_line(workflow) -> None:
    workflow.data["workloads"][0]["output_tokens"] = -1
    output = workflow.run(status=2)
    line = "small.yaml: workloads.0.output_tokens: -1 is too small; it must be at least 1"
    assert output.strip().endswith(line)
    assert "Traceback" not in output
