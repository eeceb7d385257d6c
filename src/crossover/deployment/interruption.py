"""Ctrl-C and SIGTERM end a deployment in order: the first one interrupts, further ones wait for the clean-up."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The run was asked to end; not an Exception, so that no handler of failures takes it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within the block the first signal raises `Interrupted`; from then on signals are ignored.

    What the block starts must be undone in its own `finally`, which no further signal can cut short. The old
    handlers come back afterwards.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise Interrupted(number)

    before = {one: signal.signal(one, interrupt) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
