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
GIB = 2**30


def launch_options(sheet: DeploymentSheet, store: Store) -> dict[str, Any]:
    """Returns the options for the launcher of a sheet, in the words and units that this kind takes."""
    settings = {name: value for name, value in sheet.launcher.items() if name not in OWN}
    translate = _TRANSLATIONS.get(str(sheet.launcher["kind"]))
    return translate(sheet, store, settings) if translate else settings


def _simulated(sheet: DeploymentSheet, store: Store, settings: dict[str, Any]) -> dict[str, Any]:
    return {"gpus": sheet.server["hardware"].get("gpus"), **settings}


def _process(sheet: DeploymentSheet, store: Store, settings: dict[str, Any]) -> dict[str, Any]:
    if settings.pop("environment", None) is not None:
        path = Path(str(_image_entry(sheet, store)["observed"]["path"]))
        if not path.is_dir():
            store.quarantine("image", str(sheet.server["image"]))
            raise CrossoverError(f"{path}: the environment is gone; run again to install it")
        settings["python_environment"] = str(path)
    return settings


def _container(sheet: DeploymentSheet, store: Store, settings: dict[str, Any]) -> dict[str, Any]:
    locked = _image_entry(sheet, store)["recipe"].get("image")
    settings["image"] = locked if isinstance(locked, str) else str(sheet.image)
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


def _simulation(sheet: DeploymentSheet, settings: dict[str, Any]) -> dict[str, Any]:
    """Takes what the simulated engine in an image is to be told out of the settings."""
    simulated: dict[str, Any] = {"gpus": sheet.server["hardware"].get("gpus")}
    for name in ("time_scale", "seed", "faults"):
        if name in settings:
            simulated[name] = settings.pop(name)
    return simulated


def _gpustack(sheet: DeploymentSheet, store: Store, settings: dict[str, Any]) -> dict[str, Any]:
    locked = _image_entry(sheet, store)["recipe"].get("image") or sheet.image
    if locked:
        settings["image"] = str(locked)
    hardware = sheet.server["hardware"]
    if sheet.simulated:
        settings["simulated"] = _simulation(sheet, settings)
    elif hardware.get("gpu"):
        settings["gpus"] = int(hardware["gpus"])
    return settings


def _image_entry(sheet: DeploymentSheet, store: Store) -> Mapping[str, Any]:
    entry = store.read("image", str(sheet.server["image"]))
    return {"recipe": entry.recipe, "observed": entry.observed}


_TRANSLATIONS: dict[str, Callable[[DeploymentSheet, Store, dict[str, Any]], dict[str, Any]]] = {
    "simulated": _simulated,
    "process": _process,
    "docker": _container,
    "apptainer": _container,
    "gpustack": _gpustack,
}
