"""A ground-truth server in a thread, and recordings made by hand."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

for folder in (Path(__file__).parent, Path(__file__).parents[3] / "benchmarks"):
    sys.path.insert(0, str(folder))

from handmade import HEAD, START_NS  # noqa: E402

from crossover.client.spool import DUE, END, NO_STAMP, RECORDING_NAME, SENT, SENT_ALL, SPOOL_NAME, Spool, finish_spool  # noqa: E402
from ground_truth import GroundTruthServer, serve_in_thread  # noqa: E402


@pytest.fixture
def server() -> Iterator[GroundTruthServer]:
    """A running server; models name scenarios."""
    with serve_in_thread() as running:
        yield running


@pytest.fixture
def recording(tmp_path: Path) -> Callable[..., Path]:
    """Makes a recording of given reads, (ms after the send, bytes) each, a list of them a request."""

    def make(*requests: list[tuple[float, bytes]], asked: int | None = None, end: str = "complete") -> Path:
        spool = Spool(tmp_path / SPOOL_NAME)
        for number, reads in enumerate(requests):
            plan = {"prompt_index": number, "request_id": f"r{number}", "output_tokens_asked": asked}
            spool.add_event(DUE, number, START_NS, json.dumps(plan).encode())
            spool.add_event(SENT, number, START_NS)
            spool.add_event(SENT_ALL, number, START_NS + 1000)
            for position, (ms, data) in enumerate(reads):
                kernel = START_NS + round(ms * 1e6)
                stamp = NO_STAMP if ms < 0 else struct.pack("@ll", *divmod(kernel, 1_000_000_000))
                head = HEAD if position == 0 and not data.startswith(b"HTTP/") else b""
                spool.reads.append((number, stamp, kernel + 20_000, head + data))
            spool.add_event(END, number, START_NS + round(reads[-1][0] * 1e6) if reads else START_NS, end.encode())
        spool.close()
        finish_spool(tmp_path)
        about = {"state": "finished", "clock": "kernel", "observed": {}}
        (tmp_path / RECORDING_NAME).write_text(json.dumps(about))
        return tmp_path

    return make
