"""The launchers: each brings a server up, watches it and takes it down; one module a kind under `kinds`.

May import `crossover.engines`, `crossover.client`, `crossover.logs`, `crossover.redaction` and `crossover.errors`.
Whatever a killed run leaves behind is found again by `reap`, and nothing else is ever touched.
"""

from crossover.launchers.base import ExitStatus, LaunchError, RunningServer, ServerSpec
from crossover.launchers.readiness import Waiting, wait_ready
from crossover.launchers.reaping import reap
from crossover.launchers.registry import get_launcher, launcher_kinds

__all__ = [
    "ExitStatus",
    "LaunchError",
    "RunningServer",
    "ServerSpec",
    "Waiting",
    "get_launcher",
    "launcher_kinds",
    "reap",
    "wait_ready",
]
