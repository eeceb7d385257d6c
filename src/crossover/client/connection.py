"""One non-blocking socket: connecting, TLS, sending in pieces, and reads with the kernel's receive stamps."""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
from collections import deque
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from crossover.client.framing import Chunks, Head, parse_head
from crossover.client.settings import Endpoint
from crossover.client.spool import NO_STAMP
from crossover.client.stamps import ANCILLARY_BYTES, SO_TIMESTAMPNS
from crossover.errors import CrossoverError

READ_BYTES = 32 << 10
# Small enough that sixteen long prompts all begin within a millisecond or two, large enough to fill a link.
SEND_BYTES = 64 << 10
_DONE_CHUNK, _LAST_CHUNK = b"\ndata: [DONE]\n\n\r\n", b"0\r\n\r\n"


class State(IntEnum):
    """Where a connection stands."""

    CONNECTING = 0
    HANDSHAKE = 1
    IDLE = 2
    SENDING = 3
    RECEIVING = 4


class Target:
    """The resolved address of an endpoint, and its TLS context."""

    def __init__(self, endpoint: Endpoint) -> None:
        try:
            found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise CrossoverError(f"{endpoint.host} cannot be resolved: {error}") from error
        # A name such as localhost has several addresses: the first that accepts is used, else the first.
        usable = (entry for entry in found if len(found) == 1 or _accepts(entry))
        chosen = next(usable, found[0])
        self.family: int = chosen[0]
        self.address: Any = chosen[4]
        self.host = endpoint.host
        self.tls = ssl.create_default_context() if endpoint.tls else None


def _accepts(entry: tuple[Any, ...]) -> bool:
    with socket.socket(entry[0], socket.SOCK_STREAM) as probe:
        probe.settimeout(5)
        try:
            probe.connect(entry[4])
        except OSError:
            return False
    return True


def may_end(data: bytes) -> bool:
    """Whether a read could end a chunked body: under load nothing but this is asked of it."""
    return data.endswith(b"\r\n\r\n") or len(data) < 5


class Connection:
    """A socket with the request that it carries, if any.

    Raises:
        OSError: from its methods, for what the network says.
        ValueError: the response is no HTTP.
    """

    __slots__ = (
        "_at_head", "_chunks", "_length_left", "_pieces", "began_ns", "fd", "head", "last_read_ns", "pending", "reads",
        "recvmsg", "request", "secure", "sent_ns", "sock", "state", "streaming", "used",
    )  # fmt: skip

    def __init__(self, target: Target, now_ns: int) -> None:
        sock = socket.socket(target.family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A host that vanishes without a word is noticed, even where no timeout was asked for.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        self.sock: socket.socket = sock
        self.recvmsg = sock.recvmsg
        self.fd = sock.fileno()
        self.secure = target.tls is not None
        self.state = State.CONNECTING
        self.began_ns = now_ns
        self.request: int | None = None
        self.used = False
        self.reset_response()
        code = sock.connect_ex(target.address)
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            raise OSError(code, "connect")

    def reset_response(self) -> None:
        """Forgets the last response."""
        self._pieces: deque[memoryview] = deque()
        self.pending: list[bytes] = []
        self._chunks: Chunks | None = None
        self._length_left: int | None = None
        self._at_head = True
        self.head: Head | None = None
        self.reads = 0
        self.sent_ns = 0
        self.last_read_ns = 0
        self.streaming = False

    def advance(self, target: Target) -> bool:
        """Goes on connecting; returns whether the connection stands."""
        if self.state == State.CONNECTING:
            code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, "connect")
            if target.tls is None:
                self.state = State.IDLE
                return True
            self.sock = target.tls.wrap_socket(self.sock, server_hostname=target.host, do_handshake_on_connect=False)
            self.state = State.HANDSHAKE
        try:
            assert isinstance(self.sock, ssl.SSLSocket)
            self.sock.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        self.state = State.IDLE
        return True

    def start(self, pieces: Iterable[memoryview], now_ns: int) -> bool:
        """Begins to send a request's bytes; returns whether all of them are with the kernel."""
        self.reset_response()
        self._pieces.extend(pieces)
        self.state = State.SENDING
        self.sent_ns = now_ns
        return self.send_more()

    def send_more(self) -> bool:
        """Sends one piece more, if the kernel takes it; returns whether all have been sent."""
        budget = SEND_BYTES
        try:
            while self._pieces and budget > 0:
                piece = self._pieces[0]
                count = self.sock.send(piece[:budget])
                budget -= count
                if count == len(piece):
                    self._pieces.popleft()
                else:
                    self._pieces[0] = piece[count:]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return False
        if self._pieces:
            return False
        self.state = State.RECEIVING
        return True

    def read(self) -> tuple[bytes, bytes]:
        """Returns (bytes, the kernel's timespec or NO_STAMP); no bytes means that the peer closed.

        Raises:
            BlockingIOError: nothing is there.
        """
        if self.secure:
            try:
                return self.sock.recv(READ_BYTES), NO_STAMP
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise BlockingIOError from None
            except ssl.SSLZeroReturnError:
                return b"", NO_STAMP
        data, ancillary, _, _ = self.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        return data, ancillary[0][2] if ancillary else NO_STAMP

    def response_ended(self, data: bytes) -> bool:
        """Takes the bytes just read; returns whether the response is complete."""
        if self._at_head:
            ended = self._take_head(data)
            self.streaming = self._chunks is not None and not self.secure and self.state == State.RECEIVING
            return ended
        if self._chunks is not None:
            self.pending.append(data)
            return may_end(data) and self.ends_here(data)
        if self._length_left is not None:
            self._length_left -= len(data)
            return self._length_left <= 0
        return False

    def _take_head(self, data: bytes) -> bool:
        self.pending.append(data)
        raw = b"".join(self.pending)
        self.head = parse_head(raw)
        if self.head is None:
            return False
        self._at_head = False
        self.pending.clear()
        rest = raw[self.head.size :]
        if self.head.mode == "chunked":
            self._chunks = Chunks()
            return self._chunks.feed(rest)
        if self.head.mode == "length":
            self._length_left = (self.head.length or 0) - len(rest)
            return self._length_left <= 0
        return False

    def ends_here(self, data: bytes) -> bool:
        """Whether the chunked body ends with `data`, the last of the pending bytes.

        The usual end of an event stream is known at sight, since JSON holds no bare line break before `data:`.
        """
        if data == _LAST_CHUNK and len(self.pending) > 1 and self.pending[-2].endswith(_DONE_CHUNK):
            return True
        return data.endswith(_DONE_CHUNK + _LAST_CHUNK) or self.catch_up()

    def catch_up(self) -> bool:
        """Follows the framing through the pending bytes, and lets go of them."""
        assert self._chunks is not None
        data = b"".join(self.pending)
        self.pending.clear()
        return self._chunks.feed(data)

    @property
    def closes_cleanly(self) -> bool:
        """Whether the peer's close is the end of the response (no length, no chunks)."""
        return self.head is not None and self.head.mode == "close"

    def close(self) -> None:
        """Closes the socket."""
        with contextlib.suppress(OSError):
            self.sock.close()
