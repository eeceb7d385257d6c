"""Log lines of a container: their times, and what is cut out of them."""

from __future__ import annotations

import re

from crossover.launchers.container_log import LogFollower


def follow(tmp_path, chunks, secrets=None):
    path = tmp_path / "engine.log"
    follower = LogFollower(lambda: iter(chunks), path, secrets or {})
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
    lines = follow(tmp_path, [b"2026-11-29T20:53:26.123456789Z key=s3cret!\n"], {"API_KEY": "s3cret!"})
    assert lines == ["2026-11-29T20:53:26.123456789Z key=[API_KEY]"]


def test_a_broken_stream_ends_the_log_and_nothing_else(tmp_path):
    def broken():
        yield b"2026-11-29T20:53:26.123456789Z one\n"
        raise OSError("gone")

    assert follow(tmp_path, broken()) == ["2026-11-29T20:53:26.123456789Z one"]
