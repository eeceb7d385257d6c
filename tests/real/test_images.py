"""Images against a real Docker daemon and a real registry on loopback (`.ci/services.sh`)."""

from __future__ import annotations

import docker
import httpx
import pytest

from crossover.errors import CrossoverError
from crossover.launchers.images import fetch

pytestmark = pytest.mark.real

REGISTRY = "127.0.0.1:5005"


@pytest.fixture
def client(monkeypatch):
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    try:
        client = docker.from_env()
        client.images.get("crossover-test")
        httpx.get(f"http://{REGISTRY}/v2/", trust_env=False).raise_for_status()
    except (docker.errors.DockerException, httpx.HTTPError) as error:
        pytest.skip(f"{error}; run .ci/services.sh")
    return client


def test_pulled_by_digest_with_progress_and_asked_for_its_versions(client):
    name = f"{REGISTRY}/crossover/test"
    client.images.get("crossover-test").tag(name, "v1")
    pushed = [line for line in client.api.push(name, tag="v1", stream=True, decode=True) if "aux" in line]
    digest = pushed[-1]["aux"]["Digest"]
    for tag in client.images.get(f"{name}:v1").tags:
        if tag.startswith(name):
            client.images.remove(tag)
    lines = []
    facts = fetch(f"{name}@{digest}", lines.append)
    assert facts["digests"] == [f"{name}@{digest}"]
    assert lines
    assert lines[0].startswith(f"pulling {name}@{digest}")
    # Neither engine is in the image; its label tells a version.
    assert facts["engine_versions"] == {"vllm": None, "sglang": None}
    assert facts["engine_version"] == "0"
    lines.clear()
    assert fetch(f"{name}@{digest}", lines.append) == facts
    assert lines == []
    client.images.remove(f"{name}@{digest}")
    assert client.containers.list(all=True, filters={"label": "crossover.question"}) == []


@pytest.mark.parametrize(
    "reference", [f"{REGISTRY}/crossover/absent:v9", f"{REGISTRY}/crossover/test@sha256:{'0' * 64}"]
)
def test_one_that_the_registry_does_not_have(client, reference):
    with pytest.raises(CrossoverError, match="cannot be pulled") as error:
        fetch(reference, print)
    assert reference in str(error.value)
    assert "\n" not in str(error.value)
