"""Makes sure that the kernel stamps packets before the first one that matters comes.

Linux switches receive stamps on for the whole system, a moment after the first socket asks for them, and off when the
last such socket closes. Segments that arrive before that have no stamp.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

# Linux's number; the socket module does not export it before Python 3.14.
SO_TIMESTAMPNS = 35
TIMESPEC_BYTES = 16
ANCILLARY_BYTES = socket.CMSG_SPACE(TIMESPEC_BYTES)
_PATIENCE_S = 2.0


@contextlib.contextmanager
def kernel_stamps() -> Iterator[bool]:
    """Keeps receive stamps on; yields whether they were seen to work on the loopback device within two seconds."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        receiver = stack.enter_context(socket.socket())
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.settimeout(_PATIENCE_S)
        receiver.connect(listener.getsockname())
        sender = stack.enter_context(listener.accept()[0])
        deadline = time.monotonic() + _PATIENCE_S
        stamped = False
        while not stamped and time.monotonic() < deadline:
            sender.send(b"x")
            stamped = bool(receiver.recvmsg(1, ANCILLARY_BYTES)[1])
            if not stamped:
                time.sleep(0.001)
        yield stamped
