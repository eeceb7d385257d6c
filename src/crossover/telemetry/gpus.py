"""What NVML tells of the GPUs, one column a field; a field that a GPU or its driver does not have is None."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

GIB = 2**30


def _newest(nvml: Any, gpu: Any, *names: str) -> Any:
    """Returns the answer to the first of several names of one call that bindings and driver both have: bindings know
    calls that an older driver does not, and say so in errors of several kinds."""
    for name in names[:-1]:
        with contextlib.suppress(Exception):
            return getattr(nvml, name)(gpu)
    return getattr(nvml, names[-1])(gpu)


def _throttle(nvml: Any, gpu: Any) -> int:
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    return int(_newest(nvml, gpu, *names))


def _pids(nvml: Any, gpu: Any) -> set[int]:
    names = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2")
    return {int(process.pid) for process in _newest(nvml, gpu, *names)}


FIELDS: Mapping[str, Callable[[Any, Any], float]] = {
    "power_w": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
    "energy_j": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1e3,
    "memory_gib": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used / GIB,
    "utilisation": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    "sm_clock_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM),
    "temperature_c": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    "throttle": _throttle,
}
"""Our names to the calls that read them: power, energy since the driver was loaded (millijoules there), used memory,
share of the time in which a kernel ran, clocks, temperature, and the bits of what holds the clocks down."""


class NoGpusError(Exception):
    """GPU figures cannot be had; the message says why."""


class Gpus:
    """The GPUs of this machine."""

    def __init__(self, nvml: Any | None = None) -> None:
        """Opens NVML.

        Args:
            nvml: the module, `pynvml` unless given.

        Raises:
            NoGpusError: the library is not installed, no driver answers, or there is no GPU.
        """
        if nvml is None:
            try:
                nvml = importlib.import_module("pynvml")
            except ImportError:
                raise NoGpusError("the package nvidia-ml-py is not installed") from None
        self._nvml = nvml
        try:
            nvml.nvmlInit()
            indexes = range(nvml.nvmlDeviceGetCount())
        except nvml.NVMLError as error:
            raise NoGpusError(f"no NVIDIA driver answers ({error})") from None
        # One that fell off its bus, or that this job may not use, does not hide the others.
        found = {index: self._ask(nvml.nvmlDeviceGetHandleByIndex, index) for index in indexes}
        self._handles = {index: handle for index, handle in found.items() if handle is not None}
        if not self._handles:
            raise NoGpusError("the NVIDIA driver shows none of its GPUs" if found else "the NVIDIA driver knows no GPU")

    def describe(self) -> list[dict[str, Any]]:
        """Returns index, name, uuid, power limit in watts, and whether it is divided (MIG), of each GPU."""
        return [
            {
                "index": index,
                "name": self._ask(self._name, handle),
                "uuid": self._ask(self._uuid, handle),
                "power_limit_w": self._ask(self._power_limit_w, handle),
                "mig": self._ask(self._mig, handle),
            }
            for index, handle in self._handles.items()
        ]

    def read(self, server_pids: Collection[int]) -> dict[str, float | int | None]:
        """Returns one reading: `gpuN_FIELD` for each field; `gpuN_server`, whether a process of the server
        holds memory on that GPU (as 1 or 0); and `gpuN_others`, how many other processes do."""
        row: dict[str, float | int | None] = {}
        for index, handle in self._handles.items():
            for name, read in FIELDS.items():
                row[f"gpu{index}_{name}"] = self._ask(read, self._nvml, handle)
            held = self._ask(_pids, self._nvml, handle)
            row[f"gpu{index}_server"] = None if held is None else int(not held.isdisjoint(server_pids))
            row[f"gpu{index}_others"] = None if held is None else len(held.difference(server_pids))
        return row

    def _name(self, handle: Any) -> str:
        return _text(self._nvml.nvmlDeviceGetName(handle))

    def _uuid(self, handle: Any) -> str:
        return _text(self._nvml.nvmlDeviceGetUUID(handle))

    def _power_limit_w(self, handle: Any) -> float:
        return float(self._nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3)

    def _mig(self, handle: Any) -> bool:
        return bool(self._nvml.nvmlDeviceGetMigMode(handle)[0])

    def _ask(self, question: Callable[..., Any], *about: Any) -> Any:
        try:
            return question(*about)
        except Exception:  # whatever bindings and driver disagree about costs this figure, and no other
            return None


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name  # bytes in older bindings
