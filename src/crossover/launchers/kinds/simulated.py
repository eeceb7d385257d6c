"""Starts the simulated engine in place of a real one, with the arguments of the real one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from crossover.engines import get_engine
from crossover.engines.base import Engine
from crossover.launchers.base import RunningServer, ServerSpec, check_options
from crossover.launchers.inheritance import inherited_environment
from crossover.launchers.local import choose_address, reap_local, start_local
from crossover.launchers.records import LaunchRecord
from crossover.launchers.simulation import simulation_words

_OPTIONS = frozenset({"time_scale", "gpus", "faults", "seed", "host", "port"})


class SimulatedLauncher:
    """Runs `crossover sim`. Options: `time_scale` (how much faster than real time, 1), `gpus`, `faults` (a
    list, as `crossover sim --fault` takes them), `host`, `port`."""

    kind = "simulated"

    def start(self, spec: ServerSpec, live_dir: Path) -> RunningServer:
        check_options(self.kind, spec.options, _OPTIONS)
        engine = get_engine(spec.engine)
        # The engine's own host and port mean the real machine; the simulation stays on loopback, on a free
        # port.
        address = choose_address(spec)
        command = (sys.executable, "-m", "crossover.cli", "sim", *simulation_arguments(spec, engine, address))
        environment = inherited_environment() | spec.variables(engine)
        environment["PYTHONUNBUFFERED"] = "1"
        return start_local(self.kind, spec, command, environment, live_dir.absolute(), address)

    def reap(self, record: LaunchRecord, live_dir: Path) -> bool:
        """Ends what is left of a launch of this kind; see `crossover.launchers.reap`."""
        return reap_local(record, live_dir)


def simulation_arguments(spec: ServerSpec, engine: Engine, address: tuple[str, int]) -> tuple[str, ...]:
    """Returns the words after `crossover sim`."""
    host, port = address
    own = ["--dialect", engine.name, "--model", spec.model_name(engine), "--host", host, "--port", str(port)]
    own += simulation_words(spec.options)
    arguments = {name: value for name, value in spec.arguments.items() if name not in ("host", "port")}
    real = engine.command(arguments, model_path=spec.model_path, host=host, port=port, draft_path=spec.draft_path)
    return (*own, "--", *_flags_only(real))


def _flags_only(command: Sequence[str]) -> Sequence[str]:
    first = next((index for index, word in enumerate(command) if word.startswith("--")), len(command))
    return command[first:]


LAUNCHER = SimulatedLauncher()
