"""Log lines of a container: their times, and what is cut out of them."""

from __future__ import annotations

import re
from pathlib import Path

from crossover.launchers import container_log
from crossover.launchers.container_log import LogFollower


def follow(tmp_path, *streams, secrets=None):
    """Follows streams one after the other; the log is over when none is left."""
    path, left = tmp_path / "engine.log", list(streams)
    follower = LogFollower(lambda since_s: left.pop(0), path, secrets or {}, lambda: not left)
    follower.start()
    follower.join(5)
    return path.read_text().splitlines()


def test_lines_cut_anywhere_are_joined_and_fine_stamps_are_kept(tmp_path):
    chunks = [b"2026-11-29T20:53:26.123456789Z on", b"e\n2026-11-29T20:53:27.000000001Z two"]
    assert follow(tmp_path, chunks) == ["2026-11-29T20:53:26.123456789Z one", "2026-11-29T20:53:27.000000001Z two"]


def test_coarse_stamps_are_replaced_by_the_time_of_arrival(tmp_path):
    (line,) = follow(tmp_path, [b"2001-01-01T20:53:26+00:00 one\n"])
    assert re.fullmatch(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z one", line)


def test_secrets_are_named_not_shown(tmp_path):
    lines = follow(tmp_path, [b"2026-11-29T20:53:26.123456789Z key=s3cret!\n"], secrets={"API_KEY": "s3cret!"})
    assert lines == ["2026-11-29T20:53:26.123456789Z key=[API_KEY]"]


def test_a_broken_stream_ends_the_log_and_nothing_else(tmp_path):
    def broken():
        yield b"2026-11-29T20:53:26.123456789Z one\n"
        raise OSError("gone")

    assert follow(tmp_path, broken()) == ["2026-11-29T20:53:26.123456789Z one"]


def test_a_stream_that_is_cut_is_taken_up_behind_the_lines_that_came(tmp_path, monkeypatch):
    """A daemon that is started again sends the lines of the last second anew, and those that were said meanwhile."""
    monkeypatch.setattr(container_log, "_AGAIN_S", 0.01)
    at = b"2026-11-29T20:53:2"
    first = [at + b"6.100000000Z one\n" + at + b"6.200000000Z two\n" + at + b"6.200000000Z tw"]
    again = [at + b"6.100000000Z one\n" + at + b"6.200000000Z two\n" + at + b"6.200000000Z twice\n" + at + b"7.0", b""]
    last = [at + b"6.200000000Z two\n" + at + b"6.200000000Z twice\n" + at + b"7.000000000Z three\n"]
    said = [line.partition(" ")[2] for line in follow(tmp_path, first, again, last)]
    assert said == ["one", "two", "twice", "three"]


def test_lines_are_asked_for_from_the_second_of_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setattr(container_log, "_AGAIN_S", 0.01)
    asked = []

    def connect(since_s):
        asked.append(since_s)
        return [b"2026-11-29T20:53:26.900000000Z one\n"]

    follower = LogFollower(connect, tmp_path / "engine.log", {}, lambda: len(asked) == 2)
    follower.start()
    follower.join(5)
    assert asked == [None, 1795985606]  # 2026-11-29T20:53:26Z
    assert len((tmp_path / "engine.log").read_text().splitlines()) == 1


def test_what_a_full_disk_does_not_take_is_counted_and_the_rest_is_written(tmp_path):
    log = tmp_path / "engine.log"
    line = b"2026-11-29T20:53:26.123456789Z " + b"x" * 9 + b"\n"  # 31 + 9 + 1 bytes
    follower = LogFollower(lambda since_s: [], log, {}, lambda: True)
    with Path("/dev/full").open("ab", buffering=0) as full:
        follower._write(full, [line[:-1]])
    assert follower.lost_bytes == 41
    with log.open("ab", buffering=0) as file:
        follower._write(file, [line[:-1].replace(b"56789Z", b"56790Z")])
    assert (follower.lost_bytes, log.stat().st_size) == (41, 41)
