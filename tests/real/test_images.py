"""Images against real Docker and Podman daemons and registries on loopback (`.ci/services.sh`), good and bad ones."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import docker
import httpx
import pytest
from real_containers import REGISTRY, RUNTIMES

from crossover.launchers import LaunchError
from crossover.launchers.docker_api import connect
from crossover.launchers.images import fetch

pytestmark = pytest.mark.real

NOBODY = 65534


@pytest.fixture(params=RUNTIMES)
def client(request, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", RUNTIMES[request.param])
    try:
        client = docker.from_env()
        client.images.get("crossover-test")
        httpx.get(f"http://{REGISTRY}/v2/", trust_env=False).raise_for_status()
    except (docker.errors.DockerException, httpx.HTTPError) as error:
        pytest.skip(f"{request.param}: {error}; run .ci/services.sh")
    return client


@pytest.fixture(scope="module")
def published():
    """The test image in the registry, in a form of its own that no daemon has yet: its name and digest."""
    pusher = docker.DockerClient(base_url=RUNTIMES["docker"])
    nonce = uuid.uuid4().hex
    name = f"{REGISTRY}/crossover/test-{nonce[:8]}"
    container = pusher.containers.create("crossover-test", ["true"], network_mode="none")
    container.commit(name, "v1", changes=f"LABEL nonce={nonce}")
    container.remove()
    said = [line["aux"] for line in pusher.api.push(name, tag="v1", stream=True, decode=True) if "aux" in line]
    pusher.images.remove(f"{name}:v1")
    return f"{name}@{said[-1]['Digest']}"


def test_pulled_by_digest_with_progress_and_asked_for_its_versions(client, published):
    lines = []
    facts = fetch(published, lines.append)
    assert published in facts["digests"]
    assert lines
    assert lines[0].startswith(f"pulling {published}")
    # Neither engine is in the image; its label tells a version.
    assert facts["engine_versions"] == {"vllm": None, "sglang": None}
    assert facts["engine_version"] == "0"
    lines.clear()
    assert fetch(published, lines.append) == facts
    assert lines == []
    with contextlib.suppress(docker.errors.APIError):  # Podman wants a tag
        client.images.remove(published)
    assert client.containers.list(all=True, filters={"label": "crossover.question"}) == []


def test_a_tag_beside_the_digest_is_no_hindrance(client, published):
    name, _, digest = published.partition("@")
    reference = f"{name}:v1@{digest}"
    assert fetch(reference, lambda line: None)["image"] == reference


def test_one_that_is_made_for_another_processor(client):
    """A digest of one platform is pulled on every machine, and fails only when its program is to run."""
    other = "arm64" if client.version()["Arch"] == "amd64" else "amd64"
    name = f"localhost/crossover-test-{other}:latest"
    client.images.load(_archive(name, other))
    try:
        with pytest.raises(LaunchError, match=f"is made for {other}, and the daemon's machine is") as error:
            fetch(name, lambda line: None)
        assert error.value.kind == "wrong_platform"
    finally:
        client.images.remove(name)


def _archive(name: str, architecture: str) -> bytes:
    """An image of one layer with one empty file, as `docker save` writes it."""
    layer = _tar({"empty": b""})
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [sha256(layer)]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"config.json": json.dumps(config).encode(), "layer.tar": layer}
    return _tar({**files, "manifest.json": json.dumps(manifest).encode()})


def _tar(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def failure(reference) -> LaunchError:
    """The error of a pull, which is one line that names the image."""
    with pytest.raises(LaunchError, match="cannot be pulled") as error:
        fetch(reference, lambda line: None)
    assert reference in str(error.value)
    assert "\n" not in str(error.value)
    return error.value


@pytest.mark.parametrize("reference", ["crossover/absent:v9", f"crossover/test@sha256:{'0' * 64}"])
def test_one_that_the_registry_does_not_have(client, published, reference):
    assert failure(f"{REGISTRY}/{reference}").kind == "image_missing"


def test_a_registry_that_is_down(client):
    error = failure(f"127.0.0.1:9/crossover/engine@sha256:{'0' * 64}")
    assert error.kind == "registry_unreachable"
    assert "connection refused" in str(error)


def test_a_tag_that_was_moved_on_this_machine_is_no_substitute(client, published):
    """A digest is asked for by its own name, so that a tag which points elsewhere here cannot stand in for it."""
    other = f"{published.partition('@')[0]}@sha256:{'0' * 64}"
    assert failure(other).kind == "image_missing"


class Damaged(BaseHTTPRequestHandler):
    """A registry whose manifests or layers differ from what their digests say."""

    protocol_version = "HTTP/1.1"
    files: dict[str, tuple[str, bytes]]

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        known = self.path == "/v2/" or self.path in self.files
        kind, body = self.files.get(self.path, ("application/json", b"{}"))
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if "/manifests/" in self.path:
            self.send_header("Docker-Content-Digest", self.path.rpartition("/")[2])
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *words):
        pass


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@pytest.fixture
def damaged():
    """Serves a small image of one layer; its parts can be changed under their digests."""
    archive = _tar({"file": b"hello"})
    layer = gzip.compress(archive)
    root = {"type": "layers", "diff_ids": [sha256(archive)]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": root}).encode()
    docker_type = "application/vnd.docker"
    manifest_type = f"{docker_type}.distribution.manifest.v2+json"
    parts = [(f"{docker_type}.container.image.v1+json", config), (f"{docker_type}.image.rootfs.diff.tar.gzip", layer)]
    described = [{"mediaType": kind, "size": len(data), "digest": sha256(data)} for kind, data in parts]
    manifest = json.dumps(
        {"schemaVersion": 2, "mediaType": manifest_type, "config": described[0], "layers": described[1:]}
    ).encode()
    files = {f"/v2/a/b/blobs/{sha256(data)}": ("application/octet-stream", data) for _, data in parts}
    files[f"/v2/a/b/manifests/{sha256(manifest)}"] = (manifest_type, manifest)
    handler = type("Handler", (Damaged,), {"files": files})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}/a/b@{sha256(manifest)}", files
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("part", ["manifests", "blobs"])
@pytest.mark.parametrize("client", ["docker"], indirect=True)  # Podman takes plain HTTP of configured registries alone
def test_bytes_that_are_not_what_the_digest_says(client, damaged, part):
    reference, files = damaged
    for path, (kind, data) in files.items():
        if f"/{part}/" in path:
            files[path] = (kind, data[:-1] + bytes([data[-1] ^ 1]) if part == "blobs" else data + b" ")
    assert failure(reference).kind == "digest_mismatch"


@pytest.fixture
def small_daemon(tmp_path, monkeypatch):
    """A Docker daemon of its own with 40 MiB of storage."""
    storage = tmp_path / "storage"
    storage.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(storage)], check=True)
    socket = tmp_path / "docker.sock"
    options = ["--iptables=false", "--bridge=none", "--storage-driver=vfs", f"--data-root={storage}"]
    options += [f"--exec-root={tmp_path}/exec", f"--pidfile={tmp_path}/pid", f"--host=unix://{socket}"]
    with (tmp_path / "log").open("wb") as log:
        daemon = subprocess.Popen(["dockerd", *options], stdout=log, stderr=log)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
    try:
        for _ in range(600):
            if socket.exists() and daemon.poll() is None:
                break
            time.sleep(0.1)
        yield
    finally:
        daemon.terminate()
        daemon.wait(60)
        subprocess.run(["umount", "-l", str(storage)], check=True)


def test_a_disk_that_is_full(published, small_daemon):
    error = failure(published)  # about 125 MB unpacked
    assert error.kind == "disk_full"
    assert "the disk of the container runtime is full" in str(error)


def test_a_socket_that_this_user_may_not_use(client):
    """Asked by a child process that has given up its rights."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        words = b"it was let in"
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            connect()
        except LaunchError as error:
            words = f"{error.kind}: {error}".encode()
        finally:
            os.write(write, words)
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        words = said.read()
    os.waitpid(child, 0)
    assert words.startswith("not_authorised: this user may not use the Docker daemon at unix://")
