"""Progress of a pull, and images that are files."""

from __future__ import annotations

import hashlib

import pytest

from crossover.errors import CrossoverError
from crossover.launchers.images import _PullProgress, fetch


def test_progress_adds_up_the_layers():
    progress = _PullProgress("name@sha256:1", lambda line: None)
    gib = 2**30
    progress.take({"id": "a", "status": "Downloading", "progressDetail": {"current": gib, "total": 3 * gib}})
    progress.take({"id": "b", "status": "Downloading", "progressDetail": {"current": gib // 2, "total": gib}})
    # 1.5 of 4 GiB in 8 s: 192 MiB/s, and 2.5 GiB more take 13.3 s.
    assert progress.text(8.0) == "pulling name@sha256:1: 1.50 of 4.00 GiB, 192 MiB/s, 13 s left"
    progress.take({"id": "a", "status": "Download complete", "progressDetail": {}})
    assert progress.text(8.0).startswith("pulling name@sha256:1: 3.50 of 4.00 GiB")


def test_progress_before_the_first_byte():
    assert _PullProgress("n", lambda line: None).text(0.0) == "pulling n"


def test_an_image_file_is_known_by_its_digest(tmp_path):
    (tmp_path / "engine.sif").write_bytes(b"bytes")
    facts = fetch(str(tmp_path / "engine.sif"), print)
    assert facts["digests"] == [f"sha256:{hashlib.sha256(b'bytes').hexdigest()}"]
    assert facts["size_bytes"] == 5
    with pytest.raises(CrossoverError, match="there is no image file"):
        fetch(str(tmp_path / "other.sif"), print)
