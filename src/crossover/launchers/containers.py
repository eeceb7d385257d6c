"""What container launchers share: where weights appear inside, and the engine's command and variables
there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossover.engines.base import Engine
from crossover.errors import InputError
from crossover.launchers.base import ServerSpec
from crossover.launchers.simulation import simulation_variables

TARGET_FOLDER, DRAFT_FOLDER = "/models/target", "/models/draft"


@dataclass(frozen=True)
class Mount:
    """A folder of this machine inside the container."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Inside:
    """A server as it is within its container.

    Attributes:
        command: the whole command line, the image's own entry point left aside.
        environment: the engine's variables, without secrets.
        mounts: weights, read-only, and what the options add.
        model_name: the id that `/v1/models` will list.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    model_name: str


def is_folder(path: str) -> bool:
    """Says whether a folder lies there on this machine."""
    return Path(path).is_dir()


def inside(
    spec: ServerSpec, engine: Engine, address: tuple[str, int], is_here: Callable[[str], bool] = is_folder
) -> Inside:
    """Returns the server as it is within a container, where weights lie in fixed folders whatever their place
    here.

    Args:
        spec: the server wanted; its option `mounts` is a list of {source, target, read_only}, `simulated`
            what an image with the simulated engine is told.
        engine: its engine.
        address: host and port on which it listens inside.
        is_here: tells a folder of this machine, which is mounted, from a name that only hub or image knows.
    """
    model, model_mount = _place(spec.model_path, TARGET_FOLDER, is_here)
    draft, draft_mount = _place(spec.draft_path, DRAFT_FOLDER, is_here) if spec.draft_path else (None, ())
    there = replace(spec, model_path=model, draft_path=draft)
    environment = there.variables(engine) | simulation_variables(spec.options)
    mounts = (*model_mount, *draft_mount, *_more(spec.options.get("mounts")))
    return Inside(there.command(engine, address), environment, mounts, there.model_name(engine))


def bind_words(source: str, target: str, read_only: bool) -> str:
    """Returns a bind mount as the value of `--mount`, which Docker, Podman and Apptainer read alike: one line of
    comma-separated values, so that a path may have a colon, a comma or a quote."""
    fields = ["type=bind", f"source={source}", f"target={target}", *["readonly"] * read_only]
    return ",".join(_csv_field(field) for field in fields)


def _csv_field(text: str) -> str:
    if not any(sign in text for sign in ',"\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def require_sources(mounts: Iterable[Mount]) -> None:
    """Raises InputError for a folder that is not there: Podman makes an empty one in its place, without a word."""
    for mount in mounts:
        if not Path(mount.source).exists():
            raise InputError(
                "there is no such folder to mount", file=mount.source, remedy="look at launcher.mounts, and at the disk"
            )


def _place(path: str, folder: str, is_here: Callable[[str], bool]) -> tuple[str, tuple[Mount, ...]]:
    if not is_here(path):
        return path, ()
    return folder, (Mount(str(Path(path).resolve()), folder),)


def _more(mounts: Any) -> tuple[Mount, ...]:
    made = []
    for index, mount in enumerate(mounts or ()):
        try:
            made.append(Mount(**mount))
        except TypeError:
            raise InputError(
                "a mount needs source and target, and may have read_only", place=f"options.mounts[{index}]"
            ) from None
    return tuple(made)
