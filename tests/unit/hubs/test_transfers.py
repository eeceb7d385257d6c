"""Transfers that are broken off, and hubs and networks that answer otherwise than they should, through the real
clients: what came is kept, the rest is asked for, and no wrong byte and no token goes astray."""

from __future__ import annotations

import hashlib
import random
import signal
import time

import pytest
from fetching_helpers import COMMIT, FILES, REPO, SHARD, TOKENS, arrives, fails, fetch_elsewhere, files_of
from local_hub import Fault

from crossover.hubs import Snapshot, get_hub
from crossover.hubs.cache import place_of
from crossover.hubs.kinds import huggingface

BIG = "big.bin"
BIG_BYTES = 60_000_000
# What may be under way between a file that is being written and its hub: the client's block and the socket's buffers.
IN_FLIGHT_BYTES = 20_000_000


@pytest.fixture(params=sorted(TOKENS))
def name(request):
    return request.param


@pytest.fixture
def big(hub):
    """A file of 60 MB in the repository, which comes slowly the first time; returns its content."""
    content = random.Random(7).randbytes(BIG_BYTES)
    hub.repositories[REPO].commits[COMMIT][BIG] = content
    hub.faults, hub.pause_s = [Fault("slow", BIG, times=1)], 0.4
    return content


def under_way(name):
    staging = place_of(Snapshot(name, REPO, COMMIT)).staging
    return staging / huggingface.UNDER_WAY / BIG if name == "huggingface" else staging / f"{BIG}.incomplete"


def stop_in_the_middle(name, number=signal.SIGKILL):
    """Starts a fetch in another process, ends it when some of the big file is there, and returns how much was."""
    process, file = fetch_elsewhere(name), under_way(name)
    deadline = time.monotonic() + 30
    while not (file.exists() and file.stat().st_size > BIG_BYTES // 6):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode != 0
    there = file.stat().st_size
    assert BIG_BYTES // 6 < there < BIG_BYTES
    return there


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_fetch_that_is_killed_inside_a_file_asks_for_the_rest_alone(hub, name, big, number):
    there = stop_in_the_middle(name, number)
    weights = arrives(hub, name)
    assert hub.downloads(BIG) == [None, f"bytes={there}-"]
    first, second = hub.sent_of(BIG)  # the first may still be under way to nobody
    assert second == BIG_BYTES - there
    assert first - there < IN_FLIGHT_BYTES
    assert weights.manifest[BIG].sha256 == hashlib.sha256(big).hexdigest()


def test_a_fetch_may_be_killed_as_often_as_one_likes(hub, name, big):
    hub.faults = [Fault("slow", BIG, times=2)]
    first = stop_in_the_middle(name)
    under_way(name).write_bytes(big[: first // 2])  # as if the second came to less than the first
    second = stop_in_the_middle(name)
    arrives(hub, name)
    assert hub.downloads(BIG) == [None, f"bytes={first // 2}-", f"bytes={second}-"]


def test_what_was_kept_of_a_file_may_be_wrong(hub, name, big):
    there = stop_in_the_middle(name)
    # As after a power cut: the length was written, the bytes were not.
    under_way(name).write_bytes(bytes(there))
    arrives(hub, name)
    assert hub.downloads(BIG)[:2] == [None, f"bytes={there}-"]
    assert hub.downloads(BIG)[-1] is None


@pytest.mark.parametrize("extra", [0, 5], ids=["all of it", "more than it"])
def test_all_of_a_file_was_there_but_not_yet_in_its_place(hub, name, big, extra):
    stop_in_the_middle(name)
    under_way(name).write_bytes(big + bytes(extra))
    arrives(hub, name)
    assert hub.downloads(BIG) == [None] * (2 if extra else 1)


def test_a_server_that_ignores_ranges_sends_the_whole_file_again(hub, name, big):
    there = stop_in_the_middle(name)
    hub.faults = [Fault("no ranges", BIG)]
    arrives(hub, name)
    assert hub.downloads(BIG) == [None, f"bytes={there}-"]
    assert hub.sent_of(BIG)[1] == BIG_BYTES


@pytest.mark.usefixtures("quick")
def test_a_server_that_ignores_ranges_and_cuts_gives_no_mixture(hub, name):
    hub.faults = [Fault("no ranges", SHARD), Fault("cut", SHARD, times=2)]
    arrives(hub, name)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fault", ["longer", "shorter", "pointer"])
def test_a_file_of_another_size_than_listed_is_an_error(hub, name, fault):
    hub.faults = [Fault(fault, SHARD)]
    line = fails(hub, name, "corrupt")
    assert SHARD in line
    assert str(len(FILES[SHARD])) in line


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fault", ["longer", "shorter", "pointer"])
def test_a_file_of_another_size_once_is_fetched_again(hub, name, fault):
    hub.faults = [Fault(fault, SHARD, times=1)]
    arrives(hub, name)


@pytest.mark.usefixtures("quick")
def test_a_file_that_became_shorter_than_what_came_of_it(hub, name, big):
    stop_in_the_middle(name)
    hub.repositories[REPO].commits[COMMIT][BIG] = big[: BIG_BYTES // 8]
    arrives(hub, name)


@pytest.mark.usefixtures("quick")
def test_the_storage_of_a_hub_is_shown_no_token(hub, name, monkeypatch):
    hub.repositories[REPO].gated = True
    monkeypatch.setenv(TOKENS[name], hub.token)
    hub.faults = [Fault("elsewhere"), Fault("cut", SHARD, times=1)]
    arrives(hub, name)
    assert len(hub.credentials) >= len(files_of(hub)) + 1
    assert set(hub.credentials) == {(None, None)}


@pytest.mark.usefixtures("quick")
def test_another_host_that_a_hub_sends_us_to_is_shown_no_token_when_asked_for_branches_and_files(
    hub, name, monkeypatch
):
    monkeypatch.setenv(TOKENS[name], hub.token)
    hub.faults = [Fault("moved")]
    ours = get_hub(name)
    assert ours.resolve(REPO, ours.default_branch) == COMMIT
    assert {file.name for file in ours.files(REPO, COMMIT)} == set(FILES)
    assert len(hub.credentials) >= 2
    assert set(hub.credentials) == {(None, None)}


@pytest.mark.usefixtures("quick")
def test_a_storage_that_refuses_is_not_called_gated(hub):
    hub.faults = [Fault("elsewhere"), Fault("refused there")]
    assert "storage behind the hub" in fails(hub, "huggingface", "refused")


@pytest.mark.usefixtures("quick")
def test_what_is_kept_in_block_storage_comes_over_plain_http(hub):
    hub.repositories[REPO].xet = True
    arrives(hub, "huggingface")
    assert hub.downloads(SHARD) == [None]


@pytest.mark.usefixtures("quick")
def test_files_beyond_what_the_hub_gives_out_by_ranges_come_in_one_go(hub, monkeypatch):
    monkeypatch.setattr(huggingface, "LARGEST_BY_RANGE_BYTES", 30_000)  # the first shard has 40 kB, the second 20 kB
    hub.faults = [Fault("cut", SHARD, times=1), Fault("flipped", SHARD, times=2)]
    arrives(hub, "huggingface")
    assert len(hub.downloads(SHARD)) == 3
