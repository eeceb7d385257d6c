"""Other clients beside our recorder, through the whole chain on the simulated engine; the clients here are scripts."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from crossover.analysis import evaluate_runs, parse_runs
from crossover.deployment import Outcome, deploy
from crossover.deployment.progress import PlainReporter
from crossover.deployment.sheet import read_sheet
from crossover.experiment import expand, load_experiment
from crossover.planning import build_plan
from crossover.planning.jobs import Plan
from crossover.planning.receipts import sheet_path, step_sheet_path, write_sheets
from crossover.planning.report_sheet import report_sheet
from crossover.preparation import prepare
from crossover.recipes import Store
from crossover.report.context import Context
from crossover.report.sheet import read_sheet as read_report
from crossover.report.tables.clients import build

ROOT = Path(__file__).parents[2]
SCALE = 300
REQUESTS = 2

# Sends one request, as proof that the server is up, and prints a throughput that no wall time allows.
GOOD = """
import json, shutil, sys, urllib.request
url, model = (sys.argv[sys.argv.index(name) + 1] for name in ("--base-url", "--model"))
body = {"model": model, "messages": [{"role": "user", "content": "a b c"}], "max_tokens": 2}
request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                 {"Content-Type": "application/json"})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20).read()
json.dump({"endpoint_type": "openai-chat", "backend": "openai-chat", "output_throughput": 1e6, "duration": 0.5,
           "completed": 2, "failed": 0, "total_input_tokens": 400, "total_output_tokens": 40, "mean_ttft_ms": 10.0,
           "max_concurrency": 2}, open("result.json", "w"))
shutil.copy("prompts.jsonl", "seen.jsonl")
"""
BAD = 'print("no luck"); raise SystemExit(3)'
# All its requests fail, which is no fault in its own eyes; then it writes what no version of it has ever written.
LOST = """
import json
metrics = {"request_totals": {"successful": 0, "errored": 2, "incomplete": 0}}
json.dump({"benchmarks": [{"metrics": metrics, "duration": 1.0}]}, open("report.json", "w"))
"""
STRANGE = """
import json
json.dump({"benchmarks": [{"metrics": {}, "requests": {"successful": 7}}]}, open("report.json", "w"))
"""
# Ends the server that it is to measure.
DEADLY = """
import json, psutil, sys
backend = json.loads(sys.argv[sys.argv.index("--backend") + 1])
port = int(backend["target"].rsplit(":", 1)[1])
for found in psutil.net_connections("tcp"):
    if found.laddr.port == port and found.status == "LISTEN" and found.pid:
        psutil.Process(found.pid).kill()
raise SystemExit(4)
"""


def plan_of(folder: Path, monkeypatch, workloads: int = 1, **more) -> Plan:
    """Returns the plan of one simulated variant, with the clients' definitions of this checkout."""
    monkeypatch.chdir(ROOT)
    load = {"dataset": "random", "input_tokens": 200, "output_tokens": 20, "requests": REQUESTS}
    data = {
        "title": "Clients",
        "hardware": {"gpu": "NVIDIA B300", "gpus": 8},
        "models": {"m": {"hub": "none", "repo": "owner/model"}},
        "variants": {
            "vllm": {
                "engine": "vllm",
                "model": "m",
                "launcher": {"kind": "simulated", "time_scale": SCALE, "faults": ["slow-start=0.02"]},
                "arguments": {"tensor-parallel-size": 8},
            }
        },
        "workloads": [{**load, "concurrency": count + 1} for count in range(workloads)],
        **more,
    }
    file = folder / "clients.yaml"
    file.write_text(yaml.safe_dump(data))
    experiment = load_experiment(str(file))
    return build_plan(experiment, expand(experiment), Store(folder / "results"))


def run(plan: Plan, folder: Path, scripts: dict[str, str]) -> Outcome:
    """Prepares and deploys a plan; in the place of each client's environment stands a script under its command."""
    write_sheets(plan)
    for kind, key in sorted(plan.wanted_steps):
        recipe = plan.steps[kind, key].recipe
        if kind != "client":
            prepare(step_sheet_path(plan, kind, key), plan.store, lambda text: None)
            continue
        command = {"vllm-bench": "vllm"}.get(recipe["client"], recipe["client"])
        script = folder / "environments" / recipe["client"] / "bin" / command
        script.parent.mkdir(parents=True)
        script.write_text(f"#!{sys.executable}\n{scripts[recipe['client']]}")
        script.chmod(0o755)
        with plan.store.create("client", recipe, {"path": str(script.parents[1])}) as place:
            (place / "client.json").write_text(json.dumps({"version": "9.9"}))
    (deployment,) = plan.deployments
    sheet = read_sheet(sheet_path(plan.store.root, "deployment", deployment.key))
    return deploy(sheet, plan.store, PlainReporter(io.StringIO(), "clients"))


