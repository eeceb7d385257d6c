"""Starts an engine in an Apptainer (or SingularityCE) container, on clusters without a container daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossover.engines import get_engine
from crossover.launchers.apptainer_command import CONFINED, find_program
from crossover.launchers.base import RunningServer, ServerSpec, check_options
from crossover.launchers.containers import Inside, bind_words, inside, require_sources
from crossover.launchers.inheritance import exceptions_of_proxies, inherited_environment
from crossover.launchers.local import choose_address, reap_local, secret_values, start_local
from crossover.launchers.records import LaunchRecord

_OPTIONS = frozenset({"image", "gpus", "mounts", "host", "port", "executable", "simulated"})
SCRATCH = "container"


class ApptainerLauncher:
    """Runs `apptainer exec`, in this machine's network. Options: `image` (a .sif file, or what else Apptainer takes),
    `gpus` (adds --nv; a list chooses them, otherwise CUDA_VISIBLE_DEVICES of the scheduler does), `mounts`, `host`,
    `port`, `executable`, `simulated`."""

    kind = "apptainer"

    def start(self, spec: ServerSpec, live_dir: Path) -> RunningServer:
        check_options(self.kind, spec.options, _OPTIONS, required=("image",))
        engine = get_engine(spec.engine)
        address = choose_address(spec, engine.address(spec.arguments))
        within = inside(spec, engine, address)
        require_sources(within.mounts)
        outside = inherited_environment()
        program = find_program(spec.options.get("executable"), outside.get("PATH"))
        # Its folders /tmp and home: caches of compilers grow past what a file system in memory holds.
        scratch = live_dir.absolute() / SCRATCH
        scratch.mkdir(parents=True, exist_ok=True)
        command = (program.path, *exec_arguments(spec, within, scratch), *within.command)
        variables = _devices(spec, outside) | dict(within.environment) | exceptions_of_proxies(within.environment)
        variables |= secret_values(spec)
        environment = outside | program.settings() | program.within(variables)
        folder, prefixes = live_dir.absolute(), (program.prefix,)
        server = start_local(self.kind, spec, command, environment, folder, address, prefixes)
        server.model_name = within.model_name
        server.observed = {**server.observed, "image": str(spec.options["image"])}
        return server

    def reap(self, record: LaunchRecord, live_dir: Path) -> bool:
        """Ends what is left of a launch of this kind; see `crossover.launchers.reap`."""
        return reap_local(record, live_dir)


def exec_arguments(spec: ServerSpec, within: Inside, scratch: Path) -> tuple[str, ...]:
    """Returns the words between `apptainer` and the engine's command."""
    words = ["exec", *CONFINED, "--workdir", str(scratch), "--writable-tmpfs"]
    if spec.options.get("gpus") is not None:
        words.append("--nv")
    for mount in within.mounts:
        words += ["--mount", bind_words(mount.source, mount.target, mount.read_only)]
    return (*words, str(spec.options["image"]))


def _devices(spec: ServerSpec, outside: dict[str, str]) -> dict[str, str]:
    chosen: Any = spec.options.get("gpus")
    if isinstance(chosen, list | tuple):
        return {"CUDA_VISIBLE_DEVICES": ",".join(str(one) for one in chosen)}
    return {name: outside[name] for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES") if name in outside}


LAUNCHER = ApptainerLauncher()
