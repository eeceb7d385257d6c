"""The start-up on the simulated clock: the log's phases one after the other, the port, readiness, and ways to fail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from crossover.simulator.ending import Ended
from crossover.simulator.log_base import Note, Phase

if TYPE_CHECKING:
    from crossover.simulator.server import Simulator


def plan_start(simulator: Simulator) -> None:
    """Sets the timers of the whole start-up.

    vLLM takes its port first and listens last; SGLang takes it last, and answers 503 until its warm-up request
    is through.
    """
    vllm = simulator.settings.dialect == "vllm"
    slow = simulator.faults.number("slow-start") or 1.0
    if vllm or simulator.port == 0:
        _take_port(simulator)
    failing = simulator.settings.refusal_phase if simulator.settings.refusal else "weights"
    time_s = 0.0
    phases: list[Phase] = simulator.log.phases(simulator.host, simulator.port)
    for phase in phases:
        seconds = phase.seconds * slow
        simulator.at(time_s, partial(_say, simulator, phase.begin, time_s))
        if phase.name == failing:
            simulator.at(time_s + seconds / 2, partial(_fail_if_told, simulator))
        time_s += seconds
        if phase.name == "serve" and not simulator.hub.bound:
            simulator.at(time_s, partial(_take_port, simulator))
        simulator.at(time_s, partial(_say, simulator, phase.end, time_s))
        if phase.name == "serve":
            simulator.at(time_s, partial(_listen, simulator))
    simulator.at(time_s, partial(simulator.become_ready, time_s))


def _say(simulator: Simulator, notes: Sequence[Note], sim_s: float) -> None:
    for note in notes:
        simulator.log.note(note, sim_s)


def _fail_if_told(simulator: Simulator) -> None:
    """Half way through a phase: what the arguments or a fault make of the start."""
    faults, status = simulator.faults, 1
    text = simulator.settings.refusal
    if "oom-at-start" in faults:
        text = (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.31 GiB. GPU 0 has a total capacity of "
            f"{simulator.settings.memory.visible_gib:.2f} GiB of which 0.31 GiB is free."
        )
    elif "exit-at-start" in faults:
        status = int(faults.number("exit-at-start") or 0)
        text = "RuntimeError: the simulated engine was told to exit at the start"
    if text:
        simulator.log.failed(text, simulator.clock.now(), starting=True)
        raise Ended(status)
    if "never-ready" in faults:
        simulator.timers.clear()


def _take_port(simulator: Simulator) -> None:
    try:
        if "port-in-use" in simulator.faults:
            raise OSError("planted")
        simulator.port = simulator.hub.bind(simulator.host, simulator.port)
    except OSError:
        _port_in_use(simulator)


def _listen(simulator: Simulator) -> None:
    try:
        simulator.hub.listen()
    except OSError:
        _port_in_use(simulator)


def _port_in_use(simulator: Simulator) -> None:
    simulator.log.port_in_use(simulator.host, simulator.port, simulator.clock.now())
    raise Ended(1) from None
