"""Installs environments: once for each state of their definition, safe against interruption and against a
second run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from crossover.environments import post_install
from crossover.environments.definition import EnvironmentDefinition
from crossover.errors import CrossoverError

MANIFEST_NAME = "crossover-environment.json"
DEFAULT_ROOT = Path(".envs")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class InstalledEnvironment:
    """An environment that is there.

    Attributes:
        path: its folder (a virtual environment).
        manifest: name, digest of the definition, package, version, python, and packages (as `pip freeze`
            tells them).
    """

    path: Path
    manifest: Mapping[str, Any]

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.path / "bin" / "python"


def environment_path(definition: EnvironmentDefinition, root: Path = DEFAULT_ROOT) -> Path:
    """Returns where an environment lies: its folder's name holds the digest, so another definition is another
    folder."""
    return root.absolute() / f"{definition.name}-{definition.digest[:12]}"


def installed(definition: EnvironmentDefinition, root: Path = DEFAULT_ROOT) -> InstalledEnvironment | None:
    """Returns the environment if it is wholly installed, else None."""
    path = environment_path(definition, root)
    try:
        manifest = json.loads((path / MANIFEST_NAME).read_text())
    except (OSError, ValueError):
        return None
    return InstalledEnvironment(path, manifest)


def ensure(
    definition: EnvironmentDefinition, root: Path = DEFAULT_ROOT, on_progress: Progress | None = None
) -> InstalledEnvironment:
    """Returns the environment, installed if it was not yet.

    Args:
        definition: what to install.
        root: folder of all environments.
        on_progress: called with each line that pip writes.

    Raises:
        CrossoverError: pip or a step after it failed; nothing usable is left.
    """
    path = environment_path(definition, root)
    with _locked(path):
        found = installed(definition, root)
        if found is not None:
            return found
        # Not built elsewhere and moved: a virtual environment holds its own path. The manifest, written last,
        # says that it is whole.
        shutil.rmtree(path, ignore_errors=True)
        _install(definition, path, on_progress or (lambda line: None))
    found = installed(definition, root)
    assert found is not None
    return found


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{path}.lock"):
        yield


def _install(definition: EnvironmentDefinition, path: Path, tell: Progress) -> None:
    tell(f"creating {path.name}")
    _run([sys.executable, "-m", "venv", str(path)], definition, tell)
    python = str(path / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    for step in definition.install:
        depth = [] if step.dependencies else ["--no-deps"]
        # Python compiles what is imported, the first time: of an engine's or a client's packages that is a small part.
        words = [*pip, "install", "--no-compile", *depth, "--requirement", str(step.requirements.absolute())]
        _run(words, definition, tell)
    if definition.remove:
        _run([*pip, "uninstall", "--yes", *definition.remove], definition, tell)
    site = Path(_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    post_install.apply(definition, site)
    if definition.check:
        _run([python, *definition.check], definition, tell)
    freeze = _output([*pip, "list", "--format", "freeze"]).split()
    manifest = {
        "name": definition.name,
        "digest": definition.digest,
        "package": definition.package,
        "version": post_install.version_of(definition.package, site),
        "python": _output([python, "-c", "import platform; print(platform.python_version())"]).strip(),
        "packages": sorted(freeze),
    }
    part = path / f"{MANIFEST_NAME}.part"
    part.write_text(json.dumps(manifest, indent=1))
    part.replace(path / MANIFEST_NAME)


def _run(command: list[str], definition: EnvironmentDefinition, tell: Progress) -> None:
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=_environ()
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            tell(lines[-1])
    finally:
        if process.wait(60) != 0 and sys.exc_info()[0] is None:
            raise CrossoverError(f"environment {definition.name}: {_why(lines)}")


def _why(lines: list[str]) -> str:
    errors = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["no output"]
    text = errors[0].removeprefix("ERROR: ")
    if "No matching distribution" in " ".join(errors) or "Could not find a version" in text:
        text += (
            " (if it is a CPU build of torch: give pip PyTorch's index of CPU wheels as an extra index, in its"
            " configuration or as PIP_EXTRA_INDEX_URL)"
        )
    return text


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, env=_environ()).stdout


def _environ() -> dict[str, str]:
    # The pipeline's own environment must not shine through into the other one.
    return {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
