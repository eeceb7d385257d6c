# ruff: noqa: E501  (log lines are as long as they are)
"""The line source: files, clocks, ranks, escapes, wrapped lines."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
from pathlib import Path

import pytest

from crossover.errors import InputError
from crossover.logs.lines import (
    clean,
    last_boundary,
    message_of,
    parse_any_head,
    parse_head,
    read_blocks,
    seconds_of,
)

TEXT = "first line\nzwölf █ Zeilen\nlast without newline"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("plain.log", TEXT.encode()),
        ("packed.log.gz", gzip.compress(TEXT.encode())),
        ("packed.xz", lzma.compress(TEXT.encode())),
        ("windows.log", TEXT.encode("utf-16")),
        ("marked.log", b"\xef\xbb\xbf" + TEXT.encode()),
    ],
    ids=["plain", "gzip", "xz", "utf-16", "marked"],  # gzip's bytes hold the time, and each worker collects for itself
)
def test_files_of_any_form_give_the_same_text(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert "".join(read_blocks(tmp_path / name)) == TEXT


def test_bytes_that_are_no_text_do_not_raise(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(range(256)) * 20)
    assert "\ufffd" in "".join(read_blocks(tmp_path / "log"))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert "".join(read_blocks("-")) == TEXT


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.log: cannot be read: No such file"):
        list(read_blocks(tmp_path / "nothing.log"))


def test_a_cut_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(gzip.compress(TEXT.encode() * 50)[:-12])
    with pytest.raises(InputError, match="cannot be read"):
        list(read_blocks(tmp_path / "cut.gz"))


def test_blocks_are_cut_where_an_entry_ends() -> None:
    text = "INFO 01-01 00:00:00 one\nthat goes on\nINFO 01-01 00:00:01 two\nthat may go on\n"
    assert text[last_boundary(text) :] == "INFO 01-01 00:00:01 two\nthat may go on\n"


@pytest.mark.parametrize(
    ("head", "t", "outer", "rank", "process", "level"),
    [
        ("INFO 02-24 11:16:41 metrics.py:349] ", "--02-24T11:16:41", None, None, None, "INFO"),
        ("(EngineCore_DP0 pid=1379) INFO 11-04 12:25:41 [kv.py:1087] ", "--11-04T12:25:41", None, {"dp": 0}, "EngineCore_DP0", "INFO"),
        ("(Worker_DP1_TP3_DCP2_EP3 pid=9) WARNING 11-04 12:25:41 [a/b.py:7] ", "--11-04T12:25:41", None, {"dp": 1, "tp": 3, "dcp": 2, "ep": 3}, "Worker_DP1_TP3_DCP2_EP3", "WARNING"),
        ("(VllmWorker rank=3 pid=44) INFO 03-01 01:02:03 [x.py:1] ", "--03-01T01:02:03", None, {"tp": 3}, "VllmWorker", "INFO"),
        ("(EngineCore_DP0 pid=1379) 2025-11-04 12:25:41,406 - INFO - autotuner.py:256 - ", "2025-11-04T12:25:41.406", None, {"dp": 0}, "EngineCore_DP0", "INFO"),
        ("[2025-05-31 18:31:21 DP0 TP0] ", "2025-05-31T18:31:21", None, {"dp": 0, "tp": 0}, None, None),
        ("[2026-06-27 10:02:58 PP0 ATTN_CP1 TP1 EP1] ", "2026-06-27T10:02:58", None, {"pp": 0, "attn_cp": 1, "tp": 1, "ep": 1}, None, None),
        ("[16:43:29 TP0] ", "T16:43:29", None, {"tp": 0}, None, None),
        ("[gpu_id=1] ", None, None, {"tp": 1}, None, None),
        ("2026-11-29T20:53:26.123456789Z INFO 11-29 12:53:26 [a.py:1] ", "--11-29T12:53:26", "2026-11-29T20:53:26.123456789Z", None, None, "INFO"),
        ("2026-11-29T20:53:26.123456789Z stderr F ", "2026-11-29T20:53:26.123456789Z", "2026-11-29T20:53:26.123456789Z", None, None, None),
        ("Aug 25 14:58:34 host vllm[17578]: (EngineCore pid=17578) INFO 08-25 14:58:35 [a.py:1] ", "--08-25T14:58:35", "--08-25T14:58:34", None, "EngineCore", "INFO"),
        ("[rank1]:[W812 16:00:28.643448608 CUDACachingAllocator.cpp:3933] ", "--08-12T16:00:28.643448608", None, {"tp": 1}, None, None),
        ("Capturing: 100%|███| 52/52 [00:04<00:00, 10.83it/s][2025-11-30 12:50:15] ", "2025-11-30T12:50:15", None, None, None, None),
        ("", None, None, None, None, None),
    ],
)  # fmt: skip
def test_heads(
    head: str, t: str | None, outer: str | None, rank: object, process: str | None, level: str | None
) -> None:
    found = parse_head(head)
    assert (found.t, found.rank, found.process, found.level) == (t, rank, process, level)
    if "Capturing" not in head:  # the bar's own clock is no outer clock, but it looks like one
        assert found.t_outer == outer


@pytest.mark.parametrize(
    "head",
    [
        "INFO 02-24 11:16:41 metrics.py:349] ",
        "(APIServer pid=1) INFO 02-24 11:16:41 [loggers.py:273] ",
        "[2025-05-31 18:31:21] ",
        "[2025-05-31 18:31:21 TP12] ",
    ],
)
def test_the_short_way_gives_what_the_long_one_gives(head: str) -> None:
    assert parse_head(head) == parse_any_head(head)


def test_escapes_go_and_carriage_returns_break_lines() -> None:
    assert clean("\x1b[1;33mwarn\x1b[0m [0mplain^[[32m\n") == "warn plain\n"
    assert clean("bar 1/2\rbar 2/2\r\nnext\n") == "bar 1/2\nbar 2/2\nnext\n"


def test_docker_json_becomes_a_stamped_line() -> None:
    entry = json.dumps({"log": "INFO \u001b[1mhello\n", "stream": "stdout", "time": "2026-11-29T20:53:26.1Z"})
    assert clean(entry + "\n") == "2026-11-29T20:53:26.1Z INFO hello\n"
    assert clean('{"log": broken\n') == '{"log": broken\n'


def test_boxes_of_terminal_programs_go() -> None:
    assert clean("│ one   │\n│ two   │\n") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("t", "seconds"),
    [("T00:01:02", 62.0), ("--01-02T00:00:01.5", (31 + 2) * 86400 + 1.5), (None, None), ("nonsense", None)],
)
def test_seconds_are_for_differences(t: str | None, seconds: float | None) -> None:
    assert seconds_of(t) == seconds


def test_seconds_agree_with_and_without_a_fraction() -> None:
    assert seconds_of("2026-07-01T12:34:56") == seconds_of("2026-07-01T12:34:56.0")


@pytest.mark.parametrize(
    "line",
    [
        "(EngineCore pid=5) INFO 07-01 00:00:00 [core.py:7] the message",
        "│ INFO 07-01 00:00:00 core.py:7] the message      │",
        "2026-07-01T00:00:00.1Z stdout F [2026-07-01 00:00:00 TP0] the message",
    ],
)
def test_messages_have_no_prefix(line: str) -> None:
    assert message_of(line) == "the message"
