"""Runs one server as its child: stamps its output into a log, ends it with all its descendants, tells how it
ended.

A program of its own, run by path with nothing but the standard library, so that it starts in milliseconds and
lives on when the process that started it is killed: the server then never blocks on a full pipe, and is
stopped cleanly instead of holding its GPUs for nobody. The starter holds the write end of this program's
standard
input: a line `stop SECONDS` asks for the end, and its closing means that the starter is gone.

usage: supervisor.py LOG EXIT_FILE GRACE_S REDACT_NAMES -- COMMAND...
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PIPE_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 20
STRAGGLER_GRACE_S = 2.0  # for children that still write their last words after the server itself has ended


def start_ticks(pid: int) -> int | None:
    """Returns when a process started, in clock ticks since boot (unlike a time of day it never shifts), or
    None."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def parent_of(pid: int) -> int | None:
    """Returns the parent of a process, None when it is gone or a zombie."""
    fields = _stat(pid)
    return None if fields is None or fields[0] == "Z" else int(fields[1])


def session_of(pid: int) -> int | None:
    """Returns the session of a process, None when it is gone or a zombie."""
    fields = _stat(pid)
    return None if fields is None or fields[0] == "Z" else int(fields[3])


def _stat(pid: int) -> list[str] | None:
    # The fields after the command name, which may itself hold spaces and brackets: state, parent, group,
    # session, ...
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 (no pathlib: start-up time)
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def all_pids() -> list[int]:
    """Returns the processes of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def descendants(root: int) -> list[int]:
    """Returns the living processes below `root`, without it."""
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        parent = parent_of(pid)
        if parent is not None:
            children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


class StampedLog:
    """Writes lines with the time at which they were received; never raises and never waits for a reader."""

    def __init__(self, path: str, secrets: dict[bytes, bytes]) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._secrets = secrets
        self._rest = b""
        self._second, self._prefix = -1, b""
        self.dropped = 0

    def feed(self, data: bytes) -> None:
        """Takes bytes as read; lines end at a newline (a carriage return ends none)."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        if lines:
            stamp = self._stamp(time.time_ns())
            self._write(b"".join(stamp + self._clean(line) + b"\n" for line in lines))

    def finish(self) -> None:
        """Writes what came after the last newline."""
        if self._rest:
            self.feed(b"\n")

    def _stamp(self, now_ns: int) -> bytes:
        second, nanosecond = divmod(now_ns, 1_000_000_000)
        if second != self._second:
            self._second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()
        return b"%s.%09dZ " % (self._prefix, nanosecond)

    def _clean(self, line: bytes) -> bytes:
        for secret, name in self._secrets.items():
            line = line.replace(secret, name)
        return line

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            self.dropped += len(data)  # a full disk must not stop the server


class Supervisor:
    """The loop: output, requests to stop, the child's end, and the end of everything below it."""

    def __init__(self, command: list[str], log: StampedLog, grace_s: float) -> None:
        self._log = log
        self._grace_s = grace_s
        self._starter = os.getppid()
        self._stop_asked = False
        self._deadline: float | None = None
        self._group_at: float | None = None
        self._forced = False
        self._output_open = True
        self._status: int | None = None
        self._selector = selectors.DefaultSelector()
        self._listen()
        self._child, self._output = self._spawn(command)

    def _listen(self) -> None:
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._ask_stop(self._grace_s))
        os.set_blocking(0, False)
        self._selector.register(read, selectors.EVENT_READ, self._wake)
        self._selector.register(0, selectors.EVENT_READ, self._control)

    def _spawn(self, command: list[str]) -> tuple[subprocess.Popen[bytes], int]:
        libc = ctypes.CDLL(None, use_errno=True)
        # Orphans of the server become ours, so that nothing of it is lost from sight whatever it does.
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        read, write = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=write,
            process_group=0,
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
        )
        os.close(write)
        os.set_blocking(read, False)
        self._selector.register(read, selectors.EVENT_READ, self._drain)
        return child, read

    def run(self) -> dict[str, object]:
        """Returns, when nothing of the server is left, how it ended."""
        while True:
            for key, _ in self._selector.select(timeout=self._patience()):
                key.data(key.fd)
            self._reap()
            self._ask_group_if_due()
            if os.getppid() != self._starter and not self._stop_asked:
                self._ask_stop(self._grace_s)
            if self._status is not None and self._all_gone():
                break
        while self._output_open and self._drain(self._output):
            pass
        self._log.finish()
        code = os.waitstatus_to_exitcode(self._status)
        return {
            "code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "asked": self._stop_asked,
            "forced": self._forced,
            "log_bytes_dropped": self._log.dropped,
        }

    def _patience(self) -> float:
        return 0.05 if self._status is not None or self._forced else 0.5

    def _all_gone(self) -> bool:
        left = descendants(os.getpid())
        if not left:
            return True
        self._force_if_due(left)
        return False

    def _hurry(self, grace_s: float) -> None:
        deadline = time.monotonic() + grace_s
        self._deadline = deadline if self._deadline is None else min(deadline, self._deadline)

    def _force_if_due(self, left: list[int]) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._forced = True
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _wake(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(fd, 4096)

    def _control(self, fd: int) -> None:
        try:
            data = os.read(fd, 4096)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(fd)
            self._ask_stop(self._grace_s)
            return
        for line in data.decode().splitlines():
            self._ask_stop(float(line.partition(" ")[2]))

    def _ask_stop(self, grace_s: float) -> None:
        self._hurry(grace_s)
        if not self._stop_asked and self._status is None:
            self._stop_asked = True
            # The server alone first, as container runtimes do: one whose workers end before it reports a crash.
            os.kill(self._child.pid, signal.SIGTERM)
            self._group_at = time.monotonic() + grace_s / 2

    def _ask_group_if_due(self) -> None:
        if self._group_at is not None and time.monotonic() >= self._group_at:
            self._group_at = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGTERM)

    def _drain(self, fd: int) -> bool:
        # One read a turn: a server that writes without end must not keep a request to stop waiting.
        try:
            data = os.read(fd, PIPE_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._log.feed(data)
        else:  # every writer has closed it
            self._selector.unregister(fd)
            self._output_open = False
        return bool(data)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self._child.pid:
                    self._status = status
                    self._hurry(STRAGGLER_GRACE_S)
        if self._status is None:
            self._force_if_due(descendants(os.getpid()) if self._deadline is not None else [])


def main(argv: list[str]) -> int:
    """Runs the command after `--`; returns 0 whatever the server's own end, which stands in EXIT_FILE."""
    log_path, exit_path, grace_s, names, _, *command = argv
    secrets = {
        os.environb[name.encode()]: f"[{name}]".encode()
        for name in names.split(",")
        if name and len(os.environ.get(name, "")) > 3
    }
    log = StampedLog(log_path, secrets)
    try:
        end = Supervisor(command, log, float(grace_s)).run()
    except OSError as error:
        log.feed(f"cannot start {command[0]}: {error}\n".encode())
        end = {"code": 127, "signal": None, "asked": False, "forced": False, "log_bytes_dropped": 0}
    with open(f"{exit_path}.part", "w") as file:  # noqa: PTH123
        json.dump(end, file)
    os.replace(f"{exit_path}.part", exit_path)  # noqa: PTH105
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
