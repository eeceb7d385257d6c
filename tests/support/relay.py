"""A relay between a client and a server that notes when each piece of an answer went through it.

It reads what it forwards only afterwards, with nothing of the package: a second opinion on the same streams.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Answer:
    """One request's answer as it went by.

    Attributes:
        request_id: the `X-Request-ID` that the client sent, empty without one.
        pieces: (bytes so far, before and after they were handed to the client's socket, in CLOCK_REALTIME ns).
    """

    request_id: str
    raw: bytearray = field(default_factory=bytearray)
    pieces: list[tuple[int, int, int]] = field(default_factory=list)

    def events(self) -> list[tuple[dict, tuple[int, int]]]:
        """Returns each event with the window in which its last byte was handed over."""
        found, end = [], 0
        for line in bytes(self.raw).split(b"\n"):
            end += len(line) + 1
            if line.startswith(b"data: {"):
                window = next((before, after) for size, before, after in self.pieces if size >= end - 1)
                found.append((json.loads(line.removeprefix(b"data: ")), window))
        return found

    def first(self, *names: str) -> tuple[int, int]:
        """Returns the window of the first event whose delta has text under one of these names."""
        for event, window in self.events():
            if any(choice["delta"].get(name) for choice in event["choices"] for name in names):
                return window
        raise LookupError(f"no event carries {' or '.join(names)}")

    def usage(self) -> dict:
        """Returns the usage that the stream ended with."""
        return [event["usage"] for event, _ in self.events() if event.get("usage")][-1]


class Relay:
    """Listens on a free port of the loopback address and forwards to another one; a context manager."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.answers: list[Answer] = []

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            head = self._request(client, server)
            name = re.search(rb"(?i)x-request-id: *(\S+)", head)
            answer = Answer(name[1].decode() if name else "")
            self.answers.append(answer)
            while data := server.recv(1 << 16):
                answer.raw += data
                before = time.time_ns()
                client.sendall(data)
                answer.pieces.append((len(answer.raw), before, time.time_ns()))

    @staticmethod
    def _request(client: socket.socket, server: socket.socket) -> bytes:
        """Forwards one request of a known length and returns its head."""
        text = b""
        while b"\r\n\r\n" not in text:
            text += client.recv(1 << 16)
        head, _, body = text.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        server.sendall(text)
        missing = int(length[1]) - len(body) if length else 0
        while missing > 0:
            data = client.recv(1 << 16)
            server.sendall(data)
            missing -= len(data)
        return head
