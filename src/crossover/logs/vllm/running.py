"""vLLM while it runs: throughput lines and speculative decoding lines of every version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.model import Interval, Speculation
from crossover.logs.numbers import floats, fraction, fractions, integers, stamps
from crossover.logs.table import OUTER, Part, Usual, kind, record_rows

_FIELDS = re.compile(r"([A-Z][A-Za-z ]{3,40}): (\d{1,15}(?:\.\d{1,6})?)( tokens/s| reqs|%|,)")


def interval(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """V0 names Pending where V1 names Waiting; the CPU backend of V1 has a CPU cache only."""
    fields = {
        name: value + ("%" if unit == "%" else "")
        for name, value, unit in _FIELDS.findall(line.text, match.start(), match.end())
    }
    prefill, decode = fields.get("Avg prompt throughput"), fields.get("Avg generation throughput")
    if (prefill is None and decode is None) or (prefill or "").endswith("%"):
        return False
    waiting = fields.get("Waiting", fields.get("Pending"))
    usage = [(name, value) for name, value in fields.items() if name.endswith("KV cache usage")]
    device = next((value for name, value in usage if name != "CPU KV cache usage"), None)
    host = fields.get("CPU KV cache usage")
    if device is None and "Swapped" not in fields and "Pending" not in fields:
        device, host = host, None
    preemptions = _count(fields.get("Preemptions"))
    head = line.head
    builder.intervals.append(
        Interval(
            head.t,
            int(match[1]) if match[1] else None,
            _rate(prefill),
            _rate(decode),
            _count(fields.get("Running")),
            _count(waiting),
            _share(device),
            _share(host),
            _share(fields.get("Prefix cache hit rate")),
            None,
            _share(fields.get("External prefix cache hit rate")),
            preemptions,
            head.t_outer,
        )
    )
    if preemptions:
        builder.incidents.add(Kind.PREEMPTION, line, count=preemptions)
    return True


def _rate(text: str | None) -> float | None:
    return None if text is None or text.endswith("%") else float(text)


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _share(text: str | None) -> float | None:
    return fraction(text[:-1]) if text is not None and text.endswith("%") else None


def v0_hit_rate(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """V0 gives the hit rates on a line of their own, after the throughput line that they belong to."""
    device, host = fraction(match[1]), fraction(match[2])
    return builder.intervals.replace_last(prefix_hit_rate=device, cpu_prefix_hit_rate=host)


_SPECULATION = re.compile(r"([A-Z][A-Za-z -]{3,40}): (\d{1,15}(?:\.\d{1,6})?)( tokens/s| tokens|%|,|\.)")
_POSITIONS = re.compile(r"Per-position acceptance rate: (\d\.\d+(?:, \d\.\d+)*)")


def speculation(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """All formats from 0.5 on. Where counts are printed, the rate is taken from them: it is the more exact.

    The acceptance length is the printed one, else 1 + accepted / steps, steps = drafted / k. The window is
    accepted tokens over accepted throughput, as the line may cover an idle time of minutes.
    """
    fields = {
        name: (float(value), unit) for name, value, unit in _SPECULATION.findall(line.text, match.start(), match.end())
    }
    accepted = _tokens(fields, "Accepted", "Number of accepted tokens")
    drafted = _tokens(fields, "Drafted", "Number of draft tokens", "Number of draft tokens tokens")
    printed = fields.get("Avg Draft acceptance rate", fields.get("Draft acceptance rate"))
    length = fields.get("Mean acceptance length", (None, ""))[0]
    if accepted is None and printed is None and length is None:
        return False
    positions = _POSITIONS.search(line.text, match.start(), match.end())
    rates = tuple(map(float, positions[1].split(", "))) if positions else None
    wanted = fields.get("Number of speculative tokens", (None, ""))[0]
    if length is not None and rates:
        length = _with_bonus(length, rates)
    if length is None and accepted is not None and drafted and wanted:
        length = round(1 + accepted * wanted / drafted, 6)
    _add_speculation(
        builder,
        line,
        match[1],
        length,
        None if printed is None else printed[0] / (100 if printed[1] == "%" else 1),
        accepted,
        drafted,
        fields.get("Accepted throughput", (None, ""))[0],
        fields.get("Drafted throughput", (None, ""))[0],
        rates,
    )
    return True


def _add_speculation(
    builder: Builder,
    line: Line,
    engine: str | None,
    length: float | None,
    printed_rate: float | None,
    accepted: int | None,
    drafted: int | None,
    accepted_rate: float | None,
    drafted_rate: float | None,
    per_position: tuple[float, ...] | None,
) -> None:
    head = line.head
    builder.speculation.append(
        Speculation(
            head.t,
            int(engine) if engine else None,
            _window_of(accepted, accepted_rate, drafted, drafted_rate),
            length,
            _rate_of(accepted, drafted, printed_rate),
            accepted,
            drafted,
            accepted_rate,
            drafted_rate,
            per_position,
            head.t_outer,
        )
    )


def _with_bonus(length: float, per_position: Sequence[float]) -> float:
    """0.8 printed the length without the bonus token: it is then the sum of the rates at each position."""
    rates = sum(per_position)
    return round(1 + length, 6) if abs(length - rates) < abs(length - 1 - rates) else length


def _tokens(fields: dict[str, tuple[float, str]], *names: str) -> int | None:
    for name in names:
        if name in fields and fields[name][1] != "%":
            return int(fields[name][0])
    return None


def _window(tokens: int | None, per_second: float | None) -> float | None:
    return round(tokens / per_second, 3) if tokens and per_second else None


def _window_of(
    accepted: int | None, accepted_tok_s: float | None, drafted: int | None, drafted_tok_s: float | None
) -> float | None:
    return _window(accepted, accepted_tok_s) or _window(drafted, drafted_tok_s)


def _speculation_rows(columns: Mapping[str, Iterable[Any]]) -> list[tuple[Any, ...]]:
    """The records of usual lines, with what `speculation` works out of the printed figures."""
    lists = {name: list(columns[name]) for name in _NEEDED_TWICE}
    accepted, drafted, rates = lists["accepted_tokens"], lists["drafted_tokens"], lists["per_position"]
    return _rows_of_speculation(
        {
            **columns,
            **lists,
            "accept_len": map(_with_bonus, columns["accept_len"], rates),
            "window_s": map(_window_of, accepted, lists["accepted_tok_s"], drafted, lists["drafted_tok_s"]),
            "accept_rate": map(_rate_of, accepted, drafted, columns["accept_rate"]),
        }
    )


_NEEDED_TWICE = ("accepted_tokens", "drafted_tokens", "accepted_tok_s", "drafted_tok_s", "per_position")
_rows_of_speculation = record_rows(Speculation._fields)


def _rate_of(accepted: int | None, drafted: int | None, printed: float | None) -> float | None:
    return round(accepted / drafted, 6) if accepted is not None and drafted else printed


def _add_intervals(builder: Builder, rows: Sequence[tuple[Any, ...]], numbers: Sequence[int]) -> None:
    builder.intervals.rows += rows


def _add_speculations(builder: Builder, rows: Sequence[tuple[Any, ...]], numbers: Sequence[int]) -> None:
    builder.speculation.rows += rows


_INT, _FLOAT, _SHARE = r"\d{1,15})", r"\d{1,12}\.\d{1,2})", r"\d{1,3}\.\d)%"
_HEAD = (
    OUTER
    + r"(?:\((?:A[Pp][Ii]Server|EngineCore)\w{0,20} pid=\d{1,9}\) )?(?:INFO|DEBUG) (?P<t>\d\d-\d\d \d\d:\d\d:\d\d) "
    r"\[?[\w/]{1,60}\.py:\d{1,5}\] (?:Engine (?P<engine_id>\d{1,6}): )?"
)
_INTEGER, _NUMBER, _PERCENTAGE = Part("figure", integers), Part("figure", floats), Part("figure", fractions)
_HEAD_PARTS = {
    "t_outer": Part("text", list),
    "t": Part("text", partial(stamps, before="--")),
    "engine_id": _INTEGER,
}
_USUAL_INTERVAL = Usual(
    re.compile(
        _HEAD + rf"Avg prompt throughput: (?P<prefill_tok_s>{_FLOAT} tokens/s, "
        rf"Avg generation throughput: (?P<decode_tok_s>{_FLOAT} tokens/s, "
        rf"Running: (?P<running>{_INT} reqs, Waiting: (?P<waiting>{_INT} reqs, (?:Deferred: \d{{1,15}} reqs, )?"
        rf"[CG]PU KV cache usage: (?P<kv_usage>{_SHARE}, Prefix cache hit rate: (?P<prefix_hit_rate>{_SHARE}"
        rf"(?:, External prefix cache hit rate: (?P<external_hit_rate>{_SHARE})?"
        r"(?:, MM cache hit rate: \d{1,3}\.\d%)?"
    ),
    _HEAD_PARTS
    | dict.fromkeys(("prefill_tok_s", "decode_tok_s"), _NUMBER)
    | dict.fromkeys(("running", "waiting"), _INTEGER)
    | dict.fromkeys(("kv_usage", "prefix_hit_rate", "external_hit_rate"), _PERCENTAGE),
    record_rows(Interval._fields),
    _add_intervals,
)
_USUAL_SPECULATION = Usual(
    re.compile(
        _HEAD + rf"SpecDecoding metrics: Mean acceptance length: (?P<accept_len>{_FLOAT}, "
        rf"Accepted throughput: (?P<accepted_tok_s>{_FLOAT} tokens/s, "
        rf"Drafted throughput: (?P<drafted_tok_s>{_FLOAT} tokens/s, Accepted: (?P<accepted_tokens>{_INT} tokens, "
        rf"Drafted: (?P<drafted_tokens>{_INT} tokens, Per-position acceptance rate: "
        r"(?P<per_position>\d\.\d{3}(?:, \d\.\d{3}){0,63}), "
        rf"Avg Draft acceptance rate: (?P<accept_rate>{_SHARE} ?"
    ),
    _HEAD_PARTS
    | dict.fromkeys(("accept_len", "accepted_tok_s", "drafted_tok_s"), _NUMBER)
    | dict.fromkeys(("accepted_tokens", "drafted_tokens"), _INTEGER)
    | {
        "accept_rate": Part("figure", lambda texts: [float(text) / 100 for text in texts]),
        "per_position": Part("figures", floats),
    },
    _speculation_rows,
    _add_speculations,
)

KINDS = (
    kind(
        "interval",
        ("Avg prompt throughput", "Avg generation throughput"),
        r"(?:Engine (\d{1,6}): )?Avg (?:prompt|generation) throughput: \d[\d.]* tokens/s"
        r"(?:, KV fetch: \d{1,9} [a-z ]{4,30}(?:, \d{1,9} [a-z ]{4,30}){0,4}(?=, [A-Z])"
        r"|[,.]? [A-Z][A-Za-z ]{3,40}: (?:\d[\d.]*|nan)(?: tokens/s| reqs|%)?)*,?",
        interval,
        spans=4,
        usual=_USUAL_INTERVAL,
    ),
    kind(
        "v0_hit_rate",
        "Prefix cache hit rate: GPU",
        r"Prefix cache hit rate: GPU: (\d+(?:\.\d+)?)%, CPU: (\d+(?:\.\d+)?)%",
        v0_hit_rate,
    ),
    kind(
        "speculation",
        ("SpecDecoding metrics:", "Speculative metrics:"),
        r"(?:Engine (\d{1,6}): )?(?:SpecDecoding|Speculative) metrics:"
        r"(?:,? [A-Z][A-Za-z -]{3,40}: (?:\d[\d.]*|nan)(?: tokens/s| tokens|%)?(?:, \d[\d.]*)*)+,?",
        speculation,
        spans=4,
        usual=_USUAL_SPECULATION,
    ),
)
