"""Receive stamps are on before anything is measured."""

from __future__ import annotations

import socket
import struct
import time

from crossover.client.stamps import ANCILLARY_BYTES, SO_TIMESTAMPNS, kernel_stamps


def test_every_read_after_it_has_a_stamp() -> None:
    with kernel_stamps() as working, socket.create_server(("127.0.0.1", 0)) as listener:
        assert working
        for _ in range(20):
            with socket.socket() as receiver:
                receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
                receiver.connect(listener.getsockname())
                sender = listener.accept()[0]
                before = time.time_ns()
                sender.send(b"x")
                _, ancillary, _, _ = receiver.recvmsg(10, ANCILLARY_BYTES)
                after = time.time_ns()
                sender.close()
            seconds, nanoseconds = struct.unpack("@ll", ancillary[0][2])
            assert before <= seconds * 1_000_000_000 + nanoseconds <= after
