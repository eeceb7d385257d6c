"""Images for Apptainer: files, brought to this machine before any GPU is held."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from crossover.errors import CrossoverError
from crossover.launchers.apptainer_command import CONFINED, Program, find_program
from crossover.launchers.base import LaunchError
from crossover.launchers.image_versions import QUESTION, version_facts
from crossover.launchers.pull_failures import pull_failure

Say = Callable[[str], None]

FOLDER = Path(".envs") / "images"
SCHEME = "docker://"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})$")
_QUESTION_S = 300


def fetch_file(reference: str, say: Say, folder: Path = FOLDER) -> Mapping[str, Any]:
    """Makes sure that an image is on this machine as a file.

    Args:
        reference: FILE.sif or FILE.sif@sha256:DIGEST of that file; or NAME@sha256:DIGEST of a registry, with or without
            docker://, which is made into a file.
        say: called with lines of progress.
        folder: where files that are made stay.

    Returns:
        what `crossover.launchers.images.fetch` does, and path (of the file) and file_sha256.

    Raises:
        CrossoverError: it cannot be had, or is not the one of that digest.
        InputError: neither Apptainer nor SingularityCE is there.
    """
    program = find_program()
    name = reference.partition("@")[0]
    path, digest = _given(reference) if name.endswith(".sif") else _made(program, reference, say, folder)
    return {
        "image": reference,
        "path": str(path),
        "file_sha256": sha256_of(path) if digest is None else digest,
        "digests": [f"sha256:{digest}" if digest else reference.removeprefix(SCHEME)],
        "size_bytes": path.stat().st_size,
        **version_facts(_labels(program, path), _ask(program, path, say)),
    }


def _given(reference: str) -> tuple[Path, str]:
    """Returns an image file and its SHA-256, compared with the one that the reference holds."""
    name, _, wanted = reference.partition("@")
    path = Path(name).absolute()
    if not path.is_file():
        raise CrossoverError(f"there is no image file {name}")
    digest = sha256_of(path)
    if wanted and wanted != f"sha256:{digest}":
        raise CrossoverError(
            f"the image file {name} is not the one that was locked: it has sha256:{digest}, not {wanted}; bring that "
            f"file, or run `crossover lock --update`"
        )
    return path, digest


def sha256_of(path: Path) -> str:
    """Returns the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _made(program: Program, reference: str, say: Say, folder: Path) -> tuple[Path, None]:
    """Returns the file of a registry's image, made unless it is there; its name holds the image's digest, and its own
    differs from machine to machine."""
    name = reference.removeprefix(SCHEME)
    digest = _DIGEST.search(name)
    if digest is None:
        raise CrossoverError(f"the image {name} has no digest; `crossover lock` finds it")
    path = folder.absolute() / f"{digest[1]}.sif"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if not path.is_file():
            part = path.with_suffix(".part.sif")
            say(f"pulling {name} into {path.name}")
            try:
                _pull(program, name, part, say)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
    return path, None


def _pull(program: Program, name: str, part: Path, say: Say) -> None:
    command = [program.path, "pull", "--force", str(part), f"{SCHEME}{name}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pull:
        assert pull.stdout is not None
        words = []
        for line in pull.stdout:
            words.append(_plain(line))
            say(words[-1])
    if pull.returncode != 0:
        raise pull_failure(name, _why(words))


def _plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line).strip()


def _why(words: Sequence[str]) -> str:
    said = [word for word in words if word.startswith(("FATAL", "ERROR"))] or [word for word in words if word]
    return re.sub(r"^(FATAL|ERROR)\s*:\s*", "", said[-1]) if said else "no output"


def _labels(program: Program, path: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError):
        done = subprocess.run(
            [program.path, "inspect", "--json", str(path)], capture_output=True, text=True, timeout=_QUESTION_S
        )
        return dict(json.loads(done.stdout)["data"]["attributes"]["labels"] or {})
    return {}


def _ask(program: Program, path: Path, say: Say) -> str | None:
    """Asks the Python within the image which engines are there; None where it has none that answers.

    Raises:
        LaunchError: the image is for another processor.
    """
    command = [program.path, "exec", *CONFINED, str(path), "python3", "-c", QUESTION]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_QUESTION_S, env=environment)
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode == 0:
        return done.stdout
    why = _why([_plain(line) for line in done.stderr.splitlines()])
    if "architecture" in why:
        raise LaunchError("wrong_platform", f"the image {path.name} is for another processor: {why}")
    say(f"{path.name}: its Python cannot be asked which engine it holds: {why}")
    return None
