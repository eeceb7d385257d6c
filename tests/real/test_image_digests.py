"""`crossover lock` asks a registry for a tag's digest through a real Docker daemon; the registry is a small one."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import docker
import pytest

from crossover.errors import CrossoverError
from crossover.planning.image_digests import digest_of

pytestmark = pytest.mark.real

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
PLATFORM = {"architecture": "amd64", "os": "linux"}
INDEX = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": INDEX_TYPE,
        "manifests": [
            {
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": f"sha256:{'1' * 64}",
                "size": 7,
                "platform": PLATFORM,
            }
        ],
    }
).encode()
DIGEST = f"sha256:{hashlib.sha256(INDEX).hexdigest()}"


class Registry(BaseHTTPRequestHandler):
    """Knows one image, `crossover/engine:v1`."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        known = self.path in ("/v2/", "/v2/crossover/engine/manifests/v1", f"/v2/crossover/engine/manifests/{DIGEST}")
        manifest = known and "manifests" in self.path
        body = INDEX if manifest else b"{}" if known else b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}'
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", INDEX_TYPE if manifest else "application/json")
        self.send_header("Content-Length", str(len(body)))
        if manifest:
            self.send_header("Docker-Content-Digest", DIGEST)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def registry():
    try:
        docker.from_env().ping()
    except docker.errors.DockerException as error:
        pytest.skip(f"{error}; run .ci/services.sh")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)  # the daemon takes plain HTTP from the loopback
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_tag_becomes_the_digest_over_all_platforms(registry):
    assert digest_of(f"{registry}/crossover/engine:v1") == f"{registry}/crossover/engine@{DIGEST}"


def test_a_tag_that_the_registry_does_not_have(registry):
    with pytest.raises(CrossoverError, match=r"no such image|does not have it"):
        digest_of(f"{registry}/crossover/engine:v2")
