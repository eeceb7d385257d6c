"""The store: complete or absent, never changed, and altered bytes are found and never used."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from crossover.errors import CrossoverError
from crossover.recipes import EntryState, Store, key_of
from crossover.recipes.exchange import export_entries, import_entries
from crossover.recipes.store import AlteredEntryError, Entry

RECIPE = {"step": "run", "n": 1}
KEY = key_of(RECIPE)


def fill(store: Store, recipe=RECIPE, text: str = "data") -> None:
    with store.create("run", recipe, {"host": "here"}) as place:
        (place / "sub").mkdir()
        (place / "sub" / "file.txt").write_text(text)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def test_an_entry_is_read_back_with_recipe_files_and_observations(store) -> None:
    fill(store)
    entry = store.read("run", KEY)
    assert entry.recipe == RECIPE
    assert entry.observed == {"host": "here"}
    # SHA-256 of "data" from sha256sum.
    digest = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"
    assert entry.files == {"sub/file.txt": {"sha256": digest, "size": 4}}


def test_nothing_is_there_before_the_block_ends_well(store) -> None:
    def write_half() -> None:
        with store.create("run", RECIPE, {}) as place:
            (place / "file").write_text("half")
            assert store.state("run", KEY) is EntryState.MISSING
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert store.state("run", KEY) is EntryState.MISSING
    assert list(store.root.rglob("*")) == [store.root / "run"]


def test_a_killed_writer_leaves_no_entry(store) -> None:
    program = textwrap.dedent(f"""
        import os, signal
        from crossover.recipes import Store
        with Store({str(store.root)!r}).create("run", {RECIPE!r}, {{}}) as place:
            (place / "file").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert store.state("run", KEY) is EntryState.MISSING
    assert store.keys("run") == []
    fill(store)
    assert store.has("run", KEY)


def test_an_entry_that_is_there_is_kept(store) -> None:
    fill(store, text="first")
    fill(store, text="second")
    assert (store.path("run", KEY) / "sub" / "file.txt").read_text() == "first"


@pytest.mark.parametrize("later_ns", [0, 10**9])
def test_altered_bytes_are_named_and_set_aside(store, later_ns) -> None:
    fill(store)
    file = store.path("run", KEY) / "sub" / "file.txt"
    written = (store.path("run", KEY) / "entry.json").stat().st_mtime_ns
    file.write_text("dat4")
    os.utime(file, ns=(written + later_ns, written + later_ns))
    with pytest.raises(AlteredEntryError, match=r"sub/file\.txt has other bytes"):
        store.read("run", KEY)
    assert store.state("run", KEY) is EntryState.MISSING
    assert len(list((store.root / "quarantine").iterdir())) == 1


def test_the_quick_look_finds_another_size_and_a_later_change(store) -> None:
    fill(store)
    file = store.path("run", KEY) / "sub" / "file.txt"
    file.write_text("dat4")
    os.utime(file, ns=(2**62, 2**62))
    assert store.state("run", KEY) is EntryState.ALTERED
    file.write_text("longer than it was")
    assert store.state("run", KEY) is EntryState.ALTERED
    file.unlink()
    assert store.state("run", KEY) is EntryState.ALTERED


def test_touching_alters_nothing(store) -> None:
    fill(store)
    file = store.path("run", KEY) / "sub" / "file.txt"
    os.utime(file, ns=(2**62, 2**62))
    assert store.state("run", KEY) is EntryState.PRESENT


def test_an_altered_entry_is_replaced(store) -> None:
    fill(store)
    (store.path("run", KEY) / "sub" / "file.txt").write_text("other length")
    fill(store, text="again")
    assert store.read("run", KEY).path.joinpath("sub/file.txt").read_text() == "again"


def test_a_manifest_with_another_recipe_is_a_fault(store) -> None:
    fill(store)
    manifest = store.path("run", KEY) / "entry.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"recipe": {"n": 2}}))
    assert store.faults("run", KEY) == ["entry.json holds another recipe than its key says"]


def test_a_missing_entry_is_an_error_in_one_line(store) -> None:
    with pytest.raises(CrossoverError, match="no such entry"):
        store.read("run", "0" * 24)


def test_entries_travel_in_a_tar_file(store, tmp_path) -> None:
    fill(store)
    fill(store, {"step": "run", "n": 2}, "two")
    file = tmp_path / "entries.tar"
    assert export_entries(store, file) == 2
    other = Store(tmp_path / "other")
    fill(other)
    assert import_entries(other, file) == (1, 1)
    assert other.faults("run", key_of({"step": "run", "n": 2})) == []


def test_a_damaged_entry_is_not_taken(store, tmp_path) -> None:
    fill(store)
    file = tmp_path / "entries.tar"
    export_entries(store, file)
    # Flip the payload where it stands in the tar file, same length.
    raw = file.read_bytes()
    file.write_bytes(raw.replace(b"data\0", b"dat4\0", 1))
    with pytest.raises(CrossoverError, match="damaged"):
        import_entries(Store(tmp_path / "other"), file)


@pytest.mark.parametrize("kind", ["image", "client"])
def test_an_entry_whose_installation_is_gone_is_made_again(store, tmp_path, kind) -> None:
    place = tmp_path / "environment"
    place.mkdir()

    def install() -> None:
        with store.create(kind, RECIPE, {"path": str(place)}) as folder:
            (folder / "facts.json").write_text("{}")

    install()
    assert store.state(kind, KEY) is EntryState.PRESENT
    place.rmdir()
    assert store.state(kind, KEY) is EntryState.GONE
    assert not store.has(kind, KEY)
    place = tmp_path / "elsewhere"
    place.mkdir()
    install()
    assert store.read(kind, KEY).observed == {"path": str(place)}
    assert store.has(kind, KEY)


def test_what_was_made_from_a_source_that_was_made_again_is_made_again(store) -> None:
    def measure(value: str) -> Entry:
        with store.create("run", {"cell": 1}, {}) as place:
            (place / "figure").write_text(value)
        return store.read("run", key_of({"cell": 1}))

    def derive(source: Entry) -> str:
        with store.create("metrics", {"of": 1}, {}, [source]) as place:
            (place / "figure").write_text((source.path / "figure").read_text())
        return (store.path("metrics", key) / "figure").read_text()

    key = key_of({"of": 1})
    assert derive(measure("old")) == "old"
    assert store.state("metrics", key) is EntryState.PRESENT
    store.remove("run", key_of({"cell": 1}))
    assert store.state("metrics", key) is EntryState.PRESENT  # as true as before
    again = measure("new")
    assert store.state("metrics", key) is EntryState.OUTDATED
    assert not store.has("metrics", key)
    assert derive(again) == "new"
    assert store.state("metrics", key) is EntryState.PRESENT
