"""Whether the run that started a server lives: seen here, or told by what it writes where it cannot be seen."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from crossover.launchers import LaunchError, reap
from crossover.launchers.records import RECORD_NAME, SILENT_S, new_record, write_record


def aged(folder, seconds):
    for path in folder.iterdir():
        os.utime(path, (path.stat().st_mtime - seconds,) * 2)


def test_a_run_of_this_machine_is_looked_for_among_its_processes(tmp_path):
    record = new_record("docker", "k1")
    assert record.starter_lives(tmp_path)
    assert not replace(record, starter_ticks=1).starter_lives(tmp_path)  # its number is another process's now


@pytest.mark.parametrize("elsewhere", [{"boot_id": "another"}, {"pid_space": "pid:[1]"}])
def test_a_run_that_cannot_be_seen_from_here_lives_as_long_as_it_writes(tmp_path, elsewhere):
    """On another machine that shares the store, or in another container of this one."""
    record = replace(new_record("docker", "k1"), **elsewhere)
    write_record(record, tmp_path)
    (tmp_path / "telemetry.jsonl").touch()
    assert record.starter_lives(tmp_path)
    aged(tmp_path, SILENT_S + 10)
    assert not record.starter_lives(tmp_path)
    (tmp_path / "telemetry.jsonl").write_text("{}")
    assert record.starter_lives(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD_NAME, "telemetry.jsonl"]


def test_what_cannot_be_ended_is_told_with_the_deployment_and_the_record_that_names_it(tmp_path, monkeypatch):
    record = replace(new_record("gpustack", "k1", server="http://s", token_env="NOT_SET", name="n"), starter_ticks=1)
    write_record(record, tmp_path)
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(LaunchError) as caught:
        reap(tmp_path)
    told = str(caught.value)
    assert "a killed run left of deployment k1 (gpustack) cannot be ended" in told
    assert "the environment variable NOT_SET is not set" in told
    assert told.endswith(f"delete {tmp_path / RECORD_NAME}")
    assert (tmp_path / RECORD_NAME).exists()
