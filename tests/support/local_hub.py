"""A hub on this machine that speaks the APIs of Hugging Face and ModelScope, and can be told to misbehave.

Faults are set for one file or for all (`None`); each lasts for a number of requests, or for good. They are:
limited (429 on any request), limited file, nothing listed, not there (listed, but 404), empty (a body of nothing),
flipped (one bit), longer and shorter (than listed), pointer (what git keeps in place of a large file), cut (half of the
body, then hung up), slow (ten blocks, `hub.pause_s` apart), no ranges (the whole file where the rest was asked
for), elsewhere (sent on to `hub.storage`, another host, as hubs do for large files), moved (the same for any request)
and refused there (403 from it).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlparse

ALWAYS = 1 << 30


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    """Commits by their digits, branches by name; files above `lfs_from` bytes are kept as the hubs keep large ones."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str]
    lfs_from: int = 1000
    gated: bool = False
    page_entries: int = ALWAYS
    xet: bool = False


@dataclass
class Fault:
    kind: str
    file: str | None = None
    times: int = ALWAYS


@dataclass
class LocalHub:
    """What is served, which faults are on, and what was asked: (method, file or path, range).

    Attributes:
        sent: [file, bytes of it that were handed to the network], one entry a download, as they began.
        credentials: what each request to the other host carried of `Authorization` and `Cookie`.
        storage: address of the other host; empty where there is none.
    """

    repositories: dict[str, Repository] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    token: str = "right-token"
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    sent: list[list] = field(default_factory=list)
    credentials: list[tuple[str | None, str | None]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    pause_s: float = 0.1
    url: str = ""
    storage: str = ""

    def fault(self, kind: str, file: str | None) -> bool:
        """Says whether a fault is on for a file, and counts it."""
        with self.lock:
            for fault in self.faults:
                if fault.kind == kind and fault.file in (None, file) and fault.times > 0:
                    fault.times -= 1
                    return True
        return False

    def downloads(self, name: str) -> list[str | None]:
        """Returns the ranges with which a file's content was asked for."""
        return [asked[2] for asked in self.asked if asked[0] == "GET" and asked[1] == name]

    def sent_of(self, name: str) -> list[int]:
        """Returns the bytes that were sent of a file, one number a download."""
        return [count for file, count in self.sent if file == name]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub
    is_storage = False

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *words: object) -> None:
        pass

    def _answer(self) -> None:
        url = urlparse(self.path)
        path = unquote(url.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if self.hub.fault("limited", None):
            return self._send(429, b"slow down", {"Retry-After": "1"})
        if not self.is_storage and self.hub.fault("moved", None):
            return self._send(302, b"", {"Location": f"{self.hub.storage}{self.path}"})
        for pattern, method in _ROUTES:
            if match := re.fullmatch(pattern, path):
                return getattr(self, method)(query, **match.groupdict())
        return self._json(404, {"Code": 10010205001, "Message": "no such path", "error": "no such path"})

    # Hugging Face

    def _hf_info(self, query, repo, revision="main"):
        found = self._commit(repo, revision)
        if found:
            self._json(200, {"id": repo, "sha": found[0], "siblings": [], "gated": self.hub.repositories[repo].gated})

    def _hf_tree(self, query, repo, revision):
        found = self._commit(repo, revision)
        if not found:
            return None
        if self.hub.fault("nothing listed", None):
            return self._json(200, [])
        limit = self.hub.repositories[repo].lfs_from
        entries = [{"type": "directory", "path": name, "oid": "0" * 40, "size": 0} for name in _folders(found[1])]
        for name, content in found[1].items():
            entry = {"type": "file", "path": name, "oid": git_blob(content), "size": len(content)}
            if len(content) >= limit:
                entry["lfs"] = {"oid": _sha256(content), "size": len(content), "pointerSize": 134}
                if self.hub.repositories[repo].xet:
                    entry["xetHash"] = _sha256(b"xet" + content)
            entries.append(entry)
        return self._page(entries, int(query.get("cursor", 0)), self.hub.repositories[repo].page_entries)

    def _page(self, entries, first, count):
        """Sends one page of a listing, with the address of the next as GitHub and Hugging Face give it."""
        address = urlparse(self.path)
        following = f'<{self.hub.url}{address.path}?recursive=true&cursor={first + count}>; rel="next"'
        more = {"Link": following} if first + count < len(entries) else {}
        self._json(200, entries[first : first + count], more)

    def _hf_file(self, query, repo, revision, name):
        found = self._commit(repo, revision)
        if not found:
            return None
        if self.hub.repositories[repo].gated and not self._authorised():
            return self._json(403, {"error": "gated"}, {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
        content = found[1].get(name)
        if content is None or self.hub.fault("not there", name):
            return self._json(404, {"error": "no such file"}, {"X-Error-Code": "EntryNotFound"})
        headers = {"X-Repo-Commit": found[0], "ETag": f'"{git_blob(content)}"'}
        if len(content) >= self.hub.repositories[repo].lfs_from:
            headers |= {"X-Linked-ETag": f'"{_sha256(content)}"', "X-Linked-Size": str(len(content))}
            if self.hub.repositories[repo].xet:
                refresh = f"{self.hub.url}/api/models/{repo}/xet-read-token/{found[0]}"
                headers |= {"X-Xet-Hash": _sha256(b"xet" + content), "X-Xet-Refresh-Route": refresh}
        return self._content(name, content, headers)

    # ModelScope

    def _ms_files(self, query, repo):
        found = self._commit(repo, query.get("Revision", "master"))
        if not found:
            return None
        if self.hub.repositories[repo].gated and not self._authorised():
            return self._json(403, {"Code": 10010203008, "Message": "no access"})
        if self.hub.fault("nothing listed", None):
            return self._json(200, {"Code": 200, "Data": {"Files": []}, "Success": True})
        files = [{"Path": name, "Name": name, "Size": 0, "Type": "tree"} for name in _folders(found[1])]
        files += [
            {"Path": name, "Name": name, "Size": len(content), "Sha256": _sha256(content), "Type": "blob"}
            for name, content in found[1].items()
        ]
        # There are no pages: what is too much is left out without a word.
        files = files[: self.hub.repositories[repo].page_entries]
        return self._json(200, {"Code": 200, "Data": {"Files": files}, "Success": True})

    def _ms_file(self, query, repo):
        found = self._commit(repo, query.get("Revision", "master"))
        if not found:
            return None
        if self.hub.repositories[repo].gated and not self._authorised():
            return self._json(403, {"Code": 10010203008, "Message": "no access"})
        name = query["FilePath"]
        if name not in found[1] or self.hub.fault("not there", name):
            return self._json(404, {"Code": 10010205001, "Message": "no such file"})
        content = found[1][name]
        large = len(content) >= self.hub.repositories[repo].lfs_from
        return self._content(name, content, {"X-Linked-ETag": f'"{_sha256(content)}"'} if large else {})

    def _git_references(self, query, repo):
        repository = self.hub.repositories.get(repo)
        if repository is None:
            return self._send(404, b"")
        if repository.gated and not self._authorised():
            return self._send(403, b"")
        lines = [b"# service=git-upload-pack\n", None]
        lines += [f"{commit} refs/heads/{name}\n".encode() for name, commit in repository.branches.items()]
        lines[2] = lines[2].replace(b"\n", b"\0multi_ack side-band-64k agent=git/2\n")
        body = b"".join(b"0000" if line is None else b"%04x" % (len(line) + 4) + line for line in [*lines, None])
        return self._send(200, body)

    def _commit(self, repo: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        repository = self.hub.repositories.get(repo)
        if repository is None:
            self._json(404, {"error": "x", "Code": 10010205001}, {"X-Error-Code": "RepoNotFound"})
            return None
        commit = repository.branches.get(revision, revision)
        if commit not in repository.commits:
            self._json(404, {"error": "x", "Code": 10010205001}, {"X-Error-Code": "RevisionNotFound"})
            return None
        return commit, repository.commits[commit]

    def _authorised(self) -> bool:
        """Says whether the token came along: as such, or in the basic form that git uses."""
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            given = base64.b64decode(given).decode().partition(":")[2]
        return given == self.hub.token

    def _content(self, name: str, content: bytes, headers: dict[str, str]) -> None:
        asked = self.headers.get("Range")
        if self.command == "HEAD":
            return self._send(200, content, headers)
        if not self.is_storage and self.hub.fault("elsewhere", name):
            return self._send(302, b"", {**headers, "Location": f"{self.hub.storage}{self.path}"})
        self.hub.asked.append(("GET", name, asked))
        if self.hub.fault("limited file", name):
            return self._send(429, b"slow down", {"Retry-After": "1"})
        for fault, altered in _ALTERED.items():
            if self.hub.fault(fault, name):
                content = altered(content)
        status, sent = 200, content
        if asked and not self.hub.fault("no ranges", name):
            first = int(re.match(r"bytes=(\d+)-", asked)[1])
            if first >= len(content):
                return self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            status, sent = 206, content[first:]
            headers = {**headers, "Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"}
        cut, slow = self.hub.fault("cut", name), self.hub.fault("slow", name)
        return self._send(status, sent, headers, name=name, cut=cut, slow=slow)

    def _json(self, status: int, data: object, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(data).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status, body, headers=None, name=None, cut=False, slow=False) -> None:
        self.send_response(status)
        for header, value in (headers or {}).items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.close_connection = self.close_connection or cut
        body = memoryview(body)[: len(body) // 2] if cut else memoryview(body)
        block, record = max(1, -(-len(body) // 10)), [name, 0]
        self.hub.sent += [record] if name else []
        for start in range(0, len(body), block):
            self.wfile.write(body[start : start + block])
            record[1] += len(body[start : start + block])
            time.sleep(self.hub.pause_s if slow else 0)


class _Storage(_Handler):
    """The other host: it serves the same addresses, asks for no token, and notes what credentials it was shown."""

    is_storage = True

    def _answer(self) -> None:
        self.hub.credentials.append((self.headers.get("Authorization"), self.headers.get("Cookie")))
        if self.hub.fault("refused there", None):
            return self._send(403, b"signature expired")
        return super()._answer()

    def _authorised(self) -> bool:
        return True


_ALTERED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "flipped": lambda content: content[:-7] + bytes([content[-7] ^ 1]) + content[-6:],
    "longer": lambda content: content + b"more",
    "shorter": lambda content: content[:-4],
    "pointer": lambda content: (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{_sha256(content)}\nsize {len(content)}\n".encode()
    ),
}
_REPO = r"(?P<repo>[^/]+/[^/]+?)"
_ROUTES = (
    (rf"/api/v1/models/{_REPO}/repo/files", "_ms_files"),
    (rf"/api/v1/models/{_REPO}/repo", "_ms_file"),
    (rf"/{_REPO}\.git/info/refs", "_git_references"),
    (rf"/api/models/{_REPO}/revision/(?P<revision>[^/]+)", "_hf_info"),
    (rf"/api/models/{_REPO}/tree/(?P<revision>[^/]+)", "_hf_tree"),
    (rf"/api/models/{_REPO}", "_hf_info"),
    (rf"/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<name>.+)", "_hf_file"),
)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _folders(files: dict[str, bytes]) -> set[str]:
    return {name.rpartition("/")[0] for name in files if "/" in name}


@contextmanager
def serve() -> Iterator[LocalHub]:
    """Yields a hub that listens on a free port of the loopback, with a storage host at another address of it."""
    hub = LocalHub()
    with _running(hub, _Handler, "127.0.0.1") as hub.url, _running(hub, _Storage, "127.0.0.2") as hub.storage:
        yield hub


@contextmanager
def _running(hub: LocalHub, kind: type[_Handler], host: str) -> Iterator[str]:
    server = ThreadingHTTPServer((host, 0), type("Handler", (kind,), {"hub": hub}))
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # clients that are killed hang up
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
