"""Parts of a log are cut at whole lines."""

from crossover.deployment.logfile import copy_parts, size


def test_parts_are_whole_lines(tmp_path) -> None:
    log = tmp_path / "engine.log"
    assert size(log) == 0
    log.write_bytes(b"start\nready\nline of another cell\nmine 1\nmine 2\nunfinished")
    target = tmp_path / "part.log"
    ready = len(b"start\nready\n")
    # The range begins inside "line of another cell", which the part before would hold.
    copy_parts(log, [(0, ready), (ready + 3, size(log))], target)
    assert target.read_bytes() == b"start\nready\nmine 1\nmine 2\nunfinished\n"


def test_an_empty_part_is_empty(tmp_path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(b"start\n")
    copy_parts(log, [(0, 0), (6, 6)], tmp_path / "part.log")
    assert (tmp_path / "part.log").read_bytes() == b""
