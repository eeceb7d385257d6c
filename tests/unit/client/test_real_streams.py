"""Streams that real engines sent, with their times.

The expected values were counted in the raw lines with grep (an output field followed by a non-empty string), not by any
code of the package.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import START_NS, event

from crossover import metrics
from crossover.client import interpret

CASES = Path(__file__).parents[2] / "cases"
STREAMS = sorted(folder.name for folder in CASES.glob("stream-*"))


def reads_of(case: Path) -> list[tuple[float, bytes]]:
    """Lines of `seconds TAB repr(line)`, each as a read of its own."""
    reads = []
    for line in (case / "input.txt").read_text().splitlines():
        seconds, _, text = line.partition("\t")
        reads.append((float(seconds) * 1e3, event(ast.literal_eval(text).removeprefix("data: "))))
    reads.append((reads[-1][0], b"0\r\n\r\n"))
    return reads


@pytest.mark.parametrize("name", STREAMS)
def test_a_real_stream(recording: Callable[..., Path], name: str) -> None:
    golden = json.loads((CASES / name / "golden.json").read_text())
    found = interpret(recording(reads_of(CASES / name)))
    row = found.requests.iloc[0]
    kinds = found.events["kind"].value_counts()
    assert row["status"] == "ok"
    assert len(found.events) == golden["events"]
    assert (kinds["content"], kinds["reasoning"]) == (golden["content"], golden["reasoning"])
    assert (row["prompt_tokens"], row["completion_tokens"]) == (golden["prompt_tokens"], golden["completion_tokens"])
    # The first event of every one of them is a role with an empty string: it is no output.
    assert found.events["kind"].tolist()[0] == "role"
    result = metrics.summarise(found.events, found.requests)
    assert result["ttft_s"]["mean"] == pytest.approx(golden["first_output_s"])
    assert result["ttfot_s"]["mean"] == (
        None if golden["first_content_s"] is None else pytest.approx(golden["first_content_s"])
    )
    assert result["e2e_s"]["mean"] == pytest.approx(golden["last_output_s"])
    assert result["tpot_s"]["mean"] == pytest.approx(
        (golden["last_output_s"] - golden["first_output_s"]) / (golden["completion_tokens"] - 1)
    )
    # Fewer output events than tokens, and none says how many it carries: ITL is not known.
    assert result["itl_s"]["mean"] is None
    assert found.events["t_kernel_ns"].iloc[0] >= START_NS


def test_all_streams_are_there() -> None:
    assert len(STREAMS) == 5
