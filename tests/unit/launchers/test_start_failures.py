"""Classes of containers that did not come into being, from the words that users of Docker and Podman report."""

from __future__ import annotations

import pytest

from crossover.launchers.start_failures import start_failure

RUNC = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: "
)
HOOK = (
    f"{RUNC}error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: "
)
CDI = "error modifying OCI spec: failed to inject CDI devices: "
NO_NVML = "libnvidia-ml.so.1: cannot open shared object file: no such file or directory"
UPDATE = "please update your driver to a newer version, or use an earlier cuda container: unknown"
NETWORK = "failed to set up container networking: driver failed programming external connectivity on endpoint c: "
LEGACY = f"{HOOK}Auto-detected mode as 'legacy'\nnvidia-container-cli: "


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', "no_gpus", "install the NVIDIA Container"),
        (f"{LEGACY}device error: 9: unknown device: unknown", "no_gpus", "there is no such GPU"),
        (f"{RUNC}{CDI}unresolvable CDI devices nvidia.com/gpu=9: unknown", "no_gpus", "there is no such GPU"),
        (f"{LEGACY}initialization error: load library failed: {NO_NVML}: unknown", "no_gpus", "does not answer"),
        (f"{LEGACY}initialization error: nvml error: driver not loaded: unknown", "no_gpus", "does not answer"),
        (f"{LEGACY}requirement error: unsatisfied condition: cuda>=13.0, {UPDATE}", "no_gpus", "newer NVIDIA driver"),
        ("unknown or invalid runtime name: nvidia", "not_started", "nvidia-ctk runtime configure"),
        (f"{NETWORK}Bind for 127.0.0.1:30000 failed: port is already allocated", "port_in_use", "by another process"),
        (f'{RUNC}exec: "vllm": executable file not found in $PATH: unknown', "not_started", "no such command"),
        (
            "crun: executable file `vllm` not found in $PATH: No such file or directory",
            "not_started",
            "no such command",
        ),
        (f"{RUNC}exec /usr/bin/python3: exec format error", "wrong_platform", "another processor"),
        ('invalid mount config for type "bind": bind source path does not exist: /w', "not_started", "to be mounted"),
        (f"{RUNC}error setting rlimit type 8: operation not permitted: unknown", "not_started", "ulimits"),
        ("mkdir /var/lib/docker/overlay2/1-init: no space left on device", "disk_full", "is full"),
        ("something new", "not_started", "something new"),
    ],
)
def test_the_class_of_a_failure_and_what_helps(said, kind, told):
    error = start_failure("started", said)
    assert error.kind == kind
    assert told in str(error)


def test_the_cause_on_the_last_line_is_told_however_much_stands_before_it():
    line = str(start_failure("started", f"{LEGACY}device error: 9: unknown device: unknown"))
    assert line.endswith("nvidia-container-cli: device error: 9: unknown device: unknown)")
    assert "\n" not in line
    assert len(line) < 560
