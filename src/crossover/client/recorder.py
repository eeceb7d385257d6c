"""The recording loop: one thread, epoll, a socket a request, nothing interpreted but where a response
ends.
"""

from __future__ import annotations

import errno
import select
import time
from collections import deque
from collections.abc import Callable

import orjson

from crossover.client.connection import READ_BYTES, Connection, State, Target
from crossover.client.observed import Observed, end_reason, quiet_memory
from crossover.client.schedule import Schedule
from crossover.client.settings import Load, Progress
from crossover.client.spool import DUE, END, NO_STAMP, SENT, SENT_ALL, Spool
from crossover.client.stamps import ANCILLARY_BYTES, kernel_stamps
from crossover.client.wire import RequestBook

_MS = 1_000_000
_TICK_NS = 50 * _MS
_PROGRESS_NS = 500 * _MS
_AHEAD_NS = 1_000 * _MS
_RETRY_SPARE_NS = 500 * _MS
_MAX_SPARES = 4096
_FLUSH_READS = 1_000
_PENDING_READS = 500
_TAIL = b"\r\n\r\n"
# A thousand streams whose chunks come one by one would wake the loop for each, which costs more than to read it. With
# many streams it therefore waits a little for company: far less than an engine's step, so that two chunks of one stream
# are still read one by one.
_MANY_ACTIVE, _FEW_READY, _PAUSE_S = 64, 16, 0.0002
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class Recorder:
    """Sends the requests of a book when the schedule says so, and spools what comes back."""

    def __init__(
        self,
        target: Target,
        book: RequestBook,
        schedule: Schedule,
        load: Load,
        spool: Spool,
        on_progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        self._target, self._book, self._schedule, self._load, self._spool = (
            target,
            book,
            schedule,
            load,
            spool,
        )
        self._on_progress, self._should_stop = on_progress, should_stop
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._active: dict[int, Connection] = {}
        self._spares: deque[Connection] = deque()
        self._opening = 0
        self._no_spares_before_ns = 0
        self._next_request = 0
        self._next_progress_ns = 0
        self._due_ns: int | None = None
        self._origin_ns = self._origin_real_ns = 0
        self.observed = Observed()

    # the loop

    def run(self) -> Observed:
        """Runs the whole load and returns what the loop noted about itself."""
        cpu = time.process_time()
        try:
            with kernel_stamps(), quiet_memory():
                self._connect_ahead_of_start()
                self._start_clock()
                self._loop()
        finally:
            self._close_all()
            self._spool.flush()
            self.observed.cpu_s = time.process_time() - cpu
            self.observed.ended_ns = time.time_ns()
            self.observed.reads, self.observed.bytes_seen = self._spool.reads_seen, self._spool.bytes_seen
        return self.observed

    def _start_clock(self) -> None:
        self._origin_ns = time.monotonic_ns()
        self._origin_real_ns = time.time_ns()
        self.observed.started_ns = self._origin_real_ns
        self.observed.realtime_minus_monotonic_ns = self._origin_real_ns - self._origin_ns
        self._next_tick_ns = self._origin_ns
        self._next_progress_ns = self._origin_ns + _PROGRESS_NS
        self._look_at_schedule()

    def _loop(self) -> None:
        """Sends what is due, waits, and handles what came, until nothing is under way nor due."""
        poll, clock = self._epoll.poll, time.monotonic_ns
        while self._active or self._due_ns is not None:
            now = clock()
            if self._due_ns is not None and self._due_ns <= now:
                self._start_due(now)
            if now >= self._next_tick_ns:
                self._next_tick_ns = now + _TICK_NS
                self._tick(now)
                if self.observed.stopped:
                    return
            wait_ms = (self._next_tick_ns - now) // _MS + 1
            if self._due_ns is not None:
                # epoll counts in milliseconds: within the last one before a send it does not wait at all.
                wait_ms = min(wait_ms, (self._due_ns - now) // _MS)
            ready = poll(wait_ms / 1000 if wait_ms > 0 else 0)
            self._serve_all(ready)
            if len(ready) < _FEW_READY and len(self._active) >= _MANY_ACTIVE and self._may_pause(now):
                time.sleep(_PAUSE_S)

    def _may_pause(self, now: int) -> bool:
        """Whether a wait harms nothing: the kernel stamps what comes meanwhile, and nothing is due to be sent."""
        return self._target.tls is None and (self._due_ns is None or self._due_ns > now + _MS)

    def _start_due(self, now: int) -> None:
        while self._due_ns is not None and self._due_ns <= now:
            self._begin(self._origin_real_ns + self._schedule.take())
            self._look_at_schedule()

    def _look_at_schedule(self) -> None:
        due = self._schedule.next_due_ns()
        self._due_ns = None if due is None else self._origin_ns + due

    # requests

    def _begin(self, scheduled_ns: int) -> None:
        request = self._next_request
        self._next_request += 1
        self._spool.add_event(DUE, request, scheduled_ns, orjson.dumps(self._book.plan_of(request)))
        self.observed.sent += 1
        self._carry(request)

    def _carry(self, request: int) -> None:
        """Puts a request on a connected spare, or on a connection that is opened for it."""
        if self._spares:
            connection = self._spares.popleft()
            connection.request = request
            self._active[request] = connection
            self._send(connection)
            return
        try:
            connection = self._open()
        except OSError as error:
            self._finish(request, end_reason(error))
            return
        connection.request = request
        self._active[request] = connection

    def _send(self, connection: Connection) -> None:
        assert connection.request is not None
        now = time.time_ns()
        self._spool.add_event(SENT, connection.request, now)
        try:
            done = connection.start(self._book.pieces(connection.request), now)
        except OSError as error:
            self._broken(connection, error)
            return
        self._after_send(connection, done)

    def _after_send(self, connection: Connection, done: bool) -> None:
        assert connection.request is not None
        if done:
            self._spool.add_event(SENT_ALL, connection.request, time.time_ns())
        self._epoll.modify(connection.fd, _IN if done else _IN | _OUT)

    def _finish(self, request: int, reason: str) -> None:
        """Notes a request's end; a closed loop may start the next one."""
        self._active.pop(request, None)
        self._spool.add_event(END, request, time.time_ns(), reason.encode())
        self.observed.done += reason == "complete"
        self.observed.failed += reason != "complete"
        self.observed.end_reasons[reason] = self.observed.end_reasons.get(reason, 0) + 1
        self._schedule.on_end(time.monotonic_ns() - self._origin_ns)
        self._look_at_schedule()

    # connections

    def _open(self) -> Connection:
        connection = Connection(self._target, time.monotonic_ns())
        self._connections[connection.fd] = connection
        self._epoll.register(connection.fd, _IN | _OUT)
        return connection

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.fd, None) is not None:
            if connection.request is None:
                if connection.state < State.IDLE:
                    self._opening -= 1
                elif connection in self._spares:
                    self._spares.remove(connection)
            self._epoll.unregister(connection.fd)
            connection.close()

    def _serve_all(self, ready: list[tuple[int, int]]) -> None:
        """Serves what epoll found; reads in the middle of a stream, which are nearly all, take the short way."""
        connections, reads, time_ns = self._connections, self._spool.reads, time.time_ns
        for fd, mask in ready:
            connection = connections.get(fd)
            if connection is None:
                continue
            try:
                if not connection.streaming or mask != _IN:
                    self._handle(connection, mask)
                    continue
                data, ancillary, _, _ = connection.recvmsg(READ_BYTES, ANCILLARY_BYTES)
                now = time_ns()
                if not data:
                    self._closed_by_peer(connection)
                    continue
                request = connection.request
                assert request is not None
                reads.append((request, ancillary[0][2] if ancillary else NO_STAMP, now, data))
                connection.last_read_ns = now
                connection.pending.append(data)
                if (data.endswith(_TAIL) or len(data) < 5) and connection.ends_here(data):
                    self._complete(connection, request)
            except BlockingIOError:
                continue
            except (OSError, ValueError) as error:
                self._broken(connection, error)
        if len(reads) > _FLUSH_READS:
            self._spool.flush()

    def _handle(self, connection: Connection, mask: int) -> None:
        if connection.state < State.IDLE:
            self._connected(connection)
            return
        if mask & _OUT and connection.state == State.SENDING:
            self._after_send(connection, connection.send_more())
        if mask & ~_OUT:
            self._receive(connection)

    def _connected(self, connection: Connection) -> None:
        if not connection.advance(self._target):
            self._epoll.modify(connection.fd, _IN)
            return
        if connection.request is not None:
            self._send(connection)
            return
        self._opening -= 1
        self._epoll.modify(connection.fd, _IN)
        self._spares.append(connection)

    def _receive(self, connection: Connection) -> None:
        while True:
            try:
                data, stamp = connection.read()
            except BlockingIOError:
                return
            now = time.time_ns()
            request = connection.request
            if not data or request is None:
                # A spare that the server closes, or speaks on, is of no use.
                self._closed_by_peer(connection)
                return
            self._spool.reads.append((request, stamp, now, data))
            connection.last_read_ns = now
            connection.reads += 1
            if connection.response_ended(data):
                self._complete(connection, request)
                return
            # TLS decrypts whole records, of which the socket's readiness knows nothing.
            if not connection.secure:
                return

    def _complete(self, connection: Connection, request: int) -> None:
        head = connection.head
        if self._load.reuse_connections and connection.state == State.RECEIVING and head and head.keeps_alive:
            connection.request = None
            connection.used = True
            connection.state = State.IDLE
            self._spares.appendleft(connection)
        else:
            self._drop(connection)
        self._finish(request, "complete")

    def _closed_by_peer(self, connection: Connection) -> None:
        if connection.request is None:
            self._drop(connection)
        elif connection.closes_cleanly:
            self._complete(connection, connection.request)
        else:
            self._broken(connection, ConnectionAbortedError(errno.ECONNABORTED, "closed"), "closed")

    def _broken(self, connection: Connection, error: Exception, reason: str | None = None) -> None:
        request, stale = connection.request, connection.used and not connection.reads
        self._drop(connection)
        if request is None:
            self._no_spares_before_ns = time.monotonic_ns() + _RETRY_SPARE_NS
        elif stale and isinstance(error, OSError):
            # A kept connection that the server had closed meanwhile: the request was never taken.
            self.observed.retried += 1
            self._active.pop(request, None)
            self._carry(request)
        else:
            self._finish(request, reason or end_reason(error))

    # ahead of time

    def _top_up_spares(self, now: int) -> None:
        if now < self._no_spares_before_ns:
            return
        wanted = min(self._schedule.due_within(now - self._origin_ns, _AHEAD_NS), _MAX_SPARES)
        for _ in range(wanted - len(self._spares) - self._opening):
            try:
                self._open()
            except OSError:
                self._no_spares_before_ns = now + _RETRY_SPARE_NS
                return
            self._opening += 1

    def _connect_ahead_of_start(self) -> None:
        """Opens the first connections before the clock starts; those that fail are tried again when their
        request is due.
        """
        self._origin_ns = time.monotonic_ns()
        self._top_up_spares(self._origin_ns)
        deadline = self._origin_ns + int(self._load.connect_timeout_s * 1e9)
        while self._opening and time.monotonic_ns() < deadline:
            self._serve_all(self._epoll.poll(0.1))
            if self._should_stop is not None and self._should_stop():
                return

    def _tick(self, now: int) -> None:
        self._spool.flush()
        self._expire(now)
        self._top_up_spares(now)
        step = time.time_ns() - time.monotonic_ns() - self.observed.realtime_minus_monotonic_ns
        self.observed.clock_step_ns = max(self.observed.clock_step_ns, abs(step))
        if now >= self._next_progress_ns:
            self._next_progress_ns = now + _PROGRESS_NS
            self._report(now)
        if self._should_stop is not None and self._should_stop():
            self.observed.stopped = True

    def _expire(self, now: int) -> None:
        load, now_real = self._load, time.time_ns()
        for request, connection in list(self._active.items()):
            reason = None
            if len(connection.pending) > _PENDING_READS and connection.streaming:
                connection.catch_up()
            if connection.state < State.IDLE:
                if now - connection.began_ns > load.connect_timeout_s * 1e9:
                    reason = "connect_timeout"
            elif load.request_timeout_s is not None and now_real - connection.sent_ns > load.request_timeout_s * 1e9:
                reason = "timeout"
            elif connection.reads and load.stall_timeout_s is not None:
                reason = "stall" if now_real - connection.last_read_ns > load.stall_timeout_s * 1e9 else None
            if reason is not None:
                self._drop(connection)
                self._finish(request, reason)

    def _report(self, now: int) -> None:
        if self._on_progress is not None:
            seen, spool = self.observed, self._spool
            elapsed_s = (now - self._origin_ns) / 1e9
            self._on_progress(
                Progress(seen.sent, seen.done, seen.failed, spool.bytes_seen, spool.reads_seen, elapsed_s)
            )

    def _close_all(self) -> None:
        for request in list(self._active):
            self._finish(request, "stopped")
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._epoll.close()
        if self._origin_ns:
            self._report(time.monotonic_ns())
