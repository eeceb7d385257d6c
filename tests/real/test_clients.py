"""guidellm beside our recorder, through the real workflow on the simulated engine: its figures, ours, and the audits.

Its environment is installed under `.envs` on first use, which takes minutes.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from crossover.environments import ensure, find_definition
from crossover.peers import TOOLS

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
CLIENT = "guidellm"
REQUESTS = 8
# 100 tokens a request; at this scale a millisecond of the client's own counts as ten.
EXPERIMENT = {
    "title": "Beside guidellm",
    "hardware": {"gpu": "NVIDIA B300", "gpus": 8},
    "models": {"m": {"hub": "none", "repo": "owner/model"}},
    "variants": {
        "vllm": {
            "engine": "vllm",
            "model": "m",
            "launcher": {"kind": "simulated", "time_scale": 10, "faults": ["slow-start=0.02"]},
            "arguments": {"tensor-parallel-size": 8, "reasoning-parser": "kimi_k3"},
        }
    },
    "workloads": [
        {"dataset": "random", "input_tokens": 2000, "output_tokens": 100, "concurrency": 4, "requests": REQUESTS}
    ],
    "clients": [CLIENT],
}


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """The folder of a workflow that has run: the cell measured by the recorder and by the client."""
    folder = tmp_path_factory.mktemp("clients")
    ensure(find_definition(str(TOOLS[CLIENT].environment), ROOT / "envs"), ROOT / ".envs", print)
    for name in ("envs", ".envs"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "clients.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    words = [
        sys.executable, "-m", "snakemake", "report", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1",
        "--workflow-profile", str(ROOT / "profiles" / "default"), "--configfile", str(folder / "clients.yaml"),
    ]  # fmt: skip
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_its_figures_stand_beside_ours(report: Path) -> None:
    with (report / "reports" / "clients" / "tables" / "clients.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        print(row["client"], row["metric"], row["theirs"], row["ours"], row["ratio"], row["verdict"], row["definition"])
    ratios = {row["metric"]: float(row["ratio"]) for row in rows if row["ratio"]}
    # Another run of the same load; the client's own delay, ten times over, is in its latencies.
    assert ratios["tpot_s"] == pytest.approx(1, rel=0.15)
    assert ratios["e2e_s"] == pytest.approx(1, rel=0.25)
    assert ratios["output_tok_s"] == pytest.approx(1, rel=0.25)
    assert {row["client"] for row in rows} == {CLIENT}
    assert {row["verdict"] for row in rows} <= {"passed", "no finding", "under-sampled"}


def test_what_it_sent_and_wrote_is_kept(report: Path) -> None:
    (entry,) = (path.parent for path in report.glob("results/run/*/entry.json"))
    facts = json.loads((entry / "cell.json").read_text())
    told = facts["clients"][CLIENT]
    assert (told["status"], told["reason"], told["version"]) == ("ok", None, "0.8.1")
    kept = entry / "clients" / CLIENT
    requests = json.loads((kept / "report.json").read_text())["benchmarks"][0]["metrics"]["request_totals"]
    assert (requests["successful"], requests["errored"]) == (REQUESTS, 0)
    assert facts["reported"][CLIENT]["requests"] == REQUESTS
    assert facts["reported"][CLIENT]["total_output_tokens"] == 100 * REQUESTS
    # What the server logged meanwhile is the client's, not the cell's.
    assert (kept / "engine.log").stat().st_size > 0
