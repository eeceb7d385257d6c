"""What the simulated engine would take, without waiting: the same scheduler, driven by a closed loop of mean "
"requests."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossover.errors import InputError
from crossover.simulator.flags import arguments_from_mapping, parse_arguments
from crossover.simulator.scheduler import Scheduler, Step
from crossover.simulator.scheduler import Sequence as Request
from crossover.simulator.settings import Settings, derive

Arguments = Mapping[str, Any] | Sequence[str]

# The datasets whose prompts are no language; every other one is judged natural.
_RANDOM = frozenset({"random", "random-ids"})


@dataclass(frozen=True)
class CellPrediction:
    """A cell in figures: seconds, tokens per second, and each request's (sent, first output, last output) in "
    "seconds."""

    total_s: float
    stable_decode_tok_s: float | None
    requests: tuple[tuple[float, float, float], ...]

    @property
    def ttft_mean_s(self) -> float:
        return sum(first - sent for sent, first, _ in self.requests) / len(self.requests)


def settings_of(
    dialect: str, arguments: Arguments, model: str | None = None, calibration: Mapping[str, Any] | None = None
) -> Settings:
    """Returns the settings for arguments given as a mapping (as in an experiment) or as a command line.

    Args:
        calibration: coefficients other than the package's own (`calibration.read_calibration`).
    """
    if isinstance(arguments, Mapping):
        return derive(dialect, arguments_from_mapping(dialect, arguments), model, calibration)
    return derive(dialect, parse_arguments(dialect, list(arguments)), model, calibration)


def predict_start_s(dialect: str, arguments: Arguments, *, calibration: Mapping[str, Any] | None = None) -> float:
    """Returns the seconds from launch to ready for `dialect` (vllm, sglang) with these arguments."""
    return settings_of(dialect, arguments, calibration=calibration).start_s()


def predict_cell_s(
    dialect: str,
    arguments: Arguments,
    workload: Mapping[str, Any],
    *,
    cold: bool = False,
    calibration: Mapping[str, Any] | None = None,
) -> float:
    """Returns the seconds from the first send to the last output of one cell.

    Args:
        workload: `input_tokens`, `output_tokens`, `concurrency` or `rate_per_s`, `requests`, `dataset`.
        cold: the cell is the first after a start, so that it pays for kernels that the warm-up did not compile.
    """
    return predict_cell(dialect, arguments, workload, cold=cold, calibration=calibration).total_s


def predict_cell(
    dialect: str,
    arguments: Arguments,
    workload: Mapping[str, Any],
    *,
    cold: bool = False,
    calibration: Mapping[str, Any] | None = None,
) -> CellPrediction:
    """Returns the prediction of one cell; see `predict_cell_s`.

    Raises:
        InputError: the engine would refuse the arguments, or the workload lacks a length.
    """
    settings = settings_of(dialect, arguments, calibration=calibration)
    if settings.refusal:
        raise InputError(f"{dialect} would not start: {settings.refusal}")
    scheduler = Scheduler(settings, on_means=True)
    if not cold:
        scheduler.cold, scheduler.oom_pending = [], 0
    return simulate(scheduler, workload)


def simulate(scheduler: Scheduler, workload: Mapping[str, Any]) -> CellPrediction:
    """Drives a scheduler with one cell's requests: a closed loop of `concurrency`, or one every "
    "1/`rate_per_s` seconds."""
    try:
        lengths = int(workload["input_tokens"]), int(workload["output_tokens"])
    except KeyError as error:
        raise InputError(f"the workload has no {error.args[0]}") from None
    natural = str(workload.get("dataset") or "random") not in _RANDOM
    rate = workload.get("rate_per_s")
    concurrency = int(workload.get("concurrency") or 1)
    total = int(workload.get("requests") or concurrency)
    # A heap of (time, number): all sends of an open loop, or the first ones of a closed loop.
    due = [(number / rate if rate else 0.0, number) for number in range(total if rate else min(concurrency, total))]
    times: dict[int, list[float]] = {}
    spans: list[tuple[float, float]] = []
    now, next_number = 0.0, len(due)
    while due or not scheduler.idle:
        if scheduler.idle:
            now = max(now, due[0][0])
        while due and due[0][0] <= now + 1e-9:
            sent, number = heapq.heappop(due)
            scheduler.add(Request(number, *lengths, natural), sent)
            times[number] = [sent, math.nan, math.nan]
        step = scheduler.step(now, due[0][0] if due else math.inf)
        if step is None:
            raise InputError("a request does not fit into the KV cache")
        now = step.end_s
        ended = _note(step, times, spans, min(concurrency, total))
        for _ in range(0 if rate else ended):
            if next_number < total:
                heapq.heappush(due, (now, next_number))
                next_number += 1
    tokens, seconds = sum(item[0] for item in spans), sum(item[1] for item in spans)
    ordered = tuple((sent, first, last) for sent, first, last in times.values())
    return CellPrediction(now, tokens / seconds if seconds else None, ordered)


def _note(step: Step, times: dict[int, list[float]], spans: list[tuple[float, float]], wanted: int) -> int:
    """Enters a step's outputs into `times`, and into `spans` when all wanted requests decode; returns how "
    "many ended."""
    ended = 0
    for sequence, _, finished in step.outputs:
        entry = times[sequence.number]
        if math.isnan(entry[1]):
            entry[1] = step.end_s
        if finished:
            entry[2] = step.end_s
            ended += 1
    if step.kind == "decode" and step.decoding == wanted:
        spans.append((sum(tokens for _, tokens, _ in step.outputs), step.duration_s))
    return ended
