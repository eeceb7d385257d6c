"""The record of a launch: written beside the log before anything can be left behind, read by the reaper."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from crossover.launchers.supervisor import start_ticks

RECORD_NAME = "launch.json"
# A living run writes into its folder all the time: telemetry every second, the engine's log every few.
SILENT_S = 180.0


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
        pid_space: names the processes among which the ids hold: those of the machine, or of one container on it.
    """

    kind: str
    label: str
    launch: str
    boot_id: str
    starter_pid: int
    starter_ticks: int
    details: Mapping[str, Any] = field(default_factory=dict)
    pid_space: str = ""

    def starter_lives(self, live_dir: Path) -> bool:
        """Returns whether the run that started the server is still there.

        A run that cannot be seen from here, on another machine that shares the store or in another container, lives as
        long as it writes into its folder.
        """
        if self.boot_id == boot_id() and self.pid_space in ("", pid_space()):
            return start_ticks(self.starter_pid) == self.starter_ticks
        return _written_lately(live_dir)


def new_record(kind: str, label: str, **details: Any) -> LaunchRecord:
    """Returns a record of a launch by this process."""
    pid = os.getpid()
    ticks = start_ticks(pid) or 0
    return LaunchRecord(kind, label, uuid.uuid4().hex, boot_id(), pid, ticks, details, pid_space())


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


def pid_space() -> str:
    """Returns a name of the processes that this one can see."""
    return str(Path("/proc/self/ns/pid").readlink())


def _written_lately(live_dir: Path) -> bool:
    written = [path.stat().st_mtime for path in live_dir.iterdir() if path.is_file()]
    # By the clock of whoever keeps the files: that of another machine may differ from ours.
    with tempfile.NamedTemporaryFile(dir=live_dir, prefix=".now-") as probe:
        now_s = os.fstat(probe.fileno()).st_mtime
    return now_s - max(written, default=0.0) < SILENT_S
