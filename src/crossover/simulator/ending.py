"""How the simulated process is told to end."""

from __future__ import annotations


class Ended(BaseException):
    """Leaves the serving loop: the process is to end with `status`. No error, so that nothing catches it by "
    "accident."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status
