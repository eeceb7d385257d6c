"""The errors that a user sees: one line each, with an exit status, never a traceback."""

from __future__ import annotations

import errno
import re
from pathlib import Path

# How libraries that are written in Rust tell an error of the system: in words only.
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class CrossoverError(Exception):
    """A run failed for a reason that can be told in one line; the command ends with status 1."""

    exit_status = 1


class InputError(CrossoverError):
    """Something the user gave is wrong; the command ends with status 2.

    Args:
        problem: what is wrong, without a full stop.
        file: the file it stands in, if any.
        place: the path inside that file, such as `variants.vllm.arguments`, or a line number.
        remedy: what would be right, without a full stop.
    """

    exit_status = 2

    def __init__(
        self, problem: str, *, file: Path | str | None = None, place: str | None = None, remedy: str | None = None
    ) -> None:
        where = ": ".join(str(part) for part in (file, place) if part)
        line = f"{where}: {problem}" if where else problem
        super().__init__(f"{line}; {remedy}" if remedy else line)
        self.problem, self.file, self.place, self.remedy = problem, file, place, remedy


def is_full(error: BaseException | None) -> bool:
    """Says whether an error, or what caused it, is a disk without room."""
    while error is not None:
        said = _OS_ERROR.search(str(error))
        if (isinstance(error, OSError) and error.errno in NO_ROOM) or (said and int(said[1]) in NO_ROOM):
            return True
        error = error.__cause__ or error.__context__
    return False