def prompts(path: Path, field: str) -> list[str]:
    return [json.loads(line)[field] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("policy", ["disjoint", "reset"])
def test_a_cell_measured_by_two_clients_of_which_one_fails(tmp_path, monkeypatch, policy) -> None:
    plan = plan_of(tmp_path, monkeypatch, clients=["guidellm", "vllm-bench"], isolation=policy)
    outcome = run(plan, tmp_path, {"guidellm": BAD, "vllm-bench": GOOD})
    (deployment,) = plan.deployments
    (cell,) = deployment.cells
    assert outcome.measured == [cell.cell.id]
    entry = plan.store.read("run", cell.run_key).path
    facts = json.loads((entry / "cell.json").read_text())
    assert (facts["status"], list(facts["clients"])) == ("ok", ["guidellm", "vllm-bench"])
    failed, good = facts["clients"].values()
    assert (failed["status"], failed["reason"]) == ("failed", "guidellm ended with status 3: no luck")
    assert (good["status"], good["version"]) == ("ok", "9.9")
    assert good["reset_ok"] is (True if policy == "reset" else None)
    # 10 ms on the wall are 3 s of the simulated engine; 1e6 tokens a second are 3,333.
    figures = {(one["metric"], one["statistic"]): one["value"] for one in good["figures"]}
    assert figures == {("ttft_s", "mean"): pytest.approx(3.0), ("output_tok_s", "value"): pytest.approx(1e6 / SCALE)}
    assert list(facts["reported"]) == ["vllm-bench"]

    ours = prompts(plan.store.path("prompts", cell.recipe["prompts"]) / "prompts.jsonl", "text")
    theirs = prompts(entry / "clients" / "vllm-bench" / "seen.jsonl", "prompt")
    assert [len(text.split()) for text in theirs] == [200] * REQUESTS
    assert (theirs == ours) is (policy == "reset")
    assert (entry / "clients" / "guidellm" / "console.txt").read_text() == "no luck\n"
    # What the clients read is an entry of its own already.
    assert not list(entry.glob("clients/*/prompts.jsonl"))

    for job, kind, key in (
        (parse_runs, "parse", deployment.parse_key),
        (evaluate_runs, "metrics", deployment.metrics_key),
    ):
        assert not job(sheet_path(plan.store.root, kind, key), plan.store).failed
    metrics = json.loads((plan.store.path("metrics", cell.metrics_key) / "metrics.json").read_text())
    # The request of the client is in no figure of ours, nor does its fault withhold one.
    assert metrics["requests"]["ok"] == REQUESTS
    assert metrics["metrics"]["output_tok_s"]["value"] is not None
    verdicts = {(found["verdict"], found["subject"]) for found in metrics["audits"]}
    assert ("impossible", "client.vllm-bench.output_tokens_per_s") in verdicts

    page = tmp_path / "sheet.json"
    page.write_text(json.dumps(report_sheet(plan)))
    rows = build(Context(read_report(page))).records()
    assert [(row["client"], row["metric"], row["verdict"]) for row in rows] == [
        ("guidellm", "–", "failed"),
        ("vllm-bench", "output_tok_s", "impossible"),
        ("vllm-bench", "ttft_s", "no finding"),
    ]
    assert rows[1]["ratio"] == pytest.approx(1e6 / SCALE / metrics["metrics"]["output_tok_s"]["value"])


def test_a_client_that_takes_the_server_down_costs_no_cell(tmp_path, monkeypatch) -> None:
    plan = plan_of(tmp_path, monkeypatch, workloads=2, clients=["guidellm"])
    outcome = run(plan, tmp_path, {"guidellm": DEADLY})
    assert not outcome.failed
    assert len(outcome.measured) == 2
    # A server for each cell, since the first took its server down.
    assert len(list(plan.store.entries("deployment"))) == 2


def told_of(folder: Path, monkeypatch) -> dict[str, str]:
    """Runs a cell with a client whose environment was prepared in `folder / "environment"`, as far as that is there.

    Returns the kinds of steps that the plan finds missing, and what cell.json says of the client.
    """
    plan = plan_of(folder, monkeypatch, clients=["vllm-bench"])
    (key,) = (key for kind, key in plan.wanted_steps if kind == "client")
    observed = {"path": str(folder / "environment")}
    with plan.store.create("client", plan.steps["client", key].recipe, observed) as place:
        (place / "client.json").write_text("{}")
    plan = plan_of(folder, monkeypatch, clients=["vllm-bench"])
    missing = {step.kind for step in plan.missing_steps}
    run(plan, folder, {"vllm-bench": GOOD})
    (cell,) = plan.deployments[0].cells
    facts = json.loads((plan.store.read("run", cell.run_key).path / "cell.json").read_text())
    return {"missing": " ".join(sorted(missing)), **facts["clients"]["vllm-bench"]}


def test_an_environment_that_was_deleted_is_installed_again(tmp_path, monkeypatch) -> None:
    told = told_of(tmp_path, monkeypatch)
    assert "client" in told["missing"]
    assert (told["status"], told["version"]) == ("ok", "9.9")


def test_an_environment_that_loses_its_commands_later_is_told_and_not_installed(tmp_path, monkeypatch) -> None:
    (tmp_path / "environment").mkdir()
    told = told_of(tmp_path, monkeypatch)
    assert "client" not in told["missing"]
    assert told["reason"].endswith("bin is gone; run again, which installs it before a server starts")


@pytest.mark.parametrize(
    ("script", "reason"),
    [(LOST, "none of its requests succeeded"), (STRANGE, "TypeError: 'int' object is not iterable")],
)
def test_a_client_that_measured_nothing_is_told(tmp_path, monkeypatch, script, reason) -> None:
    plan = plan_of(tmp_path, monkeypatch, clients=["guidellm"])
    outcome = run(plan, tmp_path, {"guidellm": script})
    (cell,) = plan.deployments[0].cells
    facts = json.loads((plan.store.read("run", cell.run_key).path / "cell.json").read_text())
    assert outcome.measured == [cell.cell.id]
    assert (facts["clients"]["guidellm"]["status"], facts["clients"]["guidellm"]["reason"]) == ("failed", reason)
    assert facts["reported"] == {}
