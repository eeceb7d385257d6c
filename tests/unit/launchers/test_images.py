"""Progress of a pull, and what an image says of itself."""

from __future__ import annotations

import pytest

from crossover.launchers.image_versions import answered, version_facts
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


@pytest.mark.parametrize("output", [None, "", "Traceback", "7"])
def test_an_image_that_does_not_answer_has_unknown_versions(output):
    assert answered(output) == {"vllm": None, "sglang": None}


def test_a_package_tells_the_version_before_a_label_does():
    labels = {"org.opencontainers.image.version": "ubuntu-22.04"}
    versions = answered('a warning\n{"vllm": null, "sglang": "0.5.23"}\n')
    assert version_facts(labels, versions)["engine_version"] == "0.5.23"
    assert version_facts(labels, answered(None))["engine_version"] == "ubuntu-22.04"
    assert version_facts({}, answered(None))["engine_version"] is None
