"""The server's loop: one thread, epoll, an absolute schedule of chunks, and a log of when each really
left.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ground_truth.scenario import Scenario, Script, error_response, make_script, parse_scenario

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT
_RESET = struct.pack("ii", 1, 0)


class _Client:
    """A connection: the request being read, or the response being sent."""

    __slots__ = (
        "body",
        "buffer",
        "closed",
        "due",
        "fd",
        "looked",
        "need",
        "paused",
        "received_ns",
        "request_id",
        "scenario",
        "script",
        "sock",
        "step",
        "truth",
    )

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.fd = sock, sock.fileno()
        self.closed = False
        self.clear()

    def clear(self) -> None:
        self.buffer = bytearray()
        self.need = -1
        self.looked = False
        self.body = 0
        self.script: Script | None = None
        self.scenario: Scenario | None = None
        self.step = 0
        self.paused = False
        self.request_id = ""
        self.received_ns = 0
        self.truth: list[int] = []


class GroundTruthServer:
    """Serves scenarios on a loopback port.

    `truth[request_id]` has `began_ns` and `received_ns` (first and last byte of the request), and
    `emitted_ns`: the time just before each output chunk was handed to the kernel (CLOCK_REALTIME). `blocked`
    counts sends that the kernel did not take at once: back-pressure from the client.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, tls: Any = None) -> None:
        self._listener = socket.create_server((host, port), backlog=4096)
        self._listener.setblocking(False)
        self._tls = tls
        self.port: int = self._listener.getsockname()[1]
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), _IN)
        self._clients: dict[int, _Client] = {}
        self._due: list[tuple[int, int, _Client]] = []
        self._tie = 0
        self._stop = threading.Event()
        self.truth: dict[str, dict[str, Any]] = {}
        self.requests_of_model: Counter[str] = Counter()
        self.heads_of_model: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.keep_bodies = False
        self.connections = 0
        self.blocked = 0
        self.late_ns_max = 0

    @property
    def url(self) -> str:
        """Base URL."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Makes `run` return."""
        self._stop.set()

    def run(self) -> None:
        """Serves until stopped."""
        while not self._stop.is_set():
            self._emit_due()
            for fd, mask in self._epoll.poll(self._wait_s()):
                if fd == self._listener.fileno():
                    self._accept()
                elif client := self._clients.get(fd):
                    self._serve(client, mask)
        for client in list(self._clients.values()):
            self._drop(client)
        self._listener.close()
        self._epoll.close()

    def _wait_s(self) -> float:
        """Waits whole milliseconds only while the next chunk is further away than one; the last one is
        spun away.
        """
        if not self._due:
            return 0.05
        wait_ms = (self._due[0][0] - time.monotonic_ns()) // 1_000_000
        return min(max(wait_ms, 0), 50) / 1000

    def _serve(self, client: _Client, mask: int) -> None:
        try:
            if mask & _IN:
                self._read(client)
            elif mask & ~_OUT:
                self._drop(client)
        except (OSError, ValueError):
            self._drop(client)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                if self._tls:
                    sock.settimeout(5)
                    try:
                        sock = self._tls.wrap_socket(sock, server_side=True)
                    except OSError:
                        continue
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client = _Client(sock)
                self._clients[client.fd] = client
                self._epoll.register(client.fd, _IN)
                self.connections += 1

    def _read(self, client: _Client) -> None:
        slow = client.scenario.read_kib_s if client.scenario else 0
        try:
            data = client.sock.recv(4096 if slow or client.need < 0 else 1 << 20)
        except BlockingIOError:
            return
        except OSError as error:
            if "did not complete" in str(error):
                return
            raise
        now = time.time_ns()
        if not data:
            self._drop(client)
            return
        if not client.buffer:
            client.received_ns = now
        client.buffer += data
        if client.need < 0:
            self._read_head(client)
        if client.need >= 0 and not client.looked:
            self._look_for_pace(client)
            slow = client.scenario.read_kib_s if client.scenario else 0
        if client.need >= 0 and len(client.buffer) >= client.need:
            self._answer(client, now)
        elif slow:
            self._pause(client, len(data) / (slow * 1024))

    def _read_head(self, client: _Client) -> None:
        end = client.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(client.buffer[:end]).decode("latin-1")
        fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
        client.body = end + 4
        client.need = client.body + int(fields.get("content-length", 0))
        client.request_id = fields.get("x-request-id", f"unnamed-{len(self.truth)}")
        path = head.split(" ")[1]
        self.truth[client.request_id] = {
            "began_ns": client.received_ns,
            "emitted_ns": [],
            "path": path,
            "authorization": fields.get("authorization"),
        }

    def _look_for_pace(self, client: _Client) -> None:
        """The scenario may slow down the reading of its own request: its name is looked for as soon as it is there."""
        start = client.buffer.find(b'"model"', client.body, client.body + 4096)
        name = bytes(client.buffer[start : start + 400]).split(b'"')
        if start >= 0 and len(name) > 4:
            client.looked = True
            client.scenario = self._pace(client, name[3].decode())

    def _pace(self, client: _Client, model: str) -> Scenario | None:
        """Returns the scenario if this request is to be read slowly, and keeps the kernel from reading ahead."""
        scenario = parse_scenario(model)
        if not scenario.read_kib_s:
            return None
        self.heads_of_model[model] += 1
        if (self.heads_of_model[model] - 1) % scenario.slow_every:
            return None
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        return scenario

    def _pause(self, client: _Client, seconds: float) -> None:
        client.paused = True
        self._epoll.modify(client.fd, 0)
        self._push(time.monotonic_ns() + int(seconds * 1e9), client)

    def _push(self, due_ns: int, client: _Client) -> None:
        self._tie += 1
        heapq.heappush(self._due, (due_ns, self._tie, client))

    def _answer(self, client: _Client, now_ns: int) -> None:
        start_ns = time.monotonic_ns()
        raw = bytes(client.buffer[client.body : client.need])
        path = self.truth[client.request_id]["path"]
        if path == "/truth":
            self._send_whole(client, json.dumps(self.summary()).encode())
            return
        if not raw:
            models = {"object": "list", "data": [{"id": "steady", "object": "model"}]}
            self._send_whole(client, json.dumps(models).encode())
            return
        body = json.loads(raw)
        if self.keep_bodies:
            self.bodies.append(body)
        model = body["model"]
        scenario = parse_scenario(model)
        self.truth[client.request_id]["received_ns"] = now_ns
        self.requests_of_model[model] += 1
        status = scenario.status
        if self.requests_of_model[model] <= scenario.fail_first:
            status = scenario.fail_status
        if status != 200:
            client.sock.send(error_response(status))
            client.clear()
            return
        options = body.get("stream_options") or {}
        tokens = int(body.get("max_tokens") or body.get("max_completion_tokens") or scenario.tokens)
        client.script = make_script(
            model,
            tokens,
            "chat" in path,
            bool(options.get("continuous_usage_stats")),
            bool(body.get("return_token_ids")),
        )
        client.scenario = scenario
        client.truth = self.truth[client.request_id]["emitted_ns"]
        client.due = start_ns
        client.step = 0
        self._push(start_ns + client.script.steps[0][0], client)

    def _send_whole(self, client: _Client, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        client.sock.setblocking(True)
        client.sock.sendall(head.encode() + body)
        client.sock.setblocking(False)
        client.clear()

    def summary(self) -> dict[str, Any]:
        """Returns the truth of all requests, and what the server noted about itself."""
        return {
            "requests": self.truth,
            "blocked": self.blocked,
            "late_ns_max": self.late_ns_max,
            "connections": self.connections,
        }

    def _emit_due(self) -> None:
        """Sends every chunk that is due. This runs tens of thousands of times a second, so it is kept flat."""
        due = self._due
        now = time.monotonic_ns()
        while due and due[0][0] <= now:
            due_ns, tie, client = due[0]
            if client.script is None or client.paused or client.closed:
                heapq.heappop(due)
                if client.paused and not client.closed:
                    client.paused = False
                    self._epoll.modify(client.fd, _IN)
                continue
            steps = client.script.steps
            _, payload, is_output = steps[client.step]
            if now - due_ns > self.late_ns_max:
                self.late_ns_max = now - due_ns
            if is_output:
                client.truth.append(time.time_ns())
            if not self._send(client, payload):
                heapq.heappop(due)
                self._drop(client)
            else:
                client.step += 1
                if client.step < len(steps):
                    heapq.heapreplace(due, (client.due + steps[client.step][0], tie, client))
                else:
                    heapq.heappop(due)
                    self._end(client, client.script.ends)
            now = time.monotonic_ns()

    def _send(self, client: _Client, payload: bytes) -> bool:
        """Returns whether the peer is still there."""
        assert client.scenario is not None
        try:
            if not client.scenario.split:
                sent = client.sock.send(payload)
                return sent == len(payload) or self._send_rest(client, memoryview(payload)[sent:])
            for start in range(0, len(payload), client.scenario.split):
                client.sock.send(payload[start : start + client.scenario.split])
                time.sleep(0.0002)
        except BlockingIOError:
            return self._send_rest(client, memoryview(payload))
        except OSError:
            return False
        return True

    def _send_rest(self, client: _Client, rest: memoryview) -> bool:
        """The kernel took only a part: the client does not read fast enough."""
        self.blocked += 1
        while rest:
            select.select([], [client.fd], [], 1)
            try:
                rest = rest[client.sock.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True

    def _end(self, client: _Client, how: str) -> None:
        if how == "keep":
            client.clear()
        elif how == "reset":
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._drop(client)
        elif how == "close":
            self._drop(client)
        else:
            client.script = None

    def _drop(self, client: _Client) -> None:
        if self._clients.get(client.fd) is client:
            del self._clients[client.fd]
            self._epoll.unregister(client.fd)
            client.closed = True
            client.sock.close()


@contextlib.contextmanager
def serve_in_thread(**options: Any) -> Iterator[GroundTruthServer]:
    """Runs a server in a thread of this process: fine for semantics, not for accuracy."""
    server = GroundTruthServer(**options)
    thread = threading.Thread(target=server.run, name="ground-truth", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)
