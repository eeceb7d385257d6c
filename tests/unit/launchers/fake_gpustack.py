"""A small GPUStack: backends, models and instances in memory, whose states a test sets as it likes."""

from __future__ import annotations

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TOKEN = "gpustack_canary_4711"


class FakeGpustack:
    """What the server knows. Tests read and change it directly."""

    def __init__(self):
        self.clusters = [{"id": 1, "name": "default", "is_default": True}]
        self.backends, self.models, self.instances = {}, {}, {}
        self.logs = {}  # instance id to its bytes; growing, until the instance has ended
        self.first_state = {"state": "pending", "state_message": "No available workers."}
        self.asked = []
        self._next = 10
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def add_backend(self, name, versions, **more):
        return self._add(self.backends, {"backend_name": name, "version_configs": versions, **more})

    def set_instance(self, **fields):
        """Changes the newest instance."""
        self.instances[max(self.instances)] |= fields

    def _add(self, table, body):
        self._next += 1
        table[self._next] = {**body, "id": self._next}
        return table[self._next]

    def _start_instance(self, model):
        self._add(self.instances, {"model_id": model["id"], "name": f"{model['name']}-x", **self.first_state})

    def answer(self, method, path, query, body):
        """Returns status and JSON."""
        self.asked.append((method, path))
        kind, _, rest = path.removeprefix("/v2/").partition("/")
        number, _, action = rest.partition("/")
        tables = {"inference-backends": self.backends, "models": self.models, "model-instances": self.instances}
        if path == "/version":
            return 200, {"version": "v2.3.0"}
        if kind == "clusters":
            return 200, _page(self.clusters)
        table = tables[kind]
        if not number and method == "GET":
            found = [one for one in table.values() if _matches(one, query)]
            return 200, _page(found)
        if method == "POST" and not number:
            return self._create(kind, table, body)
        if int(number) not in table:
            return 404, {"code": 404, "reason": "NotFound", "message": f"{kind} not found"}
        return self._change(method, kind, table, int(number), action, body)

    def _create(self, kind, table, body):
        name = "name" if kind == "models" else "backend_name"
        if any(one[name] == body[name] for one in table.values()):
            return 409, {"code": 409, "reason": "AlreadyExists", "message": f"{body[name]} already exists."}
        made = self._add(table, body)
        if kind == "models":
            self._start_instance(made)
        return 200, made

    def _change(self, method, kind, table, number, action, body):
        if method == "DELETE" and kind == "inference-backends":
            users = [m["name"] for m in self.models.values() if m["backend"] == table[number]["backend_name"]]
            if users:
                return 400, {"message": f"it is currently being used by the following models: {', '.join(users)}"}
        if method == "DELETE":
            del table[number]
            self.instances = {i: one for i, one in self.instances.items() if one["model_id"] != number}
        elif method == "PUT":
            table[number] |= body
        elif action == "restart":
            self.instances = {i: one for i, one in self.instances.items() if one["model_id"] != number}
            self._start_instance(table[number])
        return 200, table.get(number, {})

    def _handler(self):
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_any(self):
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    return self._send(401, {"message": "Invalid authentication credentials"})
                log = re.fullmatch(r"/v2/model-instances/(\d+)/logs", parts.path)
                if log:
                    return self._stream(int(log[1]))
                return self._send(*fake.answer(self.command, parts.path, query, body))

            do_GET = do_POST = do_PUT = do_DELETE = do_any  # noqa: N815

            def _send(self, status, answer, headers=None):
                text = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def _stream(self, number):
                self.send_response(200)
                self.end_headers()
                sent = 0
                while number in fake.instances:
                    told = fake.logs.get(number, b"")
                    text = told.removesuffix(b"<cut>\n")
                    self.wfile.write(text[sent:])
                    sent = len(text)
                    fake.logs[number] = text
                    if text != told or fake.instances[number]["state"] == "error":
                        return
                    time.sleep(0.02)

            def log_message(self, *arguments):
                pass

        return Handler


def _page(items):
    return {"items": items, "pagination": {"page": 1, "perPage": 100, "total": len(items), "totalPage": 1}}


def _matches(one, query):
    if "model_id" in query and one["model_id"] != int(query["model_id"]):
        return False
    return query.get("search", "") in one.get("name", "")
