"""The real clients against a hub that misbehaves: every fault ends in the right bytes or in the right error."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fetching_helpers import COMMIT, OTHER, REPO, SHARD, TOKENS, arrives, fails, fetch_elsewhere, files_of
from filelock import FileLock
from local_hub import Fault, Repository

from crossover import hubs
from crossover.errors import is_full
from crossover.hubs import HubError, Snapshot, fetching
from crossover.hubs.cache import place_of
from crossover.hubs.presence import remembered

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(params=sorted(TOKENS))
def name(request):
    return request.param


@pytest.fixture
def said():
    return []


def test_files_arrive_with_their_digests_and_only_once(hub, name, said):
    weights = arrives(hub, name, said)
    asked = len(hub.asked)
    again = hubs.fetch(Snapshot(name, REPO, COMMIT), said.append)
    assert again == weights
    assert len(hub.asked) == asked
    # Independent of our own hashing.
    printed = subprocess.run(["sha256sum", SHARD], cwd=weights.folder, capture_output=True, text=True, check=True)
    assert weights.manifest[SHARD].sha256 == printed.stdout.split()[0]


def test_branches_are_resolved_and_may_move(hub, name):
    ours = hubs.get_hub(name)
    assert ours.resolve(REPO, ours.default_branch) == COMMIT
    repository = hub.repositories[REPO]
    repository.commits[OTHER] = {"config.json": b"{}"}
    repository.branches[ours.default_branch] = OTHER
    assert ours.resolve(REPO, ours.default_branch) == OTHER
    assert ours.resolve(REPO, COMMIT) == COMMIT
    arrives(hub, name)  # the commit that was asked for, not the branch


@pytest.mark.parametrize("file", [SHARD, "config.json"])
def test_a_flipped_byte_of_the_same_length_is_noticed_and_fetched_again(hub, name, said, file):
    hub.faults = [Fault("flipped", file, times=1)]
    arrives(hub, name, said)
    assert len(hub.downloads(file)) == 2


def test_a_file_that_always_comes_wrong_is_an_error(hub, name):
    hub.faults = [Fault("flipped", SHARD)]
    line = fails(hub, name, "corrupt")
    assert SHARD in line
    assert "wrong twice" in line


def test_a_cut_transfer_goes_on_where_it_stopped(hub, name):
    hub.faults = [Fault("cut", SHARD, times=1)]
    arrives(hub, name)
    first, second = hub.downloads(SHARD)
    assert first is None
    # Half of 40 kB came; one client keeps all of it, the other whole blocks of 4 kB.
    assert int(second.removeprefix("bytes=").removesuffix("-")) in (len(files_of(hub)[SHARD]) // 2, 4 * 4096)


def test_a_transfer_that_is_always_cut_is_an_error_and_the_rest_is_kept(hub, name):
    hub.faults = [Fault("cut", SHARD)]
    assert SHARD in fails(hub, name, "offline")
    hub.faults = []
    asked = len(hub.downloads("config.json"))
    arrives(hub, name)
    assert len(hub.downloads("config.json")) == asked == 1


def test_a_body_of_nothing_is_named_as_such(hub, name):
    hub.faults = [Fault("empty", SHARD)]
    line = fails(hub, name, "empty")
    assert "without a single byte" in line
    assert "proxy" in line


def test_too_many_requests_are_waited_for(hub, name, said):
    hub.faults = [Fault("limited", None, times=1), Fault("limited file", SHARD, times=1)]
    arrives(hub, name, said)


def test_too_many_requests_for_good_are_an_error(hub, name, monkeypatch):
    monkeypatch.setattr(fetching, "LONGEST_WAIT_S", 0.01)
    hub.faults = [Fault("limited", None)]
    assert "too many requests" in fails(hub, name, "rate_limited")


def test_slow_is_no_error(hub, name):
    hub.faults = [Fault("slow", SHARD)]
    arrives(hub, name)


def test_an_endpoint_may_end_with_a_slash(hub, name, monkeypatch):
    monkeypatch.setenv({"huggingface": "HF_ENDPOINT", "modelscope": "MODELSCOPE_ENDPOINT"}[name], f"{hub.url}/")
    ours = hubs.get_hub(name)
    assert ours.resolve(REPO, ours.default_branch) == COMMIT
    arrives(hub, name)


@pytest.mark.parametrize("around", ["{}\n", " {}\r\n"])
def test_a_token_with_the_end_of_a_line_is_that_token(hub, name, monkeypatch, around):
    """As a secret store or `$(cat file)` of another shell gives it."""
    hub.repositories[REPO].gated = True
    hub.token = "canary-4f1d9e6b"
    monkeypatch.setenv(TOKENS[name], around.format(hub.token))
    arrives(hub, name)


@pytest.mark.parametrize("token", ["canary 4f1d9e6b", "canary\r\nX-Y: 4f1d9e6b", "canary-4f1d9e6b-ä"])
def test_what_is_no_token_is_told_and_not_shown(hub, name, monkeypatch, token):
    monkeypatch.setenv(TOKENS[name], token)
    line = fails(hub, name, "refused")
    assert f"{TOKENS[name]} holds blanks or signs that no token has; set it again" in line
    assert "canary" not in line
    assert hub.asked == []


def test_the_older_name_of_a_token_counts_where_the_newer_one_is_not_set(hub, monkeypatch):
    hub.repositories[REPO].gated = True
    hub.token = "canary-4f1d9e6b"
    monkeypatch.setenv("HUGGING_FACE_HUB_TOKEN", hub.token)
    arrives(hub, "huggingface")
    monkeypatch.setenv("HF_TOKEN", "of-somebody-else")
    shutil.rmtree(place_of(Snapshot("huggingface", REPO, COMMIT)).folder)
    assert "HF_TOKEN" in fails(hub, "huggingface", "gated")


def test_a_pointer_in_place_of_a_file_is_told_for_the_tokenizer_alone_too(hub, name):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 2361372\n"
    hub.repositories[REPO].commits[COMMIT] = {"tokenizer.json": pointer, "config.json": b"{}"}
    with pytest.raises(HubError, match=r"tokenizer\.json: a Git LFS pointer in place of the file") as raised:
        hubs.fetch(Snapshot(name, REPO, COMMIT, "tokenizer"), lambda line: None)
    assert raised.value.kind == "unloadable"


def test_a_gated_repository_wants_a_token_which_reaches_no_file(hub, name, monkeypatch, tmp_path, said):
    hub.repositories[REPO].gated = True
    hub.token = "canary-4f1d9e6b"
    assert TOKENS[name] in fails(hub, name, "gated")
    monkeypatch.setenv(TOKENS[name], hub.token)
    arrives(hub, name, said)
    ours = hubs.get_hub(name)
    assert ours.resolve(REPO, ours.default_branch) == COMMIT
    assert hub.token not in "".join(said)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and hub.token.encode() in path.read_bytes()]
    assert left == []


def test_what_is_not_there_is_told_apart(hub, name):
    assert "no such repository" in fails(hub, name, "missing", repo="owner/none")
    assert "no such" in fails(hub, name, "missing", commit=OTHER)
    hub.faults = [Fault("not there", "notes/read.txt")]
    assert "notes/read.txt" in fails(hub, name, "missing")
    with pytest.raises(HubError, match="nowhere"):
        hubs.get_hub(name).resolve(REPO, "nowhere")


def test_a_hub_that_lists_nothing(hub, name):
    hub.faults = [Fault("nothing listed")]
    assert "lists no files" in fails(hub, name, "empty")


def test_without_a_network_the_cache_serves_and_the_rest_is_one_line(hub, name, monkeypatch):
    weights = arrives(hub, name)
    for variable in ("HF_ENDPOINT", "MODELSCOPE_ENDPOINT"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")  # nothing listens on the discard port
    assert hubs.fetch(Snapshot(name, REPO, COMMIT), print) == weights
    assert "network" in fails(hub, name, "offline", commit=OTHER)
    with pytest.raises(HubError) as raised:
        hubs.get_hub(name).resolve(REPO, "main")
    assert raised.value.kind == "offline"


def test_a_shard_that_was_published_cut_short(hub, name):
    hub.repositories[REPO].commits[COMMIT][SHARD] = hub.repositories[REPO].commits[COMMIT][SHARD][:-100]
    line = fails(hub, name, "unloadable")
    assert SHARD in line
    assert "publisher" in line


def test_tokenizer_files_alone_come_early(hub, name):
    weights = hubs.fetch(Snapshot(name, REPO, COMMIT, "tokenizer"), print)
    assert set(weights.manifest) == {"tokenizer.json", "config.json"}
    assert hub.downloads(SHARD) == []


def test_draft_and_target_never_share_a_folder(hub, name):
    hub.repositories["owner/draft"] = Repository({COMMIT: dict(files_of(hub))}, {})
    folders = {hubs.fetch(Snapshot(name, repo, COMMIT), print).folder for repo in (REPO, "owner/draft")}
    assert len(folders) == 2
    assert not any(one != other and one.is_relative_to(other) for one in folders for other in folders)


def test_files_that_were_changed_are_fetched_again_and_only_those(hub, name, said):
    weights = arrives(hub, name)
    shard = weights.folder / SHARD
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (weights.folder / "config.json").unlink()
    before = len(hub.asked)
    arrives(hub, name, said)
    assert sorted(asked[1] for asked in hub.asked[before:]) == ["config.json", SHARD]


def test_a_shard_that_was_added_does_not_stay(hub, name, said):
    weights = arrives(hub, name)
    (weights.folder / "more.safetensors").write_bytes(b"x")
    assert hubs.faults(weights.folder, remembered(weights.folder)) == ["more.safetensors was added"]
    before = len(hub.asked)
    arrives(hub, name, said)
    assert len(hub.asked) == before


def test_what_a_killed_fetch_left_is_used(hub, name):
    weights = arrives(hub, name)
    place = place_of(Snapshot(name, REPO, COMMIT))
    place.folder.rename(place.staging)  # as if killed before the last step, with its memory or without
    place.memory.unlink()
    (place.staging / SHARD).write_bytes(b"rubbish")
    before = len(hub.asked)
    assert arrives(hub, name).manifest.keys() == weights.manifest.keys()
    assert [asked[1] for asked in hub.asked[before:]] == [SHARD]


def test_two_processes_on_one_cache_download_once(hub, name):
    hub.faults = [Fault("slow", SHARD)]
    processes = [fetch_elsewhere(name) for _ in range(2)]
    told = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    assert not any("\r" in text for text in told), "a client's progress bar"
    assert all(len(hub.downloads(file)) == 1 for file in files_of(hub))
    arrives(hub, name)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_fetch_that_is_ended_in_the_middle_goes_on(hub, name, number):
    hub.faults = [Fault("slow", SHARD, times=1)]
    process = fetch_elsewhere(name)
    while not hub.downloads(SHARD):
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode != 0
    assert not place_of(Snapshot(name, REPO, COMMIT)).folder.exists()
    arrives(hub, name)


def test_who_comes_second_says_that_it_waits_and_then_finds_the_files(hub, name, said):
    arrives(hub, name)
    place = place_of(Snapshot(name, REPO, COMMIT))
    place.folder.rename(place.staging)  # something is left to do for the second
    with ThreadPoolExecutor(1) as pool, FileLock(place.lock) as first:
        second = pool.submit(arrives, hub, name, said)
        while not said:
            time.sleep(0.01)
        assert "another process is fetching it, waiting" in said[0]
        assert not second.done()
        place.staging.rename(place.folder)
        first.release()
        second.result(timeout=20)
    assert len(hub.downloads(SHARD)) == 1


def test_a_disk_that_is_too_small_is_told_before_anything_comes(hub, name, monkeypatch):
    monkeypatch.setattr("crossover.hubs.fetching.shutil.disk_usage", lambda path: type("Usage", (), {"free": 10_000})())
    assert "CROSSOVER_CACHE" in fails(hub, name, "disk_full")
    assert hub.asked == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounts a disk, which root may")
@pytest.mark.parametrize("kib", [8, 40, 60, 76, 80, 84])
def test_a_disk_that_fills_up_meanwhile_and_is_made_larger(hub, name, cache, kib):
    # A real disk, in a mount namespace of its own, full at a file's beginning, inside one, or when its memory is
    # written; the look at the room is blinded. Then the same disk with room, and the same command again.
    cache.mkdir()
    mounted = f'mount -t tmpfs -o size={kib}k none {cache} || exit 9; "$@"; echo first: $?'
    mounted += f'; mount -o remount,size=9m {cache} && exec "$@"'
    process = fetch_elsewhere("unshare", "--mount", "sh", "-c", mounted, "sh", name)
    told = process.communicate(timeout=60)[0]
    if process.returncode == 9 or "not permitted" in told:
        pytest.skip(told.strip().splitlines()[-1])
    first = told[: told.index("first: ")].strip().splitlines()[-1]
    if "first: 0" not in told:
        assert "no room on the disk" in first
        assert "CROSSOVER_CACHE" in first
    assert ("first: 0" in told) <= (kib > 80)  # one client keeps a file of its own besides
    assert process.returncode == 0, told


def test_a_limit_on_the_size_of_files_is_no_room(hub, name):
    process = fetch_elsewhere("prlimit", "--fsize=30000", name)  # the largest file has 40 kB
    told = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert "no room on the disk" in told.splitlines()[-1]
    arrives(hub, name)


def test_a_cache_that_cannot_be_written_is_one_line(hub, name, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CROSSOVER_CACHE", str(tmp_path / "file" / "cache"))
    line = fails(hub, name, "disk")
    assert "Not a directory" in line
    assert "CROSSOVER_CACHE" in line
    assert hub.asked == []


def test_no_room_is_known_in_whatever_it_is_wrapped():
    wrapped = RuntimeError("the client says nothing")
    wrapped.__cause__ = OSError(errno.ENOSPC, "full")
    assert is_full(wrapped)
    assert not is_full(OSError(errno.EACCES, "no"))
    # As `safetensors` tells it: 28 is ENOSPC, 13 EACCES.
    assert is_full(ValueError("I/O error: No space left on device (os error 28)"))
    assert not is_full(ValueError("I/O error: Permission denied (os error 13)"))
