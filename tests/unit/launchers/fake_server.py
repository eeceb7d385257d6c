"""A server for tests of launchers: answers /v1/models and completions as told, and dies as told.

usage: fake_server.py PORT MODEL [WORD...] with the words listen-after=S, ready-after=S, warm-after=S, die-after=S,
    ignore-term, key=KEY,
child (a grandchild in a session of its own), flood (writes without end), print=TEXT, exit=N
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, model, *words = sys.argv[1:]
options = dict(word.partition("=")[::2] for word in words)
began = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    def answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if "key" in options and self.headers.get("Authorization") != f"Bearer {options['key']}":
            return self.answer(401, {"error": "Unauthorized"})
        if self.path == "/health" and time.monotonic() - began < float(options.get("warm-after", 0)):
            return self.answer(503, {})
        return self.answer(200, {"data": [{"id": model}]})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        ready = time.monotonic() - began >= float(options.get("ready-after", 0))
        if not ready:
            return self.answer(503, {})
        choice = {"index": 0, "delta": {"content": "a"}, "text": "a", "finish_reason": "stop"}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        return self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_: object) -> None:
        pass


def flood() -> None:
    while True:
        sys.stdout.write("x" * 200 + "\n")


if "print" in options:
    print(options["print"], flush=True)
if "exit" in options:
    sys.exit(int(options["exit"]))
if "ignore-term" in options:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in options:
    # Out of the session and without our environment: what an engine's worker can look like.
    subprocess.Popen(["sleep", "600"], start_new_session=True, env={"PATH": os.environ["PATH"]})
if "die-after" in options:
    threading.Timer(float(options["die-after"]), lambda: os._exit(3)).start()
if "flood" in options:
    threading.Thread(target=flood, daemon=True).start()
time.sleep(float(options.get("listen-after", 0)))
print("listening", flush=True)
ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
