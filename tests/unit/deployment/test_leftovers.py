"""What killed runs left is set down by the next one, unless its run is still about it."""

from __future__ import annotations

import io
import json

import pytest
from filelock import FileLock

from crossover.deployment.progress import PlainReporter
from crossover.deployment.run import clear_leftovers
from crossover.launchers.records import new_record, write_record
from crossover.recipes import Store

STATE = {
    "server_key": "s1", "server": {}, "clock_scale": 1, "simulated": True, "timeline": {"cells": []}, "observed": {},
    "server_info": {},
}  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture
def folder(store):
    """The live folder of a launch whose server has ended."""
    folder = store.root / "live" / "s1" / "launch"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps(STATE))
    (folder / "engine.log").write_text("2026-11-29T20:53:26.123456789Z last words\n")
    return folder


def clear(store, held="s2"):
    clear_leftovers(store.root / "live", store, PlainReporter(io.StringIO(), "k1"), held)


def logs(store):
    return [path.read_text() for path in store.root.glob("deployment/*/engine.log")]


@pytest.mark.parametrize("held", ["s1", "s2"])
def test_a_launch_whose_run_is_gone_is_set_down(store, folder, held):
    clear(store, held)
    assert not folder.exists()
    assert len(logs(store)) == 1


def test_one_that_its_own_run_is_setting_down_is_left_to_it(store, folder):
    """Between the end of its server and the end of its folder another deployment begins."""
    with FileLock(store.root / "live" / "s1.lock"):
        clear(store)
        assert folder.exists()
        assert logs(store) == []
    clear(store)
    assert len(logs(store)) == 1


def test_one_whose_server_runs_is_left_alone(store, folder):
    write_record(new_record("process", "k1"), folder)
    clear(store)
    assert folder.exists()
