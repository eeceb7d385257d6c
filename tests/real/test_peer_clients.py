"""aiperf, guidellm, SGLang's and vLLM's benchmarks side by side with our recorder, through the real workflow on the
simulated engine: what each sent, its figures, ours, and the audits.

Their environments are installed under `.envs` on first use, which takes some minutes.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossover.environments import ensure, find_definition
from crossover.peers import TOOLS

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
VERSIONS = {"aiperf": "0.13.0", "guidellm": "0.8.1", "sglang-bench": "0.5.23", "vllm-bench": "0.32.0"}
CLIENTS = sorted(VERSIONS)
REQUESTS, OUTPUT_TOKENS = 8, 100
# At this scale a millisecond of the client's own counts as ten.
EXPERIMENT = {
    "title": "Beside other clients",
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
        {
            "dataset": "random",
            "input_tokens": 2000,
            "output_tokens": OUTPUT_TOKENS,
            "concurrency": 4,
            "requests": REQUESTS,
        }
    ],
    "clients": CLIENTS,
}


@pytest.fixture(scope="module")
def workflow(tmp_path_factory) -> Path:
    """The folder of a workflow that has run: one cell, measured by the recorder and by each client."""
    folder = tmp_path_factory.mktemp("peers")
    definitions = [find_definition(str(TOOLS[client].environment), ROOT / "envs") for client in CLIENTS]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda definition: ensure(definition, ROOT / ".envs"), definitions))
    for name in ("envs", ".envs"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "peers.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    words = [
        sys.executable, "-m", "snakemake", "report", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1",
        "--workflow-profile", str(ROOT / "profiles" / "default"), "--configfile", str(folder / "peers.yaml"),
    ]  # fmt: skip
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def cell(workflow: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of the run entry, and its cell.json."""
    (entry,) = (path.parent for path in workflow.glob("results/run/*/entry.json"))
    return entry, json.loads((entry / "cell.json").read_text())


@pytest.mark.parametrize("client", CLIENTS)
def test_what_it_sent_and_wrote_is_kept(cell: tuple[Path, dict[str, Any]], client: str) -> None:
    entry, facts = cell
    told = facts["clients"][client]
    assert (told["status"], told["reason"], told["version"]) == ("ok", None, VERSIONS[client])
    reported = facts["reported"][client]
    assert reported["requests"] == REQUESTS
    assert reported["total_output_tokens"] == OUTPUT_TOKENS * REQUESTS
    # What the server logged meanwhile is the client's, not the cell's.
    assert (entry / "clients" / client / "engine.log").stat().st_size > 0


def test_what_guidellm_counted_itself_is_kept(cell: tuple[Path, dict[str, Any]]) -> None:
    entry, _ = cell
    report = json.loads((entry / "clients" / "guidellm" / "report.json").read_text())
    counted = report["benchmarks"][0]["metrics"]["request_totals"]
    assert (counted["successful"], counted["errored"]) == (REQUESTS, 0)


@pytest.mark.parametrize("client", CLIENTS)
def test_its_figures_stand_beside_ours(workflow: Path, client: str) -> None:
    with (workflow / "reports" / "peers" / "tables" / "clients.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["client"] == client]
    for row in rows:
        print(client, row["metric"], row["theirs"], row["ours"], row["ratio"], row["verdict"], row["definition"])
    ratios = {row["metric"]: float(row["ratio"]) for row in rows if row["ratio"]}
    # Another run of the same load; the client's own delay, ten times over, is in its latencies.
    assert ratios["tpot_s"] == pytest.approx(1, rel=0.15)
    assert ratios["e2e_s"] == pytest.approx(1, rel=0.25)
    assert ratios["output_tok_s"] == pytest.approx(1, rel=0.25)
    assert {row["verdict"] for row in rows} <= {"passed", "no finding", "under-sampled"}
