"""vLLM's front end in Rust: throughput in its own words (all engines together), readiness, and what it cannot do.

Its lines about speculation are those of the Python front end, see `running`.
"""

from __future__ import annotations

import json
import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.model import Interval
from crossover.logs.numbers import fraction
from crossover.logs.table import kind
from crossover.logs.vllm.config import request

_FIELDS = re.compile(r"([A-Z][A-Za-z ]{3,40}): (\d{1,15}(?:\.\d{1,6})?)( toks/s| reqs|%|(?![\d.]))")


def interval(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Avg prompt tput: 672.5 toks/s, Avg generation tput: 1931.6 toks/s, Reqs Running: 57, Waiting: 0, ...`.

    The figures are of all engines together, so that there is no engine id; the hit rates are of this interval.
    """
    found = {name: (value, unit) for name, value, unit in _FIELDS.findall(line.text, match.start(), match.end())}
    preemptions = _count(found, "Preemptions")
    builder.intervals.append(
        Interval(
            line.t,
            None,
            _rate(found, "Avg prompt tput"),
            _rate(found, "Avg generation tput"),
            _count(found, "Reqs Running"),
            _count(found, "Waiting"),
            _share(found, "GPU KV cache used"),
            None,
            _share(found, "Prefix cache hit rate"),
            None,
            _share(found, "External prefix cache hit rate"),
            preemptions,
            line.t_outer,
        )
    )
    if preemptions:
        builder.incidents.add(Kind.PREEMPTION, line, count=preemptions)
    builder.config["frontend"] = "rust"


def _rate(found: dict[str, tuple[str, str]], name: str) -> float | None:
    value, unit = found.get(name, ("", ""))
    return float(value) if unit == " toks/s" else None


def _count(found: dict[str, tuple[str, str]], name: str) -> int | None:
    value, unit = found.get(name, ("", ""))
    return int(value) if value.isdecimal() and unit in ("", " reqs") else None


def _share(found: dict[str, tuple[str, str]], name: str) -> float | None:
    value, unit = found.get(name, ("", ""))
    return fraction(value) if unit == "%" else None


def ready(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The port is opened after the engines have answered."""
    builder.ready(line)
    builder.config["frontend"] = "rust"


def launched(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Launching Rust frontend: .../vllm-rs frontend ... --args-json {"model": ...}`: what was asked for."""
    builder.config["frontend"] = "rust"
    if match[1] is None:
        return
    try:
        asked, _ = json.JSONDecoder().raw_decode(line.text, match.end())
    except ValueError:
        return
    if isinstance(asked, dict):
        request(builder, asked)


def slow_tokenizer(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The fast tokenizer of this front end cannot read the model's: the usual one serves instead."""
    builder.incidents.add(Kind.SLOW_TOKENIZER, line, repeats=False)


def ignored(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """An argument that this front end does not know."""
    builder.incidents.add(Kind.CONFIG_ADJUSTED, line, rank=rank_label(line), key=match[1], repeats=False)


KINDS = (
    kind(
        "rust_interval",
        "Avg prompt tput:",
        r"Avg prompt tput: \d[\d.]* toks/s(?:, [A-Z][A-Za-z ]{3,40}: \d[\d.]*(?: toks/s| reqs|%)?)*",
        interval,
        spans=4,
    ),
    kind(
        "rust_ready",
        "starting OpenAI server",
        r"starting OpenAI server (?=bind_address=|model=)",
        ready,
        figure=False,
    ),
    kind(
        "rust_launched",
        "Launching Rust frontend:",
        r"Launching Rust frontend:(?:[^\n]{0,2000}?--args-json (?=\{)()|)",
        launched,
        figure=False,
        spans=300,
    ),
    kind(
        "rust_tokenizer",
        "failed to load tokenizer with fastokens",
        r"failed to load tokenizer with fastokens",
        slow_tokenizer,
        figure=False,
    ),
    kind(
        "rust_ignored",
        "has no effect in Rust frontend",
        r"argument '?([\w-]{1,60})'? currently has no effect in Rust frontend",
        ignored,
        figure=False,
    ),
)
