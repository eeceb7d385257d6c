"""The command of Apptainer, or of SingularityCE, which has the same command line and its own names of variables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crossover.errors import InputError

NAMES = ("apptainer", "singularity")
# No variable, home folder or device of this machine and no privilege within, as in a container of a daemon.
CONFINED = ("--cleanenv", "--contain", "--no-eval", "--no-privs")
# Its own settings, which say where and how it works and nothing of what runs.
_SETTINGS = ("CACHEDIR", "TMPDIR", "CONFIGDIR", "NOHTTPS", "DISABLE_CACHE")


@dataclass(frozen=True)
class Program:
    """A command that is there.

    Attributes:
        path: its executable.
        variables: beginning of the names of its own variables, APPTAINER or SINGULARITY.
    """

    path: str
    variables: str

    @property
    def prefix(self) -> str:
        """Beginning of the names of variables that it sets, without it, in the container."""
        return f"{self.variables}ENV_"

    def within(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Returns the variables that make it set `environment` in the container, so that no value stands on a command
        line."""
        return {f"{self.prefix}{name}": value for name, value in environment.items()}

    def settings(self, own: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Returns its settings in our environment."""
        names = (f"{self.variables}_{name}" for name in _SETTINGS)
        return {name: own[name] for name in names if name in own}


def find_program(executable: str | None = None, path: str | None = None) -> Program:
    """Returns the command to use.

    Args:
        executable: a name or a path; None for the first of `NAMES` that is there.
        path: folders to search, as in PATH; our own by default.

    Raises:
        InputError: it is not there.
    """
    for name in [executable] if executable else NAMES:
        found = shutil.which(name, path=path)
        if found is not None:
            return Program(found, "SINGULARITY" if Path(name).name.startswith("singularity") else "APPTAINER")
    missing = f"the command {executable!r} is not there" if executable else "neither apptainer nor singularity is there"
    raise InputError(missing, place="launcher.executable", remedy="install Apptainer, or add it to the PATH")
