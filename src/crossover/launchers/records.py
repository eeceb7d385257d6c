"""The record of a launch: written beside the log before anything can be left behind, read by the reaper."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from crossover.launchers.supervisor import start_ticks

RECORD_NAME = "launch.json"


@dataclass(frozen=True)
class LaunchRecord:
    """What is needed to find a server again, and to be sure that it is the one.

    Attributes:
        kind: the launcher.
        label: the deployment's key.
        launch: an id of this launch alone, also in the environment of its processes.
        boot_id: the boot of the machine in which the process ids hold.
        starter_pid: the process that started the server; while it lives, the server is not an orphan.
        starter_ticks: its start time in clock ticks since boot.
        details: what the launcher's own reaper needs (supervisor pid and ticks, container name).
    """

    kind: str
    label: str
    launch: str
    boot_id: str
    starter_pid: int
    starter_ticks: int
    details: Mapping[str, Any] = field(default_factory=dict)

    def starter_lives(self) -> bool:
        """Returns whether the run that started the server is still there."""
        return self.boot_id == boot_id() and start_ticks(self.starter_pid) == self.starter_ticks


def new_record(kind: str, label: str, **details: Any) -> LaunchRecord:
    """Returns a record of a launch by this process."""
    pid = os.getpid()
    return LaunchRecord(kind, label, uuid.uuid4().hex, boot_id(), pid, start_ticks(pid) or 0, details)


def write_record(record: LaunchRecord, live_dir: Path) -> None:
    """Writes the record into the live folder, whole or not at all."""
    part = live_dir / f"{RECORD_NAME}.part"
    part.write_text(json.dumps(asdict(record), indent=1))
    part.replace(live_dir / RECORD_NAME)


def forget_record(live_dir: Path) -> None:
    """Removes the record once nothing of the server is left."""
    (live_dir / RECORD_NAME).unlink(missing_ok=True)


def read_records(live_root: Path) -> Iterator[tuple[Path, LaunchRecord]]:
    """Yields the live folders below `live_root` with their records; unreadable records are passed over."""
    for path in sorted(live_root.glob(f"**/{RECORD_NAME}")):
        try:
            yield path.parent, LaunchRecord(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue


def boot_id() -> str:
    """Returns the id of the machine's present boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
