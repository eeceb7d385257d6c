"""Manifests, the check of safetensors, the cache's paths and the progress line, by hand-made files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
from threading import Event

import pytest

from crossover import hubs
from crossover.errors import CrossoverError, InputError
from crossover.hubs import Snapshot, local, manifest, safetensors
from crossover.hubs.base import HubError, check_name
from crossover.hubs.cache import memory_of_folder, place_of
from crossover.hubs.progress import Progress, bytes_in, span


def raw(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def tensor(begin: int, end: int) -> dict:
    return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}


WHOLE = raw(json.dumps({"a": tensor(0, 3), "b": tensor(3, 10), "__metadata__": {"format": "pt"}}).encode(), bytes(10))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (WHOLE, None),
        (WHOLE[:-1], "wants"),
        (WHOLE + b"x", "wants"),
        (WHOLE[:20], "cannot hold its header"),
        (b"abc", "cannot hold its header"),
        (b"", "cannot hold its header"),
        (raw(b"[]"), "not that of a safetensors file"),
        (raw(b"{"), "not that of a safetensors file"),
        (raw(b'{"a": {"dtype": "U8"}}'), "not that of a safetensors file"),
        (raw(b"{}"), None),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5\n",
            "a Git LFS pointer in place of the file",
        ),
    ],
)
def test_a_file_must_be_as_long_as_its_header_says(tmp_path, content, fault):
    (tmp_path / "m.safetensors").write_bytes(content)
    found = safetensors.faults(tmp_path, ["m.safetensors"])
    assert (found == []) if fault is None else (fault in found[0])


def test_our_idea_of_the_format_is_the_library_s(tmp_path):
    numpy = pytest.importorskip("numpy")
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file({"x": numpy.arange(12.0), "y": numpy.zeros((3, 4), dtype="int8")}, str(tmp_path / "m.safetensors"))
    assert safetensors.faults(tmp_path, ["m.safetensors"]) == []


def test_shards_are_counted(tmp_path):
    for number in (1, 3):
        (tmp_path / f"model-0000{number}-of-00003.safetensors").write_bytes(WHOLE)
    (tmp_path / "sub").mkdir()
    index = {"weight_map": {"a": "model-00001-of-00003.safetensors", "b": "model-00002-of-00003.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "sub" / "x.safetensors.index.json").write_text('{"weight_map": {"a": "only.safetensors"}}')
    (tmp_path / "sub" / "only.safetensors").write_bytes(WHOLE)
    names = manifest.visible_files(tmp_path)
    assert safetensors.faults(tmp_path, names) == [
        "model.safetensors.index.json: names model-00002-of-00003.safetensors, not there (1 of 2)",
        "model: 2 of 3 shards are there",
    ]
    assert "sub/x.safetensors.index.json" in names


def test_shards_of_another_series_that_no_index_names_do_no_harm(tmp_path):
    for name in ("model-00001-of-00001.safetensors", "model-00002-of-00007.safetensors"):
        (tmp_path / name).write_bytes(WHOLE)
    names = manifest.visible_files(tmp_path)
    assert safetensors.faults(tmp_path, names) == ["model: 1 of 7 shards are there"]
    index = {"weight_map": {"a": "model-00001-of-00001.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert safetensors.faults(tmp_path, manifest.visible_files(tmp_path)) == []


@pytest.mark.parametrize("name", ["tokenizer.json", "tiktoken.model", "sub/pytorch_model.bin"])
def test_a_pointer_of_git_lfs_is_no_file_whatever_its_name(tmp_path, name):
    """As after `git clone` without its extension, or an upload of such a clone: right digests, and nothing in them."""
    (tmp_path / "sub").mkdir()
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 2361372\n"
    (tmp_path / name).write_bytes(pointer)
    (tmp_path / "README.md").write_bytes(pointer + bytes(1024))  # a text about pointers
    (fault,) = safetensors.faults(tmp_path, [name, "README.md"])
    assert fault.startswith(f"{name}: a Git LFS pointer in place of the file")
    with pytest.raises(CrossoverError, match=r"these weights cannot be loaded: .*Git LFS pointer"):
        local.describe_folder(tmp_path)


def test_digests_are_those_of_other_programs(tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(256)) * 9000)  # longer than one block
    (tmp_path / "empty").write_bytes(b"")
    facts = manifest.hash_files(tmp_path, ["file", "empty"])
    for name in facts:
        printed = subprocess.run(["sha256sum", tmp_path / name], capture_output=True, text=True, check=True).stdout
        assert facts[name].sha256 == printed.split()[0]
    # What `git hash-object` gives for a file that holds `hello` without a line end.
    (tmp_path / "hello").write_bytes(b"hello")
    assert manifest.git_blob_sha1(tmp_path / "hello") == "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"


def test_hidden_files_are_not_weights(tmp_path):
    for name in ("a", ".b", ".c/d", "e/f", "e/.g"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert manifest.visible_files(tmp_path) == ["a", "e/f"]


def test_folders_that_are_links_are_read_and_circles_end(tmp_path):
    (tmp_path / "w" / "real").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for name in ("w/a", "w/real/b", "outside/c.safetensors"):
        (tmp_path / name).write_text("x")
    (tmp_path / "w" / "linked").symlink_to("../outside")
    (tmp_path / "w" / "twice").symlink_to("../outside")
    (tmp_path / "w" / "real" / "circle").symlink_to("..")
    (tmp_path / "w" / "nowhere").symlink_to("gone")
    assert manifest.visible_files(tmp_path / "w") == [
        "a",
        "linked/c.safetensors",
        "real/b",
        "twice/c.safetensors",
    ]
    assert manifest.added_shards(tmp_path / "w", ["linked/c.safetensors"]) == ["twice/c.safetensors"]


@pytest.fixture
def folder(tmp_path, cache):
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "m.safetensors").write_bytes(WHOLE)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def reads(monkeypatch):
    """The names of the files that are read in full."""
    seen = []
    true_hash = manifest.hash_file

    def counted(path):
        seen.append(path.name)
        return true_hash(path)

    monkeypatch.setattr(manifest, "hash_file", counted)
    return seen


def wanted_of(described):
    return {name: {"size": facts.size, "sha256": facts.sha256} for name, facts in described.items()}


def test_a_local_folder_is_read_once(folder, reads):
    wanted = wanted_of(hubs.describe_folder(folder))
    assert sorted(reads) == ["config.json", "m.safetensors"]
    assert wanted_of(hubs.describe_folder(folder)) == wanted
    assert hubs.faults(folder, wanted) == []
    assert len(reads) == 2
    assert hubs.verify_folder(folder, wanted) == []
    assert len(reads) == 4


def test_a_file_that_was_only_touched_is_read_and_remembered(folder, reads):
    wanted = wanted_of(hubs.describe_folder(folder))
    reads.clear()
    os.utime(folder / "m.safetensors")
    assert hubs.faults(folder, wanted) == []
    assert hubs.faults(folder, wanted) == []
    assert reads == ["m.safetensors"]


def test_what_changed_is_named(folder):
    wanted = wanted_of(hubs.describe_folder(folder))
    changed = bytearray(WHOLE)
    changed[-1] = 1
    (folder / "m.safetensors").write_bytes(changed)
    assert hubs.faults(folder, wanted) == ["m.safetensors has other bytes than were fetched"]
    (folder / "m.safetensors").write_bytes(WHOLE[:-1])
    assert hubs.faults(folder, wanted) == [f"m.safetensors has {len(WHOLE) - 1} bytes instead of {len(WHOLE)}"]
    (folder / "m.safetensors").unlink()
    assert hubs.faults(folder, wanted) == ["m.safetensors is gone"]
    (folder / "m.safetensors").write_bytes(WHOLE)
    (folder / "n.safetensors").write_bytes(WHOLE)
    assert hubs.faults(folder, wanted) == ["n.safetensors was added"]


def swap_bytes(file, content):
    """Gives a file other bytes of the same length, inode and modification time."""
    before = file.stat()
    with file.open("r+b") as handle:
        handle.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_ino, after.st_mtime_ns) == (before.st_size, before.st_ino, before.st_mtime_ns)


def test_other_bytes_with_the_same_length_inode_and_modification_time_are_noticed(folder):
    wanted = wanted_of(hubs.describe_folder(folder))
    swap_bytes(folder / "m.safetensors", WHOLE[:-1] + b"\1")
    assert hubs.faults(folder, wanted) == ["m.safetensors has other bytes than were fetched"]


def test_bytes_that_change_behind_the_file_system_need_a_full_check(folder):
    wanted = wanted_of(hubs.describe_folder(folder))
    file = folder / "m.safetensors"
    file.write_bytes(WHOLE[:-1] + b"\1")
    # As on a failing disk, which changes no time: what is remembered is made to fit the file as it looks now.
    remembered = json.loads(memory_of_folder(folder).read_text())
    stat = file.stat()
    remembered["files"]["m.safetensors"] |= {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}
    memory_of_folder(folder).write_text(json.dumps(remembered))
    assert hubs.faults(folder, wanted) == []
    assert hubs.verify_folder(folder, wanted) == ["m.safetensors has other bytes than were fetched"]
    # The full check has seen it, and the quick one knows from now on.
    assert hubs.faults(folder, wanted) == ["m.safetensors has other bytes than were fetched"]


def test_a_fingerprint_tells_contents_apart_and_reads_them_once(folder, reads, tmp_path):
    first = hubs.fingerprint(folder)
    # By hand: the names in order, each with the digest that `sha256sum` prints for it.
    printed = [
        subprocess.run(["sha256sum", folder / name], capture_output=True, text=True, check=True).stdout.split()[0]
        for name in ("config.json", "m.safetensors")
    ]
    line = f"config.json\0{printed[0]}\0m.safetensors\0{printed[1]}\0"
    assert first == hashlib.sha256(line.encode()).hexdigest()
    assert len(reads) == 2
    assert hubs.fingerprint(folder) == first
    assert hubs.fingerprint_of(hubs.describe_folder(folder)) == first
    assert len(reads) == 2
    swap_bytes(folder / "m.safetensors", WHOLE[:-1] + b"\1")
    assert hubs.fingerprint(folder) != first
    assert len(reads) == 3
    # The same content elsewhere, or touched, is the same; another name is not.
    swap_bytes(folder / "m.safetensors", WHOLE)
    shutil.copytree(folder, tmp_path / "copy")
    assert hubs.fingerprint(tmp_path / "copy") == hubs.fingerprint(folder) == first
    (folder / "config.json").rename(folder / "configuration.json")
    assert hubs.fingerprint(folder) != first


def test_a_reading_that_was_broken_off_goes_on(folder, reads, monkeypatch):
    (folder / "large.bin").write_bytes(bytes(5000))
    true_hash, failed = manifest.hash_file, Event()

    def broken(path):
        if path.name == "config.json":
            failed.set()
            raise OSError("Input/output error")
        failed.wait(5)  # so that the other file fails while this one is being read
        return true_hash(path)

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "cores", lambda: 2)
        patch.setattr(manifest, "hash_file", broken)
        with pytest.raises(CrossoverError, match="cannot be read: Input/output error"):
            hubs.fingerprint(folder)
    reads.clear()
    hubs.fingerprint(folder)
    assert "large.bin" not in reads


def test_a_long_reading_says_so_and_what_cannot_be_remembered_too(folder, monkeypatch):
    said = []
    monkeypatch.setattr(local, "_WORTH_SAYING_BYTES", 10)
    monkeypatch.setattr(local, "_SAY_EVERY_S", 0.0)
    hubs.fingerprint(folder, said.append)
    assert "GiB once, for its digests" in said[0]
    assert "GiB read" in said[1]
    memory_of_folder(folder).unlink()
    said.clear()

    def refuse(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(local, "write_memory", refuse)
    monkeypatch.setattr(manifest, "write_memory", refuse)
    hubs.fingerprint(folder, said.append)
    assert "cannot be remembered" in said[-1]


def test_a_folder_that_cannot_be_loaded_or_is_none(folder, tmp_path):
    (folder / "m.safetensors").write_bytes(WHOLE[:-1])
    with pytest.raises(CrossoverError, match="cannot be loaded: m"):
        hubs.describe_folder(folder)
    with pytest.raises(InputError, match="no such folder"):
        hubs.describe_folder(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty"):
        hubs.describe_folder(tmp_path / "empty")
    with pytest.raises(InputError, match="no such folder"):
        hubs.fingerprint(tmp_path / "none")


def test_a_cache_that_may_only_be_read_still_checks(folder, reads, monkeypatch):
    wanted = wanted_of(hubs.describe_folder(folder))
    memory_of_folder(folder).unlink()

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("crossover.hubs.presence.write_memory", refuse)
    assert hubs.faults(folder, wanted) == []


@pytest.mark.parametrize("text", ["", "{}", '{"files": []}', '{"files": {"a": {"size": 1}}}', "\0"])
def test_a_memory_that_cannot_be_read_is_none(tmp_path, text):
    (tmp_path / "m.json").write_text(text)
    assert manifest.read_memory(tmp_path / "m.json") == {}


@pytest.mark.parametrize("repo", ["../x", "a/b/c", "", "a b", "/x"])
def test_repositories_that_are_none(repo):
    with pytest.raises(InputError, match="no repository"):
        Snapshot("modelscope", repo, "a" * 40)


def test_commits_that_are_none():
    with pytest.raises(InputError, match="no commit"):
        Snapshot("modelscope", "a/b", "master")


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "", "a\\b"])
def test_remote_names_stay_in_their_folder(name):
    with pytest.raises(HubError):
        check_name(name)


def test_git_s_references_are_read_as_git_writes_them(tmp_path):
    modelscope = pytest.importorskip("crossover.hubs.kinds.modelscope")

    def git(*words):
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=master"]
        return subprocess.run(["git", *identity, *words], cwd=tmp_path, capture_output=True, check=True).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    git("tag", "-a", "v1", "-m", "annotated")
    git("commit", "-q", "--allow-empty", "-m", "two")
    listing = b"001e# service=git-upload-pack\n0000" + git("upload-pack", "--http-backend-info-refs", ".")
    references = modelscope.parse_references(listing)
    assert references["refs/heads/master"] == git("rev-parse", "master").decode().strip()
    assert references["refs/tags/v1^{}"] == git("rev-parse", "v1^{commit}").decode().strip()
    assert references["refs/tags/v1"] != references["refs/tags/v1^{}"]


def test_every_snapshot_has_a_folder_of_its_own(cache):
    snapshots = [
        Snapshot(hub, repo, commit * 40, part)
        for hub in ("modelscope", "huggingface")
        for repo in ("a/b", "a/b--c", "a--b/c", "ab")
        for commit in "12"
        for part in ("weights", "tokenizer")
    ]
    assert len({place_of(snapshot).folder for snapshot in snapshots}) == len(snapshots) == 32
    assert all(place_of(snapshot).folder.is_relative_to(cache) for snapshot in snapshots)


def test_the_progress_line(tmp_path):
    progress = Progress(tmp_path, 4 << 30, print)
    # By hand: 1 GiB in 10 s is 102.4 MiB/s; 2 GiB are left, at that rate 20 s.
    progress._samples.extend([(100.0, 1 << 30), (110.0, 2 << 30)])
    assert progress.line() == "2.00 of 4.00 GiB (50 %), 102.4 MiB/s, 20 s left"
    progress._samples.append((120.0, 1 << 30))
    assert "nothing came lately" in progress.line()
    progress._samples.append((130.0, 4 << 30))
    assert progress.line() == "all 4.00 GiB are there, verifying the last files"
    assert [span(s) for s in (3, 89, 720, 12_000)] == ["3 s", "89 s", "12 min", "3 h 20 min"]


def test_files_under_way_count(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.incomplete").write_bytes(b"x" * 5000)
    (tmp_path / "b").write_bytes(b"x" * 7)
    assert bytes_in(tmp_path) == 5007


def test_progress_speaks_while_something_comes(tmp_path):
    said = []
    with Progress(tmp_path, 100, said.append, every_s=0.01) as progress:
        progress._over.wait(0.1)
    assert said
    assert hashlib.sha256(b"").hexdigest() == manifest.EMPTY_SHA256
