"""Progress of a pull, and what an image says of itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crossover.launchers.docker_api import without_tag
from crossover.launchers.image_versions import QUESTION, version_facts
from crossover.launchers.images import _PullProgress


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


def test_progress_of_a_layer_whose_zero_is_left_out():
    progress = _PullProgress("n", lambda line: None)
    progress.take({"id": "a", "status": "Downloading", "progressDetail": {"total": 2 * 2**30}})
    assert progress.text(1.0) == "pulling n: 0.00 of 2.00 GiB, 0 MiB/s"


@pytest.mark.parametrize("output", [None, "", "Traceback", "7", '{"versions": 7}'])
def test_an_image_that_does_not_answer_is_unknown(output):
    facts = version_facts({}, output)
    assert facts["engine_versions"] == {"vllm": None, "sglang": None}
    assert (facts["engine_version"], facts["engines"]) == (None, None)


def test_a_package_tells_the_version_before_a_label_does():
    labels = {"org.opencontainers.image.version": "ubuntu-22.04"}
    output = 'a warning\n{"versions": {"vllm": null, "sglang": "0.5.23"}, "there": {"vllm": false, "sglang": true}}\n'
    assert version_facts(labels, output)["engine_version"] == "0.5.23"
    assert version_facts(labels, output)["engines"] == ["sglang"]
    assert version_facts(labels, None)["engine_version"] == "ubuntu-22.04"


def test_the_question_finds_what_would_start_an_engine(tmp_path):
    """Asked of this very Python, with a command `vllm` on the PATH and a module `sglang` beside it, as the simulated
    engine's image has them: no packages, so no versions."""
    (tmp_path / "vllm").write_text("#!/bin/sh\n")
    (tmp_path / "vllm").chmod(0o755)
    (tmp_path / "sglang.py").touch()
    for environment, there in (({"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)}, ["sglang", "vllm"]), ({}, [])):
        done = subprocess.run([sys.executable, "-S", "-c", QUESTION], env=environment, capture_output=True, text=True)
        facts = version_facts({}, done.stdout)
        assert (facts["engines"], facts["engine_version"]) == (there, None)


@pytest.mark.parametrize(
    ("reference", "known"),
    [
        ("vllm/vllm-openai:v0.27@sha256:1", "vllm/vllm-openai@sha256:1"),
        ("127.0.0.1:5005/a/b@sha256:1", "127.0.0.1:5005/a/b@sha256:1"),
        ("127.0.0.1:5005/a/b:c@sha256:1", "127.0.0.1:5005/a/b@sha256:1"),
        ("127.0.0.1:5005/a/b:c", "127.0.0.1:5005/a/b:c"),
    ],
)
def test_a_tag_before_a_digest_says_nothing(reference, known):
    assert without_tag(reference) == known
