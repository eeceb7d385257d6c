"""Crashes: the root cause stands above the message that a person sees, so errors are remembered until one
asks.
"""

from __future__ import annotations

import re
from collections import deque

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line

_GENERIC = re.compile(
    r"See root cause above|EngineCore encountered an issue|EngineDeadError|Engine loop is dead|stack trace "
    r"\(above\)"
    r"|Engine process failed to start|KeyboardInterrupt|CancelledError|See stack trace|Engine core "
    r"initialization|Worker failed with error|Executor failed|actor died|ActorDiedError|RayActorError|worker died"
    r"|Engine process \(pid"
)
_FOLLOWS = re.compile(
    r"ConnectionResetError|BrokenPipeError|EOFError|ConnectionRefusedError|RPC call to \w{1,40} timed out|cancelled"
    r"|NCCL error|ncclSystemError|ncclRemoteError|remote process exited|Connection (?:reset|closed) by peer"
    r"|recvValue failed|DistStoreError"
)
_OF_REQUESTS = re.compile(
    r"disconnected from the client|maximum context length|longer than the (?:model's context|maximum model)"
    r"|for (?:Chat)?CompletionRequest|RequestValidationError|BadRequestError|TemplateError|VLLMValidationError"
    r"|chat[ _]template|ClientDisconnect"
)
_APART_LINES = 500
_ERRORS = 500
_NEAR_LINES = 2000
_BESIDE = 8  # lines from a frame to the exception: its source, and marks below it
_KILLED = re.compile(r"Failed core proc\(s\): \{\}")
_CODES = re.compile(
    r"Failed core proc\(s\): \{[^}\n]{0,400}?: (-?\d{1,3})\b|exit ?code[:=]? ?(-?\d{1,3})\b"
    r"|terminated with (-?\d{1,3})\b"
)


_ORIGINAL = re.compile(r"find the original error: (\w[^\n]{2,300})")


def remember_error(builder: Builder, line: Line, error: str) -> str:
    """Keeps an error that is not itself a report of another one: the latest ones, as a server may run for days.

    Returns:
        The error; one without a text with the place where it was raised.
    """
    number, place = builder.facts.get("frame", (-_BESIDE, ""))
    if ":" not in error and line.number - number < _BESIDE:
        error = f"{error} ({place})"
    if _GENERIC.search(error) or line.level in ("WARNING", "WARN", "INFO", "DEBUG"):
        return error
    errors: deque[tuple[int, bool, str]] = builder.facts.setdefault("errors", deque(maxlen=_ERRORS))
    frontend = (line.process or "").lower().startswith(("apiserver", "rustfrontend"))
    errors.append((line.number, frontend or _OF_REQUESTS.search(error) is not None, error))
    return error


def frame(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """A frame of a traceback: the last one before an exception is where it was raised."""
    builder.facts["frame"] = (line.number, f"{match[1]}:{match[2]}, in {match[3]}")
    return False


def asserted(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """The source of an assertion, below its frame: it says what an exception without a text does not."""
    number, place = builder.facts.get("frame", (-_BESIDE, ""))
    if line.number - number < _BESIDE:
        builder.facts["frame"] = (line.number, f"{place}: {match[1].rstrip()}")
    return False


def root_cause(builder: Builder, after: int, before: int) -> tuple[int, str] | None:
    """The first error between two lines, with its line number: one of an engine or worker process, else any.

    The first of those that stand together at the end: a server that ran for long had other errors before. Errors of
    requests are a last resort, errors before the end too, and those that follow from the end of another process.
    """
    errors = [error for error in builder.facts.get("errors", ()) if after < error[0] <= before]
    for some in (_together(errors, before), errors[::-1]):
        own = [(number, text) for number, weak, text in some if not weak]
        own = own or [(number, text) for number, _, text in some]
        if own:
            first = next((error for error in own if not _FOLLOWS.search(error[1])), own[0])
            bare = first[1].partition(" (")[0]
            return next((error for error in own if error[1].startswith(f"{bare}: ")), first)
    return None


def _together(errors: list[tuple[int, bool, str]], before: int) -> list[tuple[int, bool, str]]:
    """The errors at the end of which each has another one, or the end, within as many lines as ranks print of one."""
    begin, last = len(errors), before
    for place in range(len(errors) - 1, -1, -1):
        if last - errors[place][0] > _APART_LINES or before - errors[place][0] > _NEAR_LINES:
            break
        begin, last = place, errors[place][0]
    return errors[begin:]


def engine_died(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The engine is gone. After an orderly shutdown that is no incident."""
    if builder.facts.get("shutdown") or "Warning: resource_tracker" in line.text:
        return
    if (original := _ORIGINAL.search(line.text)) and builder.shared is not None:
        remember_error(builder.shared, line, original[1])
    builder.incidents.add(Kind.ENGINE_DIED, line, advice=_advice(line.text), repeats=False)
    builder.dead = True


def _advice(text: str) -> str | None:
    if _KILLED.search(text):
        return (
            "no root cause in this log: an empty list of failed processes means killed from outside; check the exit "
            "code (137 = out of host memory) and the kernel log"
        )
    return advice_of_code(text)


def advice_of_code(text: str) -> str | None:
    """Returns what the exit code in a text says of the end of a process; a shell counts signals from 128 on."""
    codes = _CODES.search(text)
    if codes is None:
        return None
    code = int(next(filter(None, codes.groups())))
    return _SIGNALS.get(128 - code if code > 128 else code)


_SIGNALS = {
    -15: "terminated from outside (signal 15): a stop, or a supervisor that did not wait longer",
    -9: "killed from outside (signal 9): out of host memory most likely; look at the kernel log",
    -6: "the process aborted itself (signal 6): look for a watchdog or a failed check above",
    -11: "the process crashed in native code (signal 11): look for the last kernel or library that it called",
    -7: "a bus error (signal 7): shared memory is too small most likely (--shm-size or --ipc=host)",
}
