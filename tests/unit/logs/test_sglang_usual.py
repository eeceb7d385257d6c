# ruff: noqa: E501  (log lines are as long as they are)
"""Batch lines of each generation go the short way, and give what the long way gives."""

from __future__ import annotations

import pytest

from crossover.logs import read_log
from crossover.logs.bulk import Layout, ShapeReader
from crossover.logs.reader import tables

HEAD = "[2026-01-04 04:06:1{} DP3 TP3 EP3] "
FORMS = {
    "0.4.6 prefill": "Prefill batch. #new-seq: 5, #new-token: 8192, #cached-token: 20050, token usage: 0.34, #running-req: 34, #queue-req: 1{}",
    "0.5.3 prefill, ends with a comma": "Prefill batch. #new-seq: 1, #new-token: 103, #cached-token: 1, token usage: 0.00, #running-req: 0, #queue-req: 1{}, ",
    "0.5.6 disaggregated prefill": "Prefill batch, #new-seq: 1, #new-token: 4096, #cached-token: 0, token usage: 0.20, #running-req: 0, #queue-req: 1{}, #prealloc-req: 0, #inflight-req: 3, input throughput (token/s): 5000.25, ",
    "0.5.12 prefill, sliding window": "Prefill batch, #new-seq: 1, #new-token: 128, #cached-token: 0, full token usage: 0.10, swa token usage: 0.04, #running-req: 0, #queue-req: 1{}, #pending-token: 7, npu graph: False, input throughput (token/s): 13.53",
    "0.5.18 disaggregated prefill": "Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 1{}, #pending-token: 0, #bootstrap-req: 0, #inflight-req: 1, #optimistic-req: 0, cuda graph: False, input throughput (token/s): 7.29",
    "0.4.4 decode, no graph": "Decode batch. #running-req: 2, #token: 4078, token usage: 0.00, gen throughput (token/s): 447.31, #queue-req: 1{}",
    "0.5.3 decode, ends with a comma": "Decode batch. #running-req: 1, #token: 137, token usage: 0.00, cuda graph: True, gen throughput (token/s): 1.06, #queue-req: 1{}, ",
    "0.5.6 disaggregated decode": "Decode batch, #running-req: 1, #token: 41536, token usage: 0.01, accept len: 2.20, accept rate: 0.73, pre-allocated usage: 0.10, #prealloc-req: 4, #transfer-req: 1, #retracted-req: 2, cpu graph: True, gen throughput (token/s): 0.40, #queue-req: 1{}, ",
    "0.5.12 decode, sliding window": "Decode batch, #running-req: 1, #full token: 4722, full token usage: 0.03, #swa token: 545, swa token usage: 0.12, accept len: 3.78, accept rate: 0.19, cap len: 6.00, cuda graph: True, gen throughput (token/s): 54.21, #queue-req: 1{}",
}


@pytest.mark.parametrize("name", FORMS)
def test_the_form_of_each_generation_is_taken_and_gives_the_same(name: str) -> None:
    """The first line of a shape goes the long way, those after it the short one; they differ in time and queue only."""
    lines = [(HEAD + FORMS[name]).format(at, at) for at in range(4)]
    shapes = ShapeReader(tables())
    text = "\n".join(lines)
    shapes.places(text, lines)
    assert all(isinstance(shape, Layout) for shape in shapes.places(text, lines))
    report = read_log(lines, "sglang")
    rows = list(report.prefill_batches or report.decode_batches)
    assert [row.queued for row in rows] == [10, 11, 12, 13]
    assert [row.t for row in rows] == [f"2026-01-04T04:06:1{at}" for at in range(4)]
    assert len({row._replace(t=None, rank=None, queued=None) for row in rows}) == 1
    assert report.unparsed == 0
