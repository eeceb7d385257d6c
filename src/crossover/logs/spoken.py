"""Who speaks: text that a log only quotes, and lines that say of themselves how bad they are.

Prompts, answers and dumps of the configuration may hold any words; an error in them is none of the engine's.
"""

from __future__ import annotations

import re

from crossover.logs.lines import Line

# vLLM's and SGLang's logs of requests: what follows is the client's or the model's text.
_REQUESTS = (
    "Received request ", "Generated response ", " details: prompt: ", "Receive: obj=", "Receive OpenAI: obj=",
    "Finish: obj=", '"request.received"', '"request.finished"',
)  # fmt: skip
_SETTINGS = ("non-default args: ", "args: Namespace(", "server_args=", "ServerArgs(", " with config: ")


def quoted_from(line: str) -> int:
    """Returns where a line begins to quote a request or its answer; -1 where it does not."""
    return min((place for mark in _REQUESTS if (place := line.find(mark)) >= 0), default=-1)


_SOURCE = re.compile(r"(?:^|[\])|]) *raise [\w.]{1,80}\(")


def is_source(line: str, place: int) -> bool:
    """Says whether a place is in a line of source code that a traceback shows: what it raises is printed below."""
    if "raise " not in line:
        return False
    source = _SOURCE.search(line)
    return source is not None and source.start() <= place and 'File "' not in line[:place]


def of_settings(line: str, place: int) -> bool:
    """Says whether a place is in a dump of the configuration."""
    return any(line.find(mark, 0, place) >= 0 for mark in _SETTINGS)


# SGLang's lines, and those of Python's warnings, have no level: the words say that the engine goes on.
_GOES_ON = re.compile(
    r"Warning: |\bIgnor(?:e|ing)\b|ignoring|ignored? (?:this|import)|import (?:failed|error)\b|[Ff]all(?:ing|s)? back"
    r"|[Pp]roceeding without|[Ww]ill (?:be )?(?:retry|retried|skip)|[Rr]etrying\b|\b[Ss]kipping\b"
)


def goes_on(line: Line) -> bool:
    """Says whether the engine goes on after this line, by its level or its words: it states no failure."""
    return line.level in ("INFO", "DEBUG") or _GOES_ON.search(line.text) is not None


def only_warns(line: Line) -> bool:
    """Says whether the engine calls it a warning."""
    return line.level in ("WARNING", "WARN")
