"""Whether the user inside a container may read what is mounted for it, told before an engine fails on it: engines say
of a folder that they may not read that it is no model."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.launchers.containers import Mount

_ANY_FILE = frozenset({"DAC_OVERRIDE", "DAC_READ_SEARCH", "ALL"})
_ACCESS_LIST = "system.posix_acl_access"


def user_of(wanted: str) -> tuple[int, int | None] | None:
    """Returns the ids of a container's user and group, from `USER[:GROUP]` in numbers; group None where it is not told,
    None where a name tells nothing here."""
    user, _, group = wanted.partition(":")
    user = {"": "0", "root": "0"}.get(user, user)
    group = group or ("0" if user == "0" else "")
    if not user.isdecimal() or (group and not group.isdecimal()):
        return None
    return int(user), int(group) if group else None


def require_readable(mounts: Iterable[Mount], options: Mapping[str, Any], image_user: str) -> None:
    """Raises InputError for the first file or folder that the container's user may not read.

    Args:
        mounts: what the container sees of this machine.
        options: of the launcher: `user`, and `capabilities` that make this question idle.
        image_user: the user that the image names.
    """
    granted = {str(one).upper().removeprefix("CAP_") for one in options.get("capabilities") or ()}
    ids = user_of(str(options.get("user") or image_user or ""))
    if granted & _ANY_FILE or ids is None:
        return
    for mount in mounts:
        closed = first_unreadable(Path(mount.source), *ids)
        if closed is not None:
            raise InputError(
                f"the container's user (number {ids[0]}, without privileges) may not read it",
                file=closed,
                remedy=f"`chmod -R a+rX {mount.source}`, or give its owner as launcher.user (UID:GID), or "
                "launcher.capabilities: [DAC_READ_SEARCH]",
            )


def first_unreadable(path: Path, uid: int, gid: int | None) -> Path | None:
    """Returns what below a path, or the path itself, a user may not read; None where all can be read. Access control
    lists may say more than the mode: what has one is taken to be readable."""
    if not _may_read(path, uid, gid):
        return path
    for base, folders, names in os.walk(path):
        for name in sorted((*folders, *names)):
            if not _may_read(Path(base, name), uid, gid):
                return Path(base, name)
    return None


def _may_read(path: Path, uid: int, gid: int | None) -> bool:
    try:
        facts = path.stat()
        if _ACCESS_LIST in os.listxattr(path):
            return True
    except OSError:  # a link to nowhere, or what we may not look at ourselves: the engine's own words tell more
        return True
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(facts.st_mode) else 0)
    shift = 6 if facts.st_uid == uid else 3 if facts.st_gid == gid else 0
    return (facts.st_mode >> shift) & wanted == wanted
