"""Listings of every kind through the real clients: empty files, many files, pages, and names that must not be."""

from __future__ import annotations

import json
import time

import pytest
from fetching_helpers import COMMIT, FILES, REPO, TOKENS, arrives, fails

from crossover.hubs import HubError, Snapshot, listing, manifest
from crossover.hubs.cache import place_of
from crossover.hubs.listing import check_case, check_names

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(params=sorted(TOKENS))
def name(request):
    return request.param


@pytest.fixture
def files(hub):
    """The files of the commit that is served, to be altered."""
    return hub.repositories[REPO].commits[COMMIT]


def test_empty_files_and_names_with_any_sign(hub, name, files):
    files |= {"empty.txt": b"", "a b/c#d?e%20f&g=h+i.txt": b"odd", "ümlaut/日本.json": b"{}", "x" * 200: b"long"}
    files["large-odd#1.bin"] = bytes(5000)
    weights = arrives(hub, name)
    # What `sha256sum /dev/null` prints.
    assert weights.manifest["empty.txt"].sha256.startswith("e3b0c44298fc1c14")


def test_a_listing_of_several_pages_is_read_to_its_end(hub, files):
    files |= {f"part-{number:02}.txt": b"%d" % number for number in range(25)}
    hub.repositories[REPO].page_entries = 7
    arrives(hub, "huggingface")


def test_a_listing_that_the_hub_cuts_without_a_word_is_refused(hub, files, monkeypatch):
    files |= {f"many/{number}.txt": b"%d" % number for number in range(40)}
    hub.repositories[REPO].page_entries = 30
    for module in ("modelscope_hub._legacy_api", "crossover.hubs.kinds.modelscope"):
        monkeypatch.setattr(f"{module}.REPO_FILES_TRUNCATION_LIMIT", 20)
    assert "lists no more of one folder" in fails(hub, "modelscope", "refused")


def test_many_files_come_without_writing_their_memory_each_time(hub, name, files, monkeypatch):
    files.clear()
    files |= {f"{number // 100}/{number}.txt": b"%d" % number for number in range(600)}
    written = []
    true_write = manifest.write_memory
    monkeypatch.setattr("crossover.hubs.fetching.write_memory", lambda *words: (written.append(1), true_write(*words)))
    began = time.monotonic()
    weights = arrives(hub, name)
    assert len(weights.manifest) == 600
    # Every two seconds, and once at the end.
    assert len(written) <= 2 + (time.monotonic() - began) / 2


@pytest.mark.parametrize("escape", ["../../outside.txt", "notes/../../outside.txt", "/etc/outside.txt", "a\\..\\b.txt"])
def test_a_name_that_would_leave_the_folder_is_refused_before_anything_comes(hub, name, files, tmp_path, escape):
    files[escape] = b"gotcha"
    assert "would leave its folder" in fails(hub, name, "corrupt")
    assert hub.asked == []
    assert list(tmp_path.rglob("outside.txt")) == []


def test_a_link_in_the_way_is_not_followed(hub, name, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    staging = place_of(Snapshot(name, REPO, COMMIT)).staging
    (staging / "notes").mkdir(parents=True)
    (staging / "notes" / "read.txt").symlink_to(outside)
    arrives(hub, name)
    assert outside.read_text() == "mine"
    assert not (place_of(Snapshot(name, REPO, COMMIT)).folder / "notes" / "read.txt").is_symlink()


def test_names_that_differ_in_case_alone_are_two_files_where_the_disk_says_so(hub, name, files, monkeypatch):
    files |= {"Readme.txt": b"one", "README.txt": b"two"}
    with monkeypatch.context() as patch:
        patch.setattr(listing, "_ignores_case", lambda folder: True)
        assert "README.txt" in fails(hub, name, "disk")
    assert hub.asked == []
    arrives(hub, name)


def test_this_disk_tells_case_apart(tmp_path):
    check_case(Snapshot("modelscope", REPO, COMMIT), tmp_path, ["A", "a"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [["a", "b", "a"], ["a", "a/b"], ["x/y/z", "x/y"]])
def test_listings_that_no_folder_can_hold(names):
    with pytest.raises(HubError, match="twice, or as a file and a folder"):
        check_names(names)


def test_the_listing_of_the_tests_is_a_good_one():
    check_names(list(FILES))
    assert json.loads(FILES["model.safetensors.index.json"])
