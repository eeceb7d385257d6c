"""Starts an engine in an Apptainer container, on clusters without a container daemon."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from crossover.engines import get_engine
from crossover.errors import InputError
from crossover.launchers.base import RunningServer, ServerSpec, check_options
from crossover.launchers.containers import Inside, inside
from crossover.launchers.inheritance import inherited_environment
from crossover.launchers.local import choose_address, reap_local, secret_values, start_local
from crossover.launchers.records import LaunchRecord

_OPTIONS = frozenset({"image", "gpus", "mounts", "host", "port", "executable", "simulated"})
_PREFIX = "APPTAINERENV_"


class ApptainerLauncher:
    """Runs `apptainer exec`, in this machine's network. Options: `image` (a .sif file, or
    docker://NAME@DIGEST), `gpus` (adds --nv; which ones is CUDA_VISIBLE_DEVICES of the scheduler), `mounts`,
    `host`, `port`, `executable`."""

    kind = "apptainer"

    def start(self, spec: ServerSpec, live_dir: Path) -> RunningServer:
        check_options(self.kind, spec.options, _OPTIONS, required=("image",))
        engine = get_engine(spec.engine)
        address = choose_address(spec, engine.address(spec.arguments))
        within = inside(spec, engine, address)
        outside = inherited_environment()
        command = (_executable(spec, outside), *exec_arguments(spec, within), *within.command)
        # Variables reach the container through prefixed ones, so that none stands on the command line.
        environment = outside | {_PREFIX + name: value for name, value in within.environment.items()}
        environment |= {_PREFIX + name: value for name, value in secret_values(spec).items()}
        for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
            if name in outside:
                environment.setdefault(_PREFIX + name, outside[name])
        server = start_local(self.kind, spec, command, environment, live_dir.absolute(), address)
        server.model_name = within.model_name
        server.observed = {**server.observed, "image": str(spec.options["image"])}
        return server

    def reap(self, record: LaunchRecord, live_dir: Path) -> bool:
        """Ends what is left of a launch of this kind; see `crossover.launchers.reap`."""
        return reap_local(record, live_dir)


def exec_arguments(spec: ServerSpec, within: Inside) -> tuple[str, ...]:
    """Returns the words between `apptainer` and the engine's command."""
    words = ["exec", "--cleanenv", "--no-home", "--no-eval", "--writable-tmpfs"]  # caches need a place
    if spec.options.get("gpus") is not None:
        words.append("--nv")
    for mount in within.mounts:
        words += ["--bind", f"{mount.source}:{mount.target}:{'ro' if mount.read_only else 'rw'}"]
    return (*words, str(spec.options["image"]))


def _executable(spec: ServerSpec, environment: Mapping[str, str]) -> str:
    name = str(spec.options.get("executable") or "apptainer")
    found = shutil.which(name, path=environment.get("PATH"))
    if found is None:
        raise InputError(f"the command {name!r} is not there", place="options.executable", remedy="install Apptainer")
    return found


LAUNCHER = ApptainerLauncher()
