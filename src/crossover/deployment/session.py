"""One server brought up once: launched, ready, warmed up, and set down as a deployment entry when it has stopped."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossover.client import Endpoint, Load, Sampling, record
from crossover.deployment import logfile
from crossover.deployment.asked_and_got import changed_settings
from crossover.deployment.attempts import write_attempt
from crossover.deployment.clock import now
from crossover.deployment.hardware import ELSEWHERE
from crossover.deployment.launch_options import MOUNTING, launch_options
from crossover.deployment.progress import Reporter, duration
from crossover.deployment.sheet import DeploymentSheet
from crossover.deployment.weights import weights_folder
from crossover.engines import Engine, get_engine
from crossover.engines.information import server_info
from crossover.errors import CrossoverError, InputError
from crossover.launchers import LaunchError, RunningServer, ServerSpec, Waiting, get_launcher, wait_ready
from crossover.launchers.records import RECORD_NAME
from crossover.launchers.root_cause import log_tail
from crossover.recipes import Store
from crossover.telemetry import INTERVAL_S, MachineWatch, to_parquet
from crossover.workloads import read_prompts

STARTUP_TIMEOUT_S = 3600.0
STOP_GRACE_S = 60.0
STATE = "state.json"


@dataclass
class Session:
    """A server while it is up, with the record that is kept of it.

    Attributes:
        folder: the live folder: log, records, and the recordings under way.
        startup_end: bytes of the log when the first cell could begin.
        timeline: times of launch, readiness, warm-up, each cell, and stop (RFC 3339).
        watch: samples CPU, memory and GPUs meanwhile.
    """

    sheet: DeploymentSheet
    folder: Path
    engine: Engine
    server: RunningServer
    watch: MachineWatch
    startup_end: int = 0
    server_info: Mapping[str, Any] = field(default_factory=dict)
    timeline: dict[str, Any] = field(default_factory=lambda: {"cells": []})

    @property
    def simulated_engine(self) -> bool:
        """Whether the server says of itself that it is the simulated engine."""
        answers = (answer for answer in self.server_info.values() if isinstance(answer, Mapping))
        return any(answer.get("simulated") is True for answer in answers)

    @property
    def simulated(self) -> bool:
        """Whether figures are to be stamped: declared so, or the server says it where nobody declared it."""
        return self.sheet.simulated or self.simulated_engine

    @property
    def endpoint(self) -> Endpoint:
        """Where clients ask; final once the server is ready, since a cluster chooses its address late."""
        return _endpoint(self.sheet, self.server)

    def note(self, event: str) -> None:
        """Sets down the time of an event, at once on disk too."""
        self.timeline[event] = now()
        self.save()

    def save(self) -> None:
        write_state(self)


def write_state(session: Session) -> None:
    """Writes what a later run needs to set down this launch if we are killed."""
    sheet = session.sheet
    state = {
        "server_key": sheet.server_key,
        "server": sheet.server,
        "clock_scale": sheet.clock_scale,
        "simulated": session.simulated,
        "timeline": session.timeline,
        "observed": session.server.observed,
        "server_info": session.server_info,
    }
    part = session.folder / f".{STATE}"
    part.write_text(json.dumps(state, indent=1, sort_keys=True, default=str))
    part.replace(session.folder / STATE)


@contextlib.contextmanager
def running_server(sheet: DeploymentSheet, store: Store, reporter: Reporter) -> Iterator[Session]:
    """Yields a server that is ready and warm; stops it and sets down its deployment entry on leaving.

    Raises:
        LaunchError: it did not come up.
        InputError: a launcher option or an engine argument is wrong.
    """
    folder = store.root / "live" / sheet.server_key / uuid.uuid4().hex[:12]
    folder.mkdir(parents=True)
    engine = get_engine(str(sheet.server["engine"]))
    grace_s = float(sheet.launcher.get("stop_grace_s", STOP_GRACE_S))
    launched = now()
    try:
        server = get_launcher(str(sheet.launcher["kind"])).start(server_spec(sheet, store), folder)
    except BaseException as error:
        if not (folder / RECORD_NAME).exists():  # else something is left that the next run has to end
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, LaunchError) and error.kind == "image_missing":
            store.quarantine("image", str(sheet.server["image"]))  # so that the next run brings it again
        raise
    session = Session(sheet, folder, engine, server, _watch(sheet, server, folder))
    session.timeline["launched"] = launched
    try:
        session.save()
        _come_up(session, store, reporter)
        yield session
    finally:
        reporter.show("stopping the server")
        session.timeline["stopping"] = now()
        status = server.stop(grace_s)
        session.timeline["stopped"] = now()
        session.timeline["exit"] = status.reason or status.kind
        session.timeline["exit_kind"] = status.kind
        session.watch.close()
        session.save()
        set_down(folder, store)


def _watch(sheet: DeploymentSheet, server: RunningServer, folder: Path) -> MachineWatch:
    return MachineWatch(
        folder,
        server.observed.get("pid"),
        with_gpus=str(sheet.launcher["kind"]) not in ELSEWHERE and not sheet.simulated,
        interval_s=float(sheet.launcher.get("telemetry_interval_s", INTERVAL_S)),
    )


def server_spec(sheet: DeploymentSheet, store: Store) -> ServerSpec:
    """Returns the server that a sheet asks for, with the weights where this machine has them."""
    server = sheet.server
    model = str(server["served_model_name"])
    mounted = str(sheet.launcher["kind"]) in MOUNTING
    return ServerSpec(
        engine=str(server["engine"]),
        arguments=server["arguments"],
        model_path=weights_folder(store, server["model"], mounted) or model,
        label=sheet.key,
        environment=server["environment"],
        secrets=sheet.secrets,
        draft_path=weights_folder(store, server["draft"], mounted),
        served_model_name=model,
        cache_reset=sheet.isolation == "reset",
        options=launch_options(sheet, store),
    )


def _endpoint(sheet: DeploymentSheet, server: RunningServer) -> Endpoint:
    variable = sheet.launcher.get("api_key_env")
    if variable and variable not in os.environ:
        raise InputError(
            f"the environment variable {variable} is not set", place="launcher.api_key_env", remedy="export it"
        )
    key = os.environ[variable] if variable else None
    return Endpoint(server.base_url, str(sheet.server["served_model_name"]), sheet.cells[0].recipe["api"], api_key=key)


def _come_up(session: Session, store: Store, reporter: Reporter) -> None:
    sheet = session.sheet

    def waiting(state: Waiting) -> None:
        last = (state.last_line or "").split("Z ", 1)[-1][:100]
        reporter.show(f"starting for {duration(state.elapsed_s)}: {last}")

    timeout_s = float(sheet.launcher.get("startup_timeout_s", STARTUP_TIMEOUT_S))
    reporter.say(f"starting {sheet.server['engine']} through {sheet.launcher['kind']}")
    took_s = wait_ready(session.server, session.engine, lambda: session.endpoint, timeout_s, waiting)
    session.note("ready")
    reporter.say(f"ready after {duration(took_s)}")
    session.server_info = server_info(
        session.engine,
        session.endpoint.base_url,
        api_key=session.endpoint.api_key,
        hide=[os.environ.get(name, "") for name in sheet.secrets],
    )
    _check_declared(session)
    for line in changed_settings(session.engine.name, session.server.log_path, session.server_info, sheet.server):
        reporter.say(line)
    session.note("warmup_start")
    _warm_up(session, store)
    session.note("warmup_end")
    session.startup_end = logfile.size(session.server.log_path)


def _check_declared(session: Session) -> None:
    """Raises LaunchError where a real engine answers though the simulated one is declared: its times would be taken
    for so many times longer than they are."""
    if session.sheet.simulated and session.server_info and not session.simulated_engine:
        raise LaunchError(
            "not_simulated",
            f"the experiment declares the simulated engine (launcher.time_scale), and the server of "
            f"{session.sheet.label} does not say that it is one; take launcher.time_scale away, or give its image",
            log_tail(session.server.log_path),
        )


def _warm_up(session: Session, store: Store) -> None:
    """Sends the warm-up shapes, one after the other; recorded beside the log, counted nowhere.

    Raises:
        CrossoverError: the server did not survive it.
    """
    for number, key in enumerate(session.sheet.warmup):
        prompts = list(read_prompts(store.read("prompts", key).path))
        out = session.folder / "warmup" / str(number)
        out.mkdir(parents=True)
        record(session.endpoint, prompts, Load(concurrency=len(prompts)), Sampling(), out)
        ended = session.server.poll()
        if ended is not None:
            raise CrossoverError(f"the server ended during warm-up: {ended.reason or ended.kind}")


def set_down(folder: Path, store: Store) -> None:
    """Makes the deployment entry of a launch that has ended, whoever ended it, and clears its live folder.

    A recording that stands there still, of a cell that got no entry, becomes a failed attempt.
    """
    for recorded in sorted(folder.glob("cells/*/")):
        if any(recorded.iterdir()):
            reason = "the run ended before what this cell recorded was stored"
            write_attempt(store.root, recorded.name, reason, (), recorded, {})
    try:
        state = json.loads((folder / STATE).read_text())
    except (OSError, ValueError):
        shutil.rmtree(folder, ignore_errors=True)
        return
    timeline = state["timeline"]
    measured = sorted(cell["run"] for cell in timeline["cells"] if cell.get("status") == "ok")
    recipe = {
        "step": "deployment",
        "server": state["server_key"],
        "cells": measured,
        "launch": folder.name,
    }
    with store.create("deployment", recipe, {"ended": timeline.get("exit", "killed")}) as place:
        if (folder / "engine.log").exists():
            shutil.copyfile(folder / "engine.log", place / "engine.log")
        if (folder / "warmup").is_dir():
            shutil.copytree(folder / "warmup", place / "warmup")
        to_parquet(folder, place / "telemetry.parquet")
        _write(place / "timeline.json", timeline)
        server = {name: state[name] for name in ("server", "observed", "server_info", "clock_scale", "simulated")}
        _write(place / "server.json", server)
    shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1, sort_keys=True, default=str))
