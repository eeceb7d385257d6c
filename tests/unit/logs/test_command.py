"""`crossover parse-log` as a person types it: several files, tables, standard input, a file that grows."""

# ruff: noqa: E501 (lines stand as the engine prints them)

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossover.cli import main
from crossover.commands import parse_log

CASES = Path(__file__).parents[2] / "cases"
VLLM = str(CASES / "23-vllm-saturated-bursty-prefill" / "input.txt")
SGLANG = str(CASES / "42-sglang-retraction-burst-0.5.18" / "input.txt")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_several_files_make_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse-log", VLLM, VLLM, "--csv"]) == 0
    text = capsys.readouterr().out
    assert text.count("file,t,") == 1
    assert len(rows_of(text)) == 10
    assert {row["file"] for row in rows_of(text)} == {VLLM}


def test_a_file_without_rows_of_the_table_says_which_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse-log", VLLM, SGLANG, "--csv"]) == 0
    captured = capsys.readouterr()
    assert {row["file"] for row in rows_of(captured.out)} == {VLLM}
    assert f"{SGLANG}: no rows of intervals; it has decode_batches (--csv decode_batches)" in captured.err


def test_columns_do_not_depend_on_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """The first incident of this log has no end of a burst, the second has."""
    assert main(["parse-log", VLLM, "--csv", "incidents"]) == 0
    none = capsys.readouterr().out.splitlines()[0]
    assert main(["parse-log", SGLANG, "--csv", "incidents"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0] == none
    (found,) = [row for row in rows_of(text) if row["kind"] == "retraction"]
    assert (found["count"], found["t"], found["t_last"]) == ("5", "2026-09-13T16:06:07", "2026-09-13T16:06:08")


def test_a_file_right_after_csv_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse-log", "--csv", VLLM]) == 0
    assert len(rows_of(capsys.readouterr().out)) == 5
    assert main(["parse-log", VLLM, "--csv", "interval"]) == 2
    assert "there is no table 'interval'; give one of pools, memory, intervals" in capsys.readouterr().err


def test_a_growing_file_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is new is printed once, in words; a file that begins anew is read anew; the cause comes when it is there."""
    log = tmp_path / "engine.log"
    engine = (
        "INFO 05-19 10:13:{} [loggers.py:271] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
        "{}.5 tokens/s, Running: 18 reqs, Waiting: 43 reqs, GPU KV cache usage: 95.9%, Prefix cache hit rate: 0.0%\n"
    )
    core = "(EngineCore pid=9) ERROR 05-19 10:14:02 [core.py:1374] "
    steps: Iterator[str | None] = iter(
        [
            engine.format(20, 11) + engine.format(30, 12),
            core + "EngineCore encountered a fatal error.\n" + core + "RuntimeError: the real reason\n" + core + ".\n",
            None,
        ]
    )
    log.write_text(engine.format(10, 10) * 2)

    def sleep(seconds: float) -> None:
        assert seconds == parse_log._POLL_S
        more = next(steps)
        if more is None:
            raise KeyboardInterrupt
        with log.open("a") as stream:
            stream.write(more)

    monkeypatch.setattr(parse_log.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        parse_log._follow([str(log)], "auto")
    lines = capsys.readouterr().out.splitlines()
    wanted = "running 18, waiting 43, prefill 0 tok/s, decode 11.5 tok/s, KV cache 95.9 %"
    assert [line for line in lines if "decode 11.5" in line] == [f"05-19 10:13:20       {wanted}"]
    assert [line for line in lines if line.startswith("FAILED")] == [
        "FAILED engine_died: RuntimeError: the real reason"
    ]


def test_a_file_that_was_cut_is_read_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "engine.log"
    log.write_text("WARNING 05-19 10:13:10 [x.py:1] Using a slow tokenizer.\n" * 3)
    steps: Iterator[str | None] = iter(["WARNING 05-19 11:13:10 [x.py:1] Using a slow tokenizer.\n", "\n", None])

    def sleep(_: float) -> None:
        more = next(steps)
        if more is None:
            raise KeyboardInterrupt
        log.write_text(more + "INFO 05-19 11:13:11 [x.py:1] .\n")

    monkeypatch.setattr(parse_log.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        parse_log._follow([str(log)], "auto")
    text = capsys.readouterr().out
    assert f"-- {log} begins anew --" in text
    assert "05-19 11:13:10" in text
