"""Why a container did not come into being, from the words of Docker, Podman, their runtimes and NVIDIA's hooks.

The cause stands at the end of what they say, often on the second line, behind what each of them wrapped around it.
"""

from __future__ import annotations

from crossover.launchers.base import LaunchError
from crossover.launchers.failure_classes import class_of, failure_classes, in_one_line

_CLASSES = failure_classes(
    (
        (
            "no_gpus",
            r"could not select device driver|failed to discover GPU vendor|no known GPU vendor"
            r"|nvidia-container-(?:cli|runtime|toolkit)[^:]*: (?:executable file )?not found",
            "the daemon cannot hand out GPUs; install the NVIDIA Container Toolkit and restart the daemon",
        ),
        (
            "no_gpus",
            r"unsatisfied condition: ",
            "the image is for a newer NVIDIA driver than this machine's",
        ),
        (
            "no_gpus",
            r"device error|unknown device|unresolvable CDI devices|no such device.*nvidia|invalid (?:MIG|GPU) ",
            "there is no such GPU; `nvidia-smi -L` lists GPUs and MIG devices, and `nvidia-ctk cdi generate` writes "
            "them down for CDI anew",
        ),
        (
            "no_gpus",
            r"driver not loaded|libnvidia-ml\.so|nvml error|load library failed|nvidia-container-cli: initialization",
            "the NVIDIA driver of this machine does not answer; look at `nvidia-smi`",
        ),
        (
            "not_started",
            r"unknown or invalid runtime|unknown runtime",
            "the daemon does not know that runtime; `nvidia-ctk runtime configure` adds NVIDIA's",
        ),
        (
            "disk_full",
            r"no space left on device|disk quota exceeded",
            "the disk of the container runtime is full; free some of it, or move its storage",
        ),
        (
            "port_in_use",
            r"address already in use|port is already allocated",
            "its port was taken by another process meanwhile; run again",
        ),
        ("wrong_platform", r"exec format error", "the image is for another processor than this machine's"),
        (
            "not_started",
            r"executable file .*not found|exec: .*: (?:no such file|stat )",
            "the image has no such command; give the image of that engine",
        ),
        (
            "not_started",
            r"bind source path does not exist|error mounting|statfs .*: (?:no such file|permission denied)"
            r"|error while creating mount source path",
            "the daemon cannot reach a folder that is to be mounted; it may run on another machine or as another user",
        ),
        (
            "not_started",
            r"rlimit|ulimit",
            "this user or daemon may not raise that limit; lower it under `ulimits`, or leave it out",
        ),
        (
            "not_started",
            r"cgroup|memory limit",
            "the control groups of this machine do not let this user's containers have that limit; leave `memory_gib` "
            "out, or have the controllers delegated",
        ),
    )
)


def start_failure(doing: str, said: str) -> LaunchError:
    """Returns the error of a container that could not be created or started.

    Args:
        doing: what the runtime was asked for, such as `started`.
        said: what it said, of any length and number of lines.

    Returns:
        an error whose kind is no_gpus, disk_full, port_in_use, wrong_platform or not_started, in one line with the
        runtime's own words.
    """
    found = class_of(said, _CLASSES)
    kind, told = (found.kind, f"{found.told} ({in_one_line(said)})") if found else ("not_started", in_one_line(said))
    return LaunchError(kind, f"the container cannot be {doing}: {told}")
