"""What the recording loop notes about itself, and the words for how a connection can fail."""

from __future__ import annotations

import errno
import gc
import resource
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_REASONS = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.EPIPE: "reset",
    errno.ETIMEDOUT: "lost",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    # The client's own limits: open files, local ports, socket memory.
    errno.EMFILE: "client_limit",
    errno.ENFILE: "client_limit",
    errno.EADDRNOTAVAIL: "client_limit",
    errno.ENOBUFS: "client_limit",
    errno.ENOMEM: "client_limit",
}


@dataclass
class Observed:
    """What the loop notes about itself; times in nanoseconds."""

    sent: int = 0
    done: int = 0
    failed: int = 0
    reads: int = 0
    bytes_seen: int = 0
    retried: int = 0
    started_ns: int = 0
    ended_ns: int = 0
    realtime_minus_monotonic_ns: int = 0
    clock_step_ns: int = 0
    cpu_s: float = 0.0
    stopped: bool = False
    end_reasons: dict[str, int] = field(default_factory=dict)


def end_reason(error: Exception) -> str:
    """Returns the word for a failed socket operation."""
    if isinstance(error, ssl.SSLError):
        return "tls"
    if isinstance(error, OSError) and error.errno is not None:
        return _REASONS.get(error.errno, errno.errorcode.get(error.errno, "network").lower())
    return "no_http" if isinstance(error, ValueError) else "network"


@contextmanager
def quiet_memory() -> Iterator[None]:
    """Keeps the garbage collector from stopping the loop."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def raise_file_limit() -> None:
    """Lets this process open as many sockets as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
