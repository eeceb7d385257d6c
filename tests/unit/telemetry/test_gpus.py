"""GPU readings through a made-up NVML module."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from crossover.telemetry.gpus import Gpus, NoGpusError
from crossover.telemetry.sampler import open_gpus

GIB = 2**30


class NvmlError(Exception):
    pass


def fake_nvml(count=2, **replaced):
    """NVML as its Python bindings give it, in its own units: milliwatts, millijoules, bytes, percent."""

    def unsupported(handle):
        raise NvmlError("Not Supported")

    calls = {
        "NVMLError": NvmlError,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: count,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: b"NVIDIA B300",
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 1_100_000,
        "nvmlDeviceGetPowerUsage": lambda handle: 700_500,
        "nvmlDeviceGetTotalEnergyConsumption": unsupported,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=3 * GIB),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=85, memory=20),
        "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1830, 2: 2619}[kind],
        "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x4,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [SimpleNamespace(pid=100 + handle)],
    }
    return SimpleNamespace(**{**calls, **replaced})


def test_a_reading_has_our_units_and_none_where_a_gpu_cannot_tell():
    row = Gpus(fake_nvml()).read({101})
    assert row == {
        **{f"gpu{i}_power_w": 700.5 for i in (0, 1)},
        **{f"gpu{i}_energy_j": None for i in (0, 1)},
        **{f"gpu{i}_memory_gib": 3.0 for i in (0, 1)},
        **{f"gpu{i}_utilisation": 0.85 for i in (0, 1)},
        **{f"gpu{i}_sm_clock_mhz": 1830 for i in (0, 1)},
        **{f"gpu{i}_memory_clock_mhz": 2619 for i in (0, 1)},
        **{f"gpu{i}_temperature_c": 61 for i in (0, 1)},
        **{f"gpu{i}_throttle": 4 for i in (0, 1)},
        "gpu0_server": 0,
        "gpu1_server": 1,
        "gpu0_others": 1,
        "gpu1_others": 0,
    }


def test_the_newer_name_of_the_throttle_call_is_preferred():
    nvml = fake_nvml(1, nvmlDeviceGetCurrentClocksEventReasons=lambda handle: 0x40)
    assert Gpus(nvml).read(set())["gpu0_throttle"] == 0x40


def test_gpus_are_described():
    described = Gpus(fake_nvml(1)).describe()
    assert described == [{"index": 0, "name": "NVIDIA B300", "uuid": "GPU-0", "power_limit_w": 1100.0, "mig": None}]
    divided = Gpus(fake_nvml(1, nvmlDeviceGetMigMode=lambda handle: [1, 1])).describe()
    assert divided[0]["mig"] is True


def test_calls_that_the_driver_does_not_have_are_made_by_their_older_name():
    """The bindings are newer than the driver: they raise errors that are none of NVML's own."""

    class NVMLLibraryMismatchError(Exception):
        pass

    def unknown(handle):
        raise NVMLLibraryMismatchError("Unversioned function called")

    nvml = fake_nvml(
        1,
        nvmlDeviceGetCurrentClocksEventReasons=unknown,
        nvmlDeviceGetComputeRunningProcesses=unknown,
        nvmlDeviceGetComputeRunningProcesses_v2=lambda handle: [SimpleNamespace(pid=7), SimpleNamespace(pid=8)],
    )
    row = Gpus(nvml).read({7})
    assert (row["gpu0_throttle"], row["gpu0_server"], row["gpu0_others"]) == (4, 1, 1)
    nvml.nvmlDeviceGetComputeRunningProcesses_v2 = unknown
    row = Gpus(nvml).read({7})
    assert (row["gpu0_power_w"], row["gpu0_server"], row["gpu0_others"]) == (700.5, None, None)


def test_a_gpu_that_is_lost_does_not_hide_the_others():
    def handle(index):
        if index == 0:
            raise NvmlError("GPU is lost")
        return index

    gpus = Gpus(fake_nvml(2, nvmlDeviceGetHandleByIndex=handle))
    assert [gpu["index"] for gpu in gpus.describe()] == [1]
    assert gpus.read(set())["gpu1_power_w"] == 700.5
    with pytest.raises(NoGpusError, match="shows none of its GPUs"):
        Gpus(fake_nvml(1, nvmlDeviceGetHandleByIndex=handle))


def test_why_there_are_no_figures(monkeypatch):
    def refuse():
        raise NvmlError("NVML Shared Library Not Found")

    with pytest.raises(NoGpusError, match=r"no NVIDIA driver answers \(NVML Shared Library Not Found\)"):
        Gpus(fake_nvml(nvmlInit=refuse))
    with pytest.raises(NoGpusError, match="knows no GPU"):
        Gpus(fake_nvml(0))
    monkeypatch.setitem(sys.modules, "pynvml", None)  # as if it were not installed
    assert open_gpus(True) == (None, "the package nvidia-ml-py is not installed")
    assert open_gpus(False) == (None, "the server does not run on this machine's GPUs")
