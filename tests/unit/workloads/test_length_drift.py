"""Random ids that are decoded and encoded again drift in length (4000 asked, 4106 counted); ours do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from crossover.workloads import build, read_prompts
from crossover.workloads.streams import Stream

(CASE,) = (Path(__file__).parents[2] / "cases" / "clients").glob("64-*")


def test_the_drift_that_was_found() -> None:
    golden = json.loads((CASE / "golden.json").read_text("utf-8"))
    drift = [100 * (got - asked) / asked for asked, got in zip(golden["asked"], golden["counted"], strict=True)]
    assert drift == pytest.approx(golden["drift_percent"], abs=1e-5)
    text = (CASE / "input.txt").read_text("utf-8")
    assert all(str(number) in text for number in golden["counted"])


def test_the_usual_way_drifts_and_ours_does_not(byte_bpe: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(byte_bpe))
    naive = []
    for number in range(10):
        ids = [int(token) + 1 for token in Stream("naive", number).below(899, 400)]
        naive.append(len(tokenizer.encode(tokenizer.decode(ids), add_special_tokens=False)))
    assert sum(length != 400 for length in naive) >= 9

    spec = {"dataset": "random", "input_tokens": 400, "output_tokens": 1, "requests": 10}
    build({**spec, "tokenizer": {"kind": "file", "path": str(byte_bpe)}}, tmp_path)
    ours = [len(tokenizer.encode(prompt["text"], add_special_tokens=False)) for prompt in read_prompts(tmp_path)]
    assert ours == [400] * 10
