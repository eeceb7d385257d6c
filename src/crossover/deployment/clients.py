"""Lets other load-test clients measure a cell too, after our own recorder has; none of them can fail the cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover.client import Sampling, complete_once
from crossover.deployment import logfile
from crossover.deployment.clock import now
from crossover.deployment.progress import Reporter, duration
from crossover.deployment.session import Session
from crossover.deployment.sheet import CellSheet
from crossover.deployment.weights import weights_folder
from crossover.engines.endpoints import reset_cache
from crossover.errors import CrossoverError
from crossover.peers import PeerReport, PeerRun, reported, run_peer
from crossover.peers.word_tokenizer import write_word_tokenizer
from crossover.recipes import Store
from crossover.workloads import read_prompts

FOLDER = "clients"
# A client gets the time to start, and several times as long as we took: then it hangs, and the GPUs wait for it.
STARTING_S = 300.0
TIMES_OURS = 4.0
ANSWER_S = 60.0


@dataclass(frozen=True)
class _Client:
    """One other client of a cell: its name, the keys that its recipe holds, and the folder for what it writes."""

    name: str
    keys: Mapping[str, str]
    folder: Path


def measure_with_others(
    session: Session, cell: CellSheet, store: Store, reporter: Reporter, recorded: Path, ours_s: float
) -> dict[str, Any]:
    """Runs the other clients of a cell one after the other; what they write goes to `clients/NAME` of the recording.

    Args:
        recorded: folder of our own recording.
        ours_s: how long we took, in seconds of the wall; a client may take several times as long.

    Returns:
        `{"clients": {NAME: {...}}, "reported": {NAME: {...}}}` for cell.json, empty where the cell has no other client.
        A client has `status` and `reason`, `version`, `prompts` (key), `reset_ok`, `window`, and its `figures` with the
        definition of each. `reported` holds what audits judge.
    """
    facts: dict[str, Any] = {}
    reports: list[PeerReport] = []
    for name, keys in cell.recipe.get("clients", {}).items():
        client = _Client(name, keys, recorded / FOLDER / name)
        reporter.say(f"{name} measures {cell.id}")
        fact, report = _measure(session, cell, store, client, ours_s)
        facts[name] = fact
        if report is None:
            reporter.say(f"{name} failed, the cell stands without it: {fact['reason']}")
        else:
            reports.append(report)
            reporter.say(f"{name} measured {cell.id} in {duration(report.duration_s or 0.0)}")
    return {"clients": facts, "reported": reported(reports)} if facts else {}


def answers(session: Session) -> bool:
    """Says whether the server still completes a request; one that is about to end does not, before it is seen to."""
    try:
        complete_once(session.endpoint, ANSWER_S)
    except CrossoverError:
        return False
    return True


def _measure(
    session: Session, cell: CellSheet, store: Store, client: _Client, ours_s: float
) -> tuple[dict[str, Any], PeerReport | None]:
    """Runs one client; returns what cell.json says of it, and its report in declared time unless it failed."""
    facts: dict[str, Any] = {
        "status": "ok",
        "reason": None,
        "version": None,
        "prompts": client.keys["prompts"],
        "reset_ok": None,
        "window": {"start": now(), "end": None},
        "figures": [],
    }
    report = None
    log_start = logfile.size(session.server.log_path)
    try:
        facts["reset_ok"] = _reset(session, cell)
        report = _run(session, cell, store, client, ours_s).in_declared_time(session.sheet.clock_scale)
        facts |= {"version": report.version, "figures": report.ours()}
        if report.requests.ok == 0:
            report, facts["status"], facts["reason"] = None, "failed", "none of its requests succeeded"
    except Exception as error:
        # What it wrote may be of a form that nobody foresaw, and our own measurement stands whatever a client does.
        known = isinstance(error, CrossoverError | OSError)
        facts |= {"status": "failed", "reason": str(error) if known else f"{type(error).__name__}: {error}"}
    facts["window"]["end"] = now()
    if client.folder.is_dir():
        parts = [(log_start, logfile.size(session.server.log_path))]
        logfile.copy_parts(session.server.log_path, parts, client.folder / "engine.log")
    return facts, report


def _reset(session: Session, cell: CellSheet) -> bool | None:
    """Empties the prefix cache where that is the experiment's policy; under the others prompts are new, or warm."""
    if cell.recipe["isolation"] != "reset":
        return None
    return reset_cache(session.engine, session.endpoint.base_url, api_key=session.endpoint.api_key)


def _run(session: Session, cell: CellSheet, store: Store, client: _Client, ours_s: float) -> PeerReport:
    environment = store.read("client", client.keys["client"])
    binaries = Path(environment.observed["path"]) / "bin"
    if not binaries.is_dir():
        raise CrossoverError(f"{binaries} is gone; run again, which installs it before a server starts")
    prompts = store.read("prompts", client.keys["prompts"])
    endpoint, sampling = session.endpoint, Sampling(**cell.recipe["sampling"])
    run = PeerRun(
        base_url=endpoint.base_url,
        model=endpoint.model,
        prompts=list(read_prompts(prompts.path)),
        tokenizer=_tokenizer(session, store, prompts.recipe["tokenizer"]),
        api=endpoint.api,
        concurrency=cell.workload["concurrency"],
        rate_per_s=cell.workload["rate_per_s"],
        temperature=sampling.temperature or 0.0,
        ignore_eos=sampling.ignore_eos,
        extra=sampling.extra,
        api_key=endpoint.api_key,
        time_limit_s=STARTING_S + TIMES_OURS * ours_s,
    )
    version = environment_version(environment.path)
    # What it reads is in the store already, as prompts and weights.
    return run_peer(client.name, run, client.folder, bin_dir=binaries, version=version, keep_inputs=False)


def environment_version(entry: Path) -> str | None:
    """Returns the version of the client that an entry's environment holds."""
    version = json.loads((entry / "client.json").read_text()).get("version")
    return None if version is None else str(version)


def _tokenizer(session: Session, store: Store, counted_by: Mapping[str, Any]) -> Path:
    """Returns the folder of the tokenizer that counted the prompts, for clients that count themselves or want one."""
    if counted_by["kind"] == "weights":
        return Path(str(weights_folder(store, counted_by["key"])))
    return write_word_tokenizer(session.folder.absolute() / "tokenizer")
