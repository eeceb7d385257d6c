"""Records a load: prepares the requests, runs the loop, and leaves the tables and a description behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crossover.client.connection import Target
from crossover.client.fitness import FitnessLimits, fitness_of
from crossover.client.observed import raise_file_limit
from crossover.client.recorder import Recorder
from crossover.client.schedule import make_schedule
from crossover.client.settings import Endpoint, Load, Progress, Sampling
from crossover.client.spool import READS_NAME, RECORDING_NAME, SENDS_NAME, SPOOL_NAME, Spool, finish_spool
from crossover.client.wire import RequestBook

FORMAT = 1


def record(
    endpoint: Endpoint,
    prompts: Iterable[Mapping[str, Any]],
    load: Load,
    sampling: Sampling,
    out_dir: Path,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> None:
    """Sends a load and records what comes back, uninterpreted, into `out_dir`.

    Writes `reads.parquet` (request, t_kernel_ns, t_user_ns, bytes), `sends.parquet` (a row a request) and
    `recording.json` (what was asked, clocks, fitness). Requests that fail are part of the record, whatever
    becomes of the server. If the recorder is killed, `recording.spool` holds what was read, and `interpret`
    reads it.

    Args:
        prompts: lines of a prompts file, read once; used again in order where the load needs more.
        on_progress: called about twice a second from within the loop; it must return quickly.
        should_stop: asked about twenty times a second; when true, requests under way are given up as
            `stopped`.

    Raises:
        InputError: a prompt does not fit the API.
        CrossoverError: the host's name cannot be resolved.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    for name in (READS_NAME, SENDS_NAME, SPOOL_NAME):
        (out_dir / name).unlink(missing_ok=True)
    raise_file_limit()
    book = RequestBook(endpoint, prompts, sampling)
    target = Target(endpoint)
    about = _about(endpoint, load, sampling, len(book))
    _write(out_dir, about)
    spool = Spool(out_dir / SPOOL_NAME)
    recorder = Recorder(target, book, make_schedule(load, len(book)), load, spool, on_progress, should_stop)
    try:
        observed = recorder.run()
    finally:
        spool.close()
    finish_spool(out_dir)
    about |= {"state": "finished", "observed": asdict(observed)}
    _write(out_dir, about | {"fitness": fitness_of(out_dir, about, None, FitnessLimits())})


def _about(endpoint: Endpoint, load: Load, sampling: Sampling, prompts: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "state": "running",
        "clock": "user" if endpoint.tls else "kernel",
        "endpoint": {"base_url": endpoint.base_url, "model": endpoint.model, "api": endpoint.api},
        "load": asdict(load),
        "sampling": asdict(sampling),
        "prompts": prompts,
    }


def _write(out_dir: Path, about: Mapping[str, Any]) -> None:
    partial = out_dir / f"{RECORDING_NAME}.partial"
    partial.write_text(json.dumps(about, indent=1))
    partial.replace(out_dir / RECORDING_NAME)
