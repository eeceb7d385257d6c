"""A small HTTP/1.1 server side over epoll: connections that parse requests and buffer answers. No threads, no
protocol library.

Waiting goes through `select` on the epoll descriptor, whose timeout has microseconds; epoll's own has milliseconds.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}
_REASONS |= {401: "Unauthorized", 503: "Service Unavailable"}
_MOST_HEAD = 65536
_MOST_BODY = 256 * 2**20


@dataclass(frozen=True)
class Request:
    """One parsed request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    arrived_s: float


class Connection:
    """One accepted socket: bytes in until a request is whole, bytes out as the peer takes them."""

    __slots__ = (
        "_arrived_s",
        "_hub",
        "_in",
        "_out",
        "_watching",
        "address",
        "busy",
        "closing",
        "fileno",
        "on_lost",
        "sock",
    )

    def __init__(self, hub: Hub, sock: socket.socket, address: str) -> None:
        self._hub, self.sock, self.address = hub, sock, address
        self.fileno = sock.fileno()
        self._in = bytearray()
        self._out = bytearray()
        self._arrived_s = 0.0
        self._watching = False
        self.busy = False  # an answer is under way: the next request waits
        self.closing = False
        self.on_lost: Callable[[], None] | None = None

    def receive(self, now_s: float) -> bool:
        """Reads what is there; returns False when the peer has closed."""
        if not self._in:
            self._arrived_s = now_s
        while True:
            try:
                data = self.sock.recv(1 << 20)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            self._in += data

    def next_request(self) -> Request | int | None:
        """Returns the next whole request, None when there is none yet, or the status of a broken one."""
        end = self._in.find(b"\r\n\r\n", 0, _MOST_HEAD)
        if end < 0:
            return 400 if len(self._in) > _MOST_HEAD else None
        lines = bytes(self._in[:end]).decode("latin-1").split("\r\n")
        parts = lines[0].split(" ")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        length = headers.get("content-length", "0")
        if len(parts) != 3 or not length.isdigit() or int(length) > _MOST_BODY or "transfer-encoding" in headers:
            return 400
        if len(self._in) < end + 4 + int(length):
            if headers.get("expect", "").lower() == "100-continue" and len(self._in) == end + 4:
                self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        body = bytes(self._in[end + 4 : end + 4 + int(length)])
        del self._in[: end + 4 + int(length)]
        if headers.get("connection", "").lower() == "close":
            self.closing = True
        return Request(parts[0], parts[1].split("?")[0], headers, body, self._arrived_s)

    def write(self, data: bytes) -> None:
        """Adds bytes to what is sent at the next flush."""
        if not self._out:
            self._hub.dirty.append(self)
        self._out += data

    def flush(self) -> None:
        """Sends what the peer takes now; the rest waits for the socket to be writable."""
        try:
            sent = self.sock.send(self._out)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._hub.drop(self)
            return
        del self._out[:sent]
        if self._out or self._watching:
            self._hub.want_write(self, bool(self._out))
            self._watching = bool(self._out)
        if not self._out and self.closing and not self.busy:
            self._hub.drop(self)


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Returns the status line and the headers."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}", "server: uvicorn"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def whole(
    status: int, body: Any, content_type: str = "application/json", headers: Mapping[str, str] | None = None
) -> bytes:
    """Returns a whole answer; `body` is text, or anything JSON can hold."""
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    data = text.encode()
    return head(status, {"content-length": str(len(data)), "content-type": content_type, **(headers or {})}) + data


class Hub:
    """The listening socket and its connections.

    Args:
        handle: called with (connection, request or the status of a broken one) for each request.
        now: gives the simulated time, for the arrival of requests.
        between: called after each connection's requests: reading long prompts must not hold up what is due.
    """

    def __init__(
        self,
        handle: Callable[[Connection, Request | int], None],
        now: Callable[[], float],
        between: Callable[[], None],
    ) -> None:
        self._handle, self._now, self._between = handle, now, between
        self._epoll = select.epoll()
        self._listener: socket.socket | None = None
        self._connections: dict[int, Connection] = {}
        self.dirty: list[Connection] = []

    def bind(self, host: str, port: int) -> int:
        """Takes the port without listening on it yet; returns it (port 0: a free one). Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            listener.close()
            raise
        self._listener = listener
        return int(listener.getsockname()[1])

    @property
    def bound(self) -> bool:
        """Tells whether the port has been taken."""
        return self._listener is not None

    def listen(self) -> None:
        """Starts to accept. Raises OSError."""
        assert self._listener is not None
        self._listener.listen(2048)
        self._listener.setblocking(False)
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)

    def add_wakeup(self, fileno: int) -> None:
        """Makes `wait` return when this descriptor is readable (a signal's)."""
        self._epoll.register(fileno, select.EPOLLIN)

    def wait(self, timeout_s: float | None) -> None:
        """Waits for sockets or the time, then reads everything that has come and hands out the requests."""
        if timeout_s is None or timeout_s > 0:
            select.select([self._epoll.fileno()], [], [], timeout_s)
        events = self._epoll.poll(0)
        now_s = self._now()
        readable = []
        for fileno, event in events:
            if self._listener is not None and fileno == self._listener.fileno():
                self._accept()
            elif connection := self._connections.get(fileno):
                if event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    if connection.receive(now_s):
                        readable.append(connection)
                    else:
                        self.drop(connection)
                if event & select.EPOLLOUT and self.holds(connection):
                    connection.flush()
        for connection in readable:
            self.pump(connection)
            self._between()

    def holds(self, connection: Connection) -> bool:
        """Tells whether a connection is still open (its descriptor may belong to a later one by now)."""
        return self._connections.get(connection.fileno) is connection

    def pump(self, connection: Connection) -> None:
        """Hands out the requests that the connection holds, one at a time."""
        while not connection.busy and self.holds(connection):
            request = connection.next_request()
            if request is None:
                return
            if isinstance(request, int):
                connection.closing = True
            self._handle(connection, request)
            if isinstance(request, int):
                return

    def flush(self) -> None:
        """Sends what was written since the last flush, one call a connection."""
        while self.dirty:
            connections, self.dirty = self.dirty, []
            for connection in connections:
                if self.holds(connection):
                    connection.flush()

    def want_write(self, connection: Connection, wanted: bool) -> None:
        """Watches for the socket to become writable, or stops watching."""
        if self.holds(connection):
            self._epoll.modify(connection.fileno, select.EPOLLIN | (select.EPOLLOUT if wanted else 0))

    def drop(self, connection: Connection) -> None:
        """Closes a connection and tells whoever was answering on it."""
        if not self.holds(connection):
            return
        del self._connections[connection.fileno]
        with contextlib.suppress(OSError):
            self._epoll.unregister(connection.fileno)
        connection.sock.close()
        if connection.on_lost:
            connection.on_lost()

    def close(self) -> None:
        """Closes everything."""
        for connection in list(self._connections.values()):
            connection.on_lost = None
            self.drop(connection)
        if self._listener is not None:
            self._listener.close()
        self._epoll.close()

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            try:
                sock, address = self._listener.accept()
            except OSError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections[sock.fileno()] = Connection(self, sock, f"{address[0]}:{address[1]}")
            self._epoll.register(sock.fileno(), select.EPOLLIN)
