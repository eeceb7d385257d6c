"""The simulated engine as a process: start-up, HTTP endpoints, and the scheduler kept to the simulated clock.

One thread. Every step has an absolute end on the simulated clock; the loop sleeps until then and never by a
duration, so that
being late once does not shift what follows. What was late is counted and said in the log.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import heapq
import itertools
import math
import os
import random
import secrets
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from crossover.errors import CrossoverError
from crossover.simulator import endpoints
from crossover.simulator.api import Parsed, RequestError, parse
from crossover.simulator.clock import Clock
from crossover.simulator.ending import Ended
from crossover.simulator.faults import Faults
from crossover.simulator.http import Connection, Hub, Request, head, whole
from crossover.simulator.lag import LagMeter
from crossover.simulator.log_base import Lines
from crossover.simulator.log_sglang import SglangLog
from crossover.simulator.log_vllm import VllmLog
from crossover.simulator.planted import Triggers, WrongCache
from crossover.simulator.scheduler import Scheduler, Step
from crossover.simulator.scheduler import Sequence as Running
from crossover.simulator.server_info import Counters
from crossover.simulator.settings import Settings
from crossover.simulator.startup import plan_start
from crossover.simulator.wire import Answer, error_body, frame, last_frame

_LOGS: dict[str, Callable[[Settings, Lines, Faults], Any]] = {"vllm": VllmLog, "sglang": SglangLog}


@dataclass
class Live:
    """A request being answered."""

    connection: Connection
    answer: Answer
    parsed: Parsed
    request_id: str
    first_s: float | None = None


class Simulator:
    """One simulated engine.

    Args:
        settings: from `settings.derive`.
        host, port: where to listen.
        scale: simulated seconds in a real one.
        faults: planted faults.
        seed: decides accepted tokens and the lengths that clients leave open.
        write: takes the log's text (default: standard output).
    """

    def __init__(
        self,
        settings: Settings,
        host: str,
        port: int,
        scale: float,
        faults: Faults | None = None,
        seed: int = 0,
        write: Callable[[str], object] | None = None,
    ) -> None:
        self.faults = faults or Faults()
        if retries := self.faults.number("oom-retries"):
            settings = dataclasses.replace(settings, oom_retries=int(retries), oom_retry_cost_s=2.0)
        self.settings, self.host, self.port, self.seed = settings, host, port, seed
        self.clock = Clock(scale)
        self.lines = Lines(self.clock, write)
        self.log = _LOGS[settings.dialect](settings, self.lines, self.faults)
        self.scheduler = Scheduler(settings, seed)
        if (share := self.faults.number("wrong-cache")) is not None:
            self.scheduler.cache = WrongCache(settings.prefix_block_tokens, share)
        self.counters = Counters()
        self.hub = Hub(self._handle, self.clock.now, self._deliver_due)
        self.served = self._served_names()
        self.ready = False
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count()
        self._step: Step | None = None
        self.last_end_s = 0.0
        self._stopping: int | None = None
        # By chance: every Nth chunk would always hit the same requests of a batch that decodes in step.
        self._drop_share, self._drops = self.faults.number("drop-tokens"), random.Random(seed)
        self.triggers = Triggers(self.faults)
        self.lag = LagMeter(self.clock, self.counters, self.log.note)

    # --- life

    def run(self) -> int:
        """Serves until a signal or a fault ends it; returns the exit status."""
        wake, self._wake = socket.socketpair()
        for end in (wake, self._wake):
            end.setblocking(False)
        old_wakeup = signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        old = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        self.hub.add_wakeup(wake.fileno())
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        try:
            plan_start(self)
            while True:
                self._turn(wake)
        except Ended as ended:
            return ended.status
        finally:
            self.hub.flush()
            self.hub.close()
            self.lines.flush()
            signal.set_wakeup_fd(old_wakeup)
            for number, handler in old.items():
                signal.signal(number, handler)
            wake.close()
            self._wake.close()

    def _turn(self, wake: socket.socket) -> None:
        now = self.clock.now()
        while self.timers and self.timers[0][0] <= now:
            heapq.heappop(self.timers)[2]()
        self._advance(now)
        self.hub.flush()
        self.lines.flush()
        if self._stopping is not None:
            self._shut_down()
        due = min(self.timers[0][0] if self.timers else math.inf, self._step.end_s if self._step else math.inf)
        self.hub.wait(None if due == math.inf else max(0.0, self.clock.real_until(due)))
        with contextlib.suppress(BlockingIOError):
            wake.recv(64)

    def _on_signal(self, number: int, _frame: Any) -> None:
        if number == signal.SIGTERM and "ignore-sigterm" in self.faults:
            return
        self._stopping = number

    def _shut_down(self) -> None:
        self.lag.report()
        self.log.shutdown(self.clock.now(), len(self.scheduler.running))
        raise Ended(0)

    def at(self, sim_s: float, action: Callable[[], None]) -> None:
        """Runs `action` once the simulated clock has reached `sim_s`."""
        heapq.heappush(self.timers, (sim_s, next(self._order), action))

    # --- timers

    def become_ready(self, sim_s: float) -> None:
        """The start-up has ended: health is good, and throughput lines come from now on."""
        self.ready = True
        self.log.on_start(sim_s)
        self._schedule_tick()

    def _schedule_tick(self) -> None:
        due = self.log.next_tick_s()
        if due < math.inf:
            self.at(due, self._tick)

    def _tick(self) -> None:
        self._advance(self.log.next_tick_s())
        self.log.tick(self.log.next_tick_s(), self.scheduler)
        self._schedule_tick()

    # --- the engine

    def _deliver_due(self) -> None:
        self._advance(self.clock.now())
        self.hub.flush()

    def _advance(self, now_s: float) -> None:
        """Delivers every step that has ended by `now_s`, and starts the next one where the last ended."""
        while True:
            if self._step is None:
                if self.scheduler.idle:
                    return
                arrived = min((sequence.arrived_s for sequence in self.scheduler.waiting), default=0.0)
                if not self._begin(max(self.last_end_s, arrived)):
                    return
            assert self._step is not None
            if self._step.end_s > now_s:
                return
            step, self._step = self._step, None
            self.last_end_s = step.end_s
            self.lag.measure(step.end_s)
            self._deliver(step)
            if self.scheduler.idle:
                self.lag.report()
            else:
                self._begin(step.end_s)

    def _begin(self, sim_s: float) -> bool:
        self._step = self.scheduler.step(sim_s)
        if self._step is None:
            return False
        self.log.on_begin(self._step)
        return True

    def _deliver(self, step: Step) -> None:
        counters = self.counters
        counters.drafted += step.drafted
        counters.accepted += int(step.accepted)
        counters.rounds += step.decoding
        vllm = self.settings.dialect == "vllm"
        for sequence, tokens, finished in step.outputs:
            if sequence.cancelled:
                continue
            live: Live = sequence.handle
            count = int(tokens)
            counters.generated_live += count
            if vllm:
                counters.generation_tokens += count
            if live.first_s is None:
                self._first(live, sequence, step.end_s)
            self._send(live, sequence, count, finished)
            if finished:
                self._finish(live, sequence, step.end_s)
        self.log.on_step(step, self.scheduler)
        if self.triggers.armed:
            self.triggers.check(self)

    def _first(self, live: Live, sequence: Running, sim_s: float) -> None:
        live.first_s = sim_s
        counters = self.counters
        counters.ttft_sum_s += sim_s - sequence.arrived_s
        counters.ttft_count += 1
        counters.cached_tokens += sequence.cached
        if self.settings.dialect == "vllm":
            counters.prompt_tokens += sequence.prompt
        if live.parsed.ask.stream:
            headers = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
            self._access(
                live.connection, "POST", "/v1/chat/completions" if live.parsed.ask.chat else "/v1/completions", 200
            )
            opening = live.answer.opening()
            start = head(200, {**headers, "x-request-id": live.request_id})
            live.connection.write(start + frame(opening) if opening else start)

    def _send(self, live: Live, sequence: Running, tokens: int, finished: bool) -> None:
        answer = live.answer
        if not live.parsed.ask.stream:
            answer.sent += tokens
            return
        if finished:
            text = answer.chunk(tokens, live.parsed.finish) + answer.closing(sequence.cached)
            live.connection.write(frame(text) + last_frame())
            return
        data = answer.framed(tokens)
        if self._drop_share and self._drops.random() < self._drop_share:
            answer.lost += tokens
            return
        live.connection.write(data)

    def _finish(self, live: Live, sequence: Running, sim_s: float) -> None:
        counters = self.counters
        counters.finished[live.parsed.finish] += 1
        counters.e2e_sum_s += sim_s - sequence.arrived_s
        if self.settings.dialect == "sglang":
            counters.prompt_tokens += sequence.prompt
            counters.generation_tokens += live.answer.sent
        connection = live.connection
        if not live.parsed.ask.stream:
            body = live.answer.whole(sequence.cached, live.parsed.finish)
            self._access(connection, "POST", "/v1/chat/completions" if live.parsed.ask.chat else "/v1/completions", 200)
            connection.write(whole(200, body, headers={"x-request-id": live.request_id}))
        connection.busy = False
        connection.on_lost = None
        self.at(sim_s, partial(self.hub.pump, connection))

    # --- requests

    def _handle(self, connection: Connection, request: Request | int) -> None:
        if isinstance(request, int):
            connection.write(whole(request, error_body(self.settings.dialect, request, "invalid HTTP request")))
            return
        if request.method == "POST" and request.path in ("/v1/chat/completions", "/v1/completions"):
            self._complete(connection, request)
            return
        status, body, content_type = endpoints.answer(self, request)
        self._access(connection, request.method, request.path, status)
        connection.write(whole(status, body, content_type))

    def _complete(self, connection: Connection, request: Request) -> None:
        number = next(self._numbers)
        chat = request.path == "/v1/chat/completions"
        try:
            self._refuse(request, number)
            field = self.faults.values.get("delta-field", "content")
            parsed = parse(request.body, chat, self.settings, list(self.served), number, self.seed, field)
        except RequestError as error:
            self._access(connection, "POST", request.path, error.status)
            connection.write(whole(error.status, error_body(self.settings.dialect, error.status, str(error))))
            return
        given = request.headers.get("x-request-id")
        request_id = given or secrets.token_hex(8 if self.settings.dialect == "vllm" else 16)
        prefix = ("chatcmpl-" if chat else "cmpl-") if self.settings.dialect == "vllm" else ""
        answer = Answer(
            parsed.ask,
            prefix + request_id,
            self.clock.unix(request.arrived_s),
            parsed.prompt_tokens,
            parsed.reasoning_tokens,
            self.faults.number("inflate-usage") or 1.0,
        )
        live = Live(connection, answer, parsed, request_id)
        sequence = Running(number, parsed.prompt_tokens, parsed.output_tokens, parsed.natural, parsed.prompt, live)
        connection.busy = True
        connection.on_lost = partial(self._lost, sequence)
        self.scheduler.add(sequence, request.arrived_s)

    def _refuse(self, request: Request, number: int) -> None:
        every = self.faults.number("http-500")
        if every and (number + 1) % max(1, int(every)) == 0:
            raise RequestError("EngineCore encountered an issue. See stack trace (above) for the root cause.", 500)
        if not endpoints.is_authorised(self.settings, request):
            raise RequestError("Unauthorized", 401)

    def _lost(self, sequence: Running) -> None:
        self.scheduler.cancel(sequence)
        self.counters.finished["abort"] += 1

    def _access(self, connection: Connection, method: str, path: str, status: int) -> None:
        reason = endpoints.REASONS.get(status, "")
        self.log.access(connection.address, method, path, status, reason, self.clock.now())

    def _served_names(self) -> dict[str, int]:
        named = self.settings.arguments.get("served-model-name") or self.settings.model
        return {str(name): self.clock.unix(0) for name in (named if isinstance(named, list) else [named])}


def serve(settings: Settings, host: str, port: int, scale: float, faults: Faults, seed: int) -> int:
    """Runs a simulated engine in this process until it ends; returns the exit status."""
    if scale <= 0:
        raise CrossoverError("the time scale must be above 0")
    # Steps are short and late ones cost precision: take precedence where the system allows it (root alone).
    with contextlib.suppress(OSError):
        os.nice(-10)
    return Simulator(settings, host, port, scale, faults, seed).run()
