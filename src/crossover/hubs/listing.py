"""Whether the files that a hub lists can lie in one folder of this machine."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from crossover.hubs.base import HubError, Snapshot


def check_names(names: Sequence[str]) -> None:
    """Refuses a listing that no folder can hold.

    Raises:
        HubError: a file is listed twice, or is a folder of another one.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    folders = {str(folder) for name in names for folder in PurePosixPath(name).parents}
    for wrong in (*twice, *(name for name in names if name in folders)):
        raise HubError(
            "corrupt", f"the hub lists {wrong!r} twice, or as a file and a folder; check the hub or the proxy"
        )


def check_case(snapshot: Snapshot, folder: Path, names: Sequence[str]) -> None:
    """Refuses names that differ in upper and lower case alone where `folder` is on a disk that ignores it: one file
    would take the place of the other.

    Raises:
        HubError: with two such names.
    """
    first = dict[str, str]()
    for name in names:
        other = first.setdefault(name.casefold(), name)
        if other != name and _ignores_case(folder):
            raise HubError(
                "disk",
                f"{snapshot}: {other} and {name} would be one file on the disk of {folder}, which ignores case; "
                "set CROSSOVER_CACHE to another disk",
            )


def _ignores_case(folder: Path) -> bool:
    probe = folder / f".case-{uuid.uuid4().hex[:8]}"
    probe.touch()
    try:
        return probe.with_name(probe.name.upper()).exists()
    finally:
        probe.unlink()
