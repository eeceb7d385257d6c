"""Starts an engine that is installed on this machine, from a Python environment of ours or from the PATH."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from crossover.engines import get_engine
from crossover.errors import InputError
from crossover.launchers.base import RunningServer, ServerSpec, check_options
from crossover.launchers.inheritance import inherited_environment
from crossover.launchers.local import choose_address, reap_local, start_local
from crossover.launchers.records import LaunchRecord

_OPTIONS = frozenset({"python_environment", "host", "port"})


class ProcessLauncher:
    """Runs the engine's command as a process. Options: `python_environment` (folder of a virtual environment
    whose commands are used), `host` (127.0.0.1), `port` (a free one)."""

    kind = "process"

    def start(self, spec: ServerSpec, live_dir: Path) -> RunningServer:
        check_options(self.kind, spec.options, _OPTIONS)
        engine = get_engine(spec.engine)
        address = choose_address(spec, engine.address(spec.arguments))
        command = spec.command(engine, address)
        environment = inherited_environment() | spec.variables(engine)
        folder = spec.options.get("python_environment")
        if folder:
            bin_dir = Path(str(folder)).absolute() / "bin"
            environment["PATH"] = f"{bin_dir}:{environment.get('PATH', '')}"
            environment["VIRTUAL_ENV"] = str(bin_dir.parent)
        command = (_executable(command, environment.get("PATH")), *command[1:])
        return start_local(self.kind, spec, command, environment, live_dir.absolute(), address)

    def reap(self, record: LaunchRecord, live_dir: Path) -> bool:
        """Ends what is left of a launch of this kind; see `crossover.launchers.reap`."""
        return reap_local(record, live_dir)


def _executable(command: Sequence[str], path: str | None) -> str:
    found = shutil.which(command[0], path=path)
    if found is None:
        raise InputError(
            f"the command {command[0]!r} is not there",
            place="options.python_environment",
            remedy="install the engine, or name the Python environment that holds it",
        )
    return found


LAUNCHER = ProcessLauncher()
