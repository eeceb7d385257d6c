"""Turns the launcher settings of an experiment into the options of its launcher, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crossover.deployment.sheet import DeploymentSheet
from crossover.errors import CrossoverError
from crossover.recipes import Store

# Settings that concern the deployment and not the launcher.
OWN = frozenset({"kind", "startup_timeout_s", "stop_grace_s", "api_key_env", "telemetry_interval_s"})
# Kinds whose server sees the weights' folders alone, mounted into a container of this machine.
MOUNTING = frozenset({"docker", "apptainer"})
GIB = 2**30
# What a server is started from: the recipe of its image entry, and the environment or image file that was made of it.
Origin = tuple[Mapping[str, Any], Path | None]
_GONE = {"apptainer": "the image file is gone; run again to bring it"}


def launch_options(sheet: DeploymentSheet, store: Store) -> dict[str, Any]:
    """Returns the options for the launcher of a sheet, in the words and units that this kind takes.

    Raises:
        CrossoverError: the environment or the image file of the engine is gone.
    """
    entry = store.read("image", str(sheet.server["image"]))
    path = Path(str(entry.observed["path"])) if "path" in entry.observed else None
    if path is not None and not path.exists():
        store.quarantine("image", str(sheet.server["image"]))
        gone = _GONE.get(str(sheet.launcher["kind"]), "the environment is gone; run again to install it")
        raise CrossoverError(f"{path}: {gone}")
    return planned_options(sheet, (entry.recipe, path))


def planned_options(sheet: DeploymentSheet, origin: Origin) -> dict[str, Any]:
    """Returns the same before anything is there; an image that is not locked is named as it was declared."""
    settings = {name: value for name, value in sheet.launcher.items() if name not in OWN}
    translate = _TRANSLATIONS.get(str(sheet.launcher["kind"]))
    return translate(sheet, origin, settings) if translate else settings


def _simulated(sheet: DeploymentSheet, origin: Origin, settings: dict[str, Any]) -> dict[str, Any]:
    return {"gpus": sheet.server["hardware"].get("gpus"), **settings}


def _process(sheet: DeploymentSheet, origin: Origin, settings: dict[str, Any]) -> dict[str, Any]:
    if settings.pop("environment", None) is not None:
        settings["python_environment"] = str(origin[1])
    return settings


def _container(sheet: DeploymentSheet, origin: Origin, settings: dict[str, Any]) -> dict[str, Any]:
    settings["image"] = str(_image(sheet, origin))
    for setting, option in (("shm_size_gib", "shm_size"), ("memory_gib", "memory")):
        if setting in settings:
            settings[option] = int(float(settings.pop(setting)) * GIB)
    if "mounts" in settings:
        settings["mounts"] = [{"source": host, "target": inside} for host, inside in settings["mounts"].items()]
    if sheet.simulated:
        settings["simulated"] = _simulation(sheet, settings)
    elif sheet.server["hardware"].get("gpu"):
        settings.setdefault("gpus", "all")
    return settings


def _apptainer(sheet: DeploymentSheet, origin: Origin, settings: dict[str, Any]) -> dict[str, Any]:
    options = _container(sheet, origin, settings)
    return {**options, "image": str(origin[1] or f"docker://{options['image']}")}


def _simulation(sheet: DeploymentSheet, settings: dict[str, Any]) -> dict[str, Any]:
    """Takes what the simulated engine in an image is to be told out of the settings."""
    simulated: dict[str, Any] = {"gpus": sheet.server["hardware"].get("gpus")}
    for name in ("time_scale", "seed", "faults"):
        if name in settings:
            simulated[name] = settings.pop(name)
    return simulated


def _gpustack(sheet: DeploymentSheet, origin: Origin, settings: dict[str, Any]) -> dict[str, Any]:
    image = _image(sheet, origin)
    if image:
        settings["image"] = image
    hardware = sheet.server["hardware"]
    if sheet.simulated:
        settings["simulated"] = _simulation(sheet, settings)
    elif hardware.get("gpu"):
        settings["gpus"] = int(hardware["gpus"])
    return settings


def _image(sheet: DeploymentSheet, origin: Origin) -> str | None:
    locked = origin[0].get("image")
    return locked if isinstance(locked, str) else sheet.image


_TRANSLATIONS: dict[str, Callable[[DeploymentSheet, Origin, dict[str, Any]], dict[str, Any]]] = {
    "simulated": _simulated,
    "process": _process,
    "docker": _container,
    "apptainer": _apptainer,
    "gpustack": _gpustack,
}
