"""A registry asked over HTTP: anonymous, with a token, with an account, and what is said when it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from crossover.errors import CrossoverError
from crossover.planning.registry_api import tag_digest

MANIFEST = b'{"schemaVersion": 2}'
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
ACCOUNT = base64.b64encode(b"me:secret").decode()


class Registry(BaseHTTPRequestHandler):
    """Knows one image in each of `open/`, `token/` (any token that it gave) and `basic/` (the account)."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        asked = urlsplit(self.path)
        if asked.path == "/give":
            scope = parse_qs(asked.query)["scope"][0]
            return self._answer(200, json.dumps({"token": f"token for {scope}"}).encode())
        kind = asked.path.split("/")[2]
        wanted = {
            "token": "Bearer token for repository:token/engine:pull",
            "basic": f"Basic {ACCOUNT}",
            "closed": "nothing that there is",
        }.get(kind)
        if wanted and self.headers.get("Authorization") != wanted:
            return self._answer(401, b"", {"WWW-Authenticate": self._challenge(kind)})
        if "/absent/" in asked.path:
            return self._answer(404, b"")
        assert "oci.image.index" in self.headers["Accept"]
        told = {} if "/silent/" in asked.path else {"Docker-Content-Digest": DIGEST}
        return self._answer(200, MANIFEST, told)

    def _challenge(self, kind):
        place = f"http://127.0.0.1:{self.server.server_address[1]}/give"
        scope = f"repository:{kind}/engine:pull"
        return 'Basic realm="r"' if kind == "basic" else f'Bearer realm="{place}",service="s",scope="{scope}"'

    def _answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def registry(monkeypatch, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    host = f"127.0.0.1:{server.server_address[1]}"
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": ACCOUNT}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "none"))
    yield host
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["open/engine:v1", "open/engine", "token/engine:v1", "open/silent/engine:v1"])
def test_the_digest_of_a_tag(registry, name):
    assert tag_digest(f"{registry}/{name}") == DIGEST


def test_an_account_of_docker_login_is_used(registry, monkeypatch, tmp_path):
    with pytest.raises(CrossoverError, match="wants a login"):
        tag_digest(f"{registry}/basic/engine:v1")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert tag_digest(f"{registry}/basic/engine:v1") == DIGEST


def test_what_a_registry_refuses(registry):
    with pytest.raises(CrossoverError, match=r"open/absent/engine:v1: its registry has no such image$"):
        tag_digest(f"{registry}/open/absent/engine:v1")
    with pytest.raises(CrossoverError, match="does not have it, or wants a login"):
        tag_digest(f"{registry}/closed/engine:v1")


def test_a_registry_that_is_not_there():
    with pytest.raises(CrossoverError, match=r"127.0.0.1:9/a/b:1: its registry cannot be asked .*check the network"):
        tag_digest("127.0.0.1:9/a/b:1")
