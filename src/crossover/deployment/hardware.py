"""Compares the GPUs that are there with those that the experiment declares, before an engine starts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from crossover.errors import CrossoverError

# Launchers whose server does not run on this machine's GPUs.
ELSEWHERE = frozenset({"simulated", "external", "gpustack"})


def gpu_names() -> list[str] | None:
    """Returns the name of each GPU as the driver gives it, None where no driver answers."""
    if shutil.which("nvidia-smi") is None:
        return None
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else None


def check_hardware(hardware: Mapping[str, Any], launcher: str) -> list[str] | None:
    """Returns the GPUs that are there, None where they do not matter.

    Raises:
        CrossoverError: the machine is not the one that the experiment declares.
    """
    declared = hardware.get("gpu")
    if not declared or launcher in ELSEWHERE:
        return None
    names = gpu_names()
    if names is None:
        raise CrossoverError(
            f"hardware: {hardware['gpus']} x {declared} are declared, but no GPU driver answers on this machine"
        )
    matching = [name for name in names if declared.lower() in name.lower()]
    if len(matching) < int(hardware["gpus"]):
        raise CrossoverError(
            f"hardware: {hardware['gpus']} x {declared} are declared, but this machine has {', '.join(names) or 'none'}"
        )
    return names
