"""Faults planted one at a time in the whole chain: each is found by the audit meant for it, and by no other.

The chain runs in this process (plan, prepare, deploy, parse, metrics), on simulated engines of both dialects. Faults of
the engine are its own (`crossover sim --fault`); faults of a client are planted in the table that it printed of the
sound cell, which `crossover.peers` reads.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from crossover.analysis import evaluate_runs, parse_runs
from crossover.audits import FAULTS
from crossover.audits.registry import AUDITS
from crossover.client import interpret
from crossover.deployment import deploy
from crossover.deployment.progress import PlainReporter
from crossover.deployment.sheet import read_sheet
from crossover.experiment import expand, load_experiment
from crossover.peers import read_output, reported
from crossover.planning import build_plan
from crossover.planning.jobs import Deployment
from crossover.planning.receipts import sheet_path, step_sheet_path, write_sheets
from crossover.preparation import prepare
from crossover.recipes import Store

# Thirty requests bound a P90 (29 are needed), and they run in one wave, so that there is a long stable phase.
REQUESTS = 30
ENGINES = {
    "vllm": {
        # A line of its log comes every 10 s: the stable phase must hold a few of them.
        "time_scale": 40,
        "output_tokens": 800,
        # Long prompts in one step, and six requests at once, compile kernels when they first come.
        "warmup": {"input_tokens": 8192, "output_tokens": 16, "concurrency": 8},
        "arguments": {
            "tensor-parallel-size": 8, "reasoning-parser": "kimi_k3", "attention-backend": "FLASHINFER_MLA",
        },
    },
    "sglang": {
        "time_scale": 20,
        "output_tokens": 400,
        # Its prefill steps are too short for the kernels that it compiles first, which would take 27 s.
        "warmup": {"input_tokens": 100, "output_tokens": 4},
        "arguments": {
            "tp-size": 8, "reasoning-parser": "kimi_k3", "attention-backend": "cutedsl_mla",
            "decode-log-interval": 10, "chunked-prefill-size": 8000,
        },
    },
}  # fmt: skip
# What is true of the sound engines: SGLang's log names a fast verify backend, and the dispatcher takes Triton's.
SOUND = {"vllm": set(), "sglang": {("configuration", "contradiction", "kernel")}}


@dataclass(frozen=True)
class Measured:
    """One deployment that has been through the chain."""

    store: Store
    deployment: Deployment

    def metrics(self, cell: int = 0) -> dict:
        key = self.deployment.cells[cell].metrics_key
        return json.loads((self.store.read("metrics", key).path / "metrics.json").read_text())


def measure(folder: Path, engine: str, *faults: str, requests: tuple[int, ...] = (REQUESTS,)) -> Measured:
    """Runs an experiment of one variant through the chain, up to three times where this machine is too busy for it."""
    for attempt in range(3):
        place = folder / str(attempt)
        place.mkdir()
        measured = run_chain(place, engine, faults, requests)
        if not disturbed(measured):
            break
    return measured


def disturbed(measured: Measured) -> bool:
    """Says whether two clocks differ because the simulated engine was late by its own account, 20 ms or more."""
    clocks = {("client_engine", "contradiction", "stable_decode_tok_s"), ("fitness", "contaminated", "recorder")}
    for number, cell in enumerate(measured.deployment.cells):
        log = (measured.store.path("run", cell.run_key) / "engine.log").read_text()
        late = any(float(ms) >= 20 for ms in re.findall(r"delivered late, at most ([\d.]+) ms of real time", log))
        if late and faults_in(measured.metrics(number)) & clocks:
            return True
    return False


def run_chain(folder: Path, engine: str, faults: Sequence[str], requests: Sequence[int]) -> Measured:
    """Runs an experiment of one variant from its YAML to metrics.json; one workload a number of requests."""
    options = ENGINES[engine]
    launcher = {"kind": "simulated", "time_scale": options["time_scale"], "faults": ["slow-start=0.02", *faults]}
    workload = {"dataset": "random", "input_tokens": 2000, "output_tokens": options["output_tokens"]}
    variant = {"engine": engine, "model": "m", "launcher": launcher, "arguments": options["arguments"]}
    data = {
        "title": "Planted faults",
        "hardware": {"gpu": "NVIDIA B300", "gpus": 8},
        "models": {"m": {"hub": "none", "repo": "owner/model"}},
        "variants": {engine: variant},
        "workloads": [{**workload, "concurrency": count, "requests": count} for count in requests],
        "warmup": {"shapes": [options["warmup"]]},
        "metrics": {"percentiles": [50, 90]},
    }
    file = folder / "planted.yaml"
    file.write_text(yaml.safe_dump(data))
    experiment = load_experiment(str(file))
    store = Store(folder / "results")
    plan = build_plan(experiment, expand(experiment), store)
    write_sheets(plan)
    for kind, key in sorted(plan.wanted_steps):
        prepare(step_sheet_path(plan, kind, key), store, lambda text: None)
    (deployment,) = plan.deployments
    sheet = read_sheet(sheet_path(store.root, "deployment", deployment.key))
    outcome = deploy(sheet, store, PlainReporter(io.StringIO(), engine))
    assert not outcome.failed
    return analyse(Measured(store, deployment))


def analyse(measured: Measured) -> Measured:
    """Parses the log of each run entry and evaluates it."""
    root, deployment = measured.store.root, measured.deployment
    for job, kind, key in (
        (parse_runs, "parse", deployment.parse_key),
        (evaluate_runs, "metrics", deployment.metrics_key),
    ):
        tally = job(sheet_path(root, kind, key), measured.store)
        assert not tally.failed
    return measured


def faults_in(metrics: dict) -> set[tuple[str, str, str]]:
    """Returns audit, verdict and subject of each fault; notes, passed and not applicable are none."""
    return {
        (found["audit"], found["verdict"], found["subject"])
        for found in metrics["audits"]
        if found["verdict"] in FAULTS
    }


def new_in(metrics: dict, engine: str) -> set[tuple[str, str]]:
    """Returns audit and verdict of each fault that the sound cell does not have."""
    found = faults_in(metrics)
    assert found >= SOUND[engine]
    return {(audit, verdict) for audit, verdict, _ in found - SOUND[engine]}


@pytest.fixture(scope="module", params=sorted(ENGINES))
def sound(request, tmp_path_factory) -> tuple[str, Measured]:
    """An engine without faults that has measured two cells: thirty requests, and three."""
    engine = request.param
    return engine, measure(tmp_path_factory.mktemp(engine), engine, requests=(REQUESTS, 3))


def test_a_sound_cell_passes_every_audit(sound) -> None:
    engine, measured = sound
    metrics = measured.metrics()
    assert faults_in(metrics) == SOUND[engine]
    passed = {found["audit"] for found in metrics["audits"] if found["verdict"] == "passed"}
    # At a high time scale reads hold several events, and the fitness audit notes that.
    assert passed | {"fitness"} == {audit.name for audit in AUDITS.values() if audit.check_cell}


def test_three_requests_only(sound) -> None:
    engine, measured = sound
    metrics = measured.metrics(1)
    assert new_in(metrics, engine) == {("sample_floor", "under-sampled")}
    assert metrics["metrics"]["ttft_s"]["p50"] is None


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize(
    ("fault", "audit", "verdict"),
    [
        ("drop-tokens=0.1", "counters", "not closed"),
        ("wrong-cache=0.5", "cache", "contaminated"),
        # A quarter of the output of the sglang cell, or an eighth of the vllm one, is there when it begins.
        ("jit-in-measurement=3000:4", "contamination", "contaminated"),
        ("changed-backend=TRITON_MLA", "configuration", "contradiction"),
    ],
)
def test_a_fault_of_the_engine(tmp_path, engine, fault, audit, verdict) -> None:
    metrics = measure(tmp_path, engine, fault).metrics()
    assert new_in(metrics, engine) == {(audit, verdict)}


@dataclass(frozen=True)
class Figures:
    """What a client that is right prints of a cell; an array has one value a request, times in seconds."""

    total_s: float
    prompt_tokens: int
    tokens: int
    ttft_s: np.ndarray
    ttfot_s: np.ndarray
    e2e_s: np.ndarray
    tpot_s: np.ndarray
    icl_s: np.ndarray
    throughput: float
    full_span_s: float


def figures_of(recording: Path, scale: float) -> Figures:
    """Works the figures out from the recorded events, without the definitions of `crossover.metrics`."""
    found = interpret(recording, clock_scale=scale)
    sent = found.requests.set_index("request")["sent_ns"]
    output = found.events[found.events["kind"].isin(["reasoning", "content"])]
    times = output.groupby("request")["t_kernel_ns"]
    first, last = times.min(), times.max()
    answer = output[output["kind"] == "content"].groupby("request")["t_kernel_ns"].min()
    counts = found.requests.set_index("request")["completion_tokens"]
    total_s, tokens = (last.max() - sent.min()) / 1e9, int(counts.sum())
    return Figures(
        total_s=total_s,
        prompt_tokens=int(found.requests["prompt_tokens"].sum()),
        tokens=tokens,
        ttft_s=((first - sent) / 1e9).to_numpy(),
        ttfot_s=((answer - sent) / 1e9).to_numpy(),
        e2e_s=((last - sent) / 1e9).to_numpy(),
        tpot_s=((last - first) / 1e9 / (counts - 1)).to_numpy(),
        icl_s=(times.diff().dropna() / 1e9).to_numpy(),
        throughput=tokens / total_s,
        full_span_s=(last.min() - first.max()) / 1e9,
    )


def table(figures: Figures, backend: str | None = None, **printed) -> str:
    """Prints the table that the serving benchmarks of vLLM and SGLang share (SGLang's begins with its backend).

    Args:
        printed: figures that the client prints otherwise than they are.
    """
    shown = {name: printed.get(name, getattr(figures, name)) for name in vars(figures)}
    requests = len(figures.ttft_s)
    lines = ["============ Serving Benchmark Result ============"]
    rows = {"Backend": backend} if backend else {}
    rows |= {
        "Successful requests": requests,
        "Max request concurrency": requests,
        "Benchmark duration (s)": f"{figures.total_s:.2f}",
        "Total input tokens": figures.prompt_tokens,
        "Total generated tokens": figures.tokens,
        "Request throughput (req/s)": f"{requests / figures.total_s:.2f}",
        "Output token throughput (tok/s)": f"{shown['throughput']:.2f}",
    }
    for name, key in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("ITL", "icl_s"), ("E2EL", "e2e_s")):
        milliseconds = 1e3 * shown[key]
        rows[f"Mean {name} (ms)"] = f"{milliseconds.mean():.2f}"
        rows[f"Median {name} (ms)"] = f"{np.median(milliseconds):.2f}"
        rows[f"P90 {name} (ms)"] = f"{np.percentile(milliseconds, 90):.2f}"
    return "\n".join([*lines, *(f"{label + ':':<41}{value}" for label, value in rows.items()), "=" * 50]) + "\n"


def beside(sound: tuple[str, Measured], folder: Path, printed: str) -> dict:
    """Returns the metrics of the sound cell as they are where another client has printed a table of it."""
    measured = sound[1]
    cell, store = measured.deployment.cells[0], Store(folder / "results")
    shutil.copytree(measured.store.root / "sheets", store.root / "sheets")
    with store.create("run", cell.recipe, {}) as place:
        for file in measured.store.read("run", cell.run_key).path.iterdir():
            shutil.copy(file, place / file.name)
        (place / "entry.json").unlink()
        facts = json.loads((place / "cell.json").read_text())
        facts["reported"] = reported(read_output(printed))
        (place / "cell.json").write_text(json.dumps(facts))
    root, deployment = store.root, measured.deployment
    parse_runs(sheet_path(root, "parse", deployment.parse_key), store)
    evaluate_runs(sheet_path(root, "metrics", deployment.metrics_key), store)
    return Measured(store, deployment).metrics()


def sound_figures(sound: tuple[str, Measured]) -> Figures:
    engine, measured = sound
    run = measured.store.read("run", measured.deployment.cells[0].run_key)
    return figures_of(run.path, ENGINES[engine]["time_scale"])


@pytest.mark.parametrize("backend", [None, "sglang-oai-chat"])
def test_a_client_that_is_right(sound, tmp_path, backend) -> None:
    metrics = beside(sound, tmp_path, table(sound_figures(sound), backend))
    assert new_in(metrics, sound[0]) == set()
    # It has been looked at: its throughput and its times are among what held.
    held = {found["subject"] for found in metrics["audits"] if found["verdict"] == "passed"}
    client = "sglang-bench" if backend else "vllm-bench"
    assert {f"client.{client}.output_tokens_per_s", f"client.{client}.tpot_mean_s"} <= held


def test_a_client_that_inflates_throughput(sound, tmp_path) -> None:
    """Tokens over the span in which all requests decode, as if that were the run."""
    figures = sound_figures(sound)
    printed = table(figures, throughput=figures.tokens / figures.full_span_s)
    assert new_in(beside(sound, tmp_path, printed), sound[0]) == {("bound", "impossible")}


def test_a_client_that_stops_the_ttft_clock_at_the_wrong_delta(sound, tmp_path) -> None:
    """Reasoning comes in a field that it does not know: TTFT waits for `content`, and TPOT begins there."""
    figures = sound_figures(sound)
    tpot = (figures.e2e_s - figures.ttfot_s) / (figures.tokens / REQUESTS - 1)
    printed = table(figures, "sglang-oai-chat", ttft_s=figures.ttfot_s, tpot_s=tpot)
    assert new_in(beside(sound, tmp_path, printed), sound[0]) == {("definitions", "mislabelled")}


def test_a_client_whose_tpot_has_ttft_in_it(sound, tmp_path) -> None:
    figures = sound_figures(sound)
    printed = table(figures, "sglang-oai-chat", tpot_s=figures.e2e_s / (figures.tokens / REQUESTS))
    assert new_in(beside(sound, tmp_path, printed), sound[0]) == {("definitions", "mislabelled")}
