"""Graph capture: several phases a rank (decode or verify, prefill, draft), whose times add up.

Ranks capture at the same time, so the longest rank counts.
"""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.lines import Line
from crossover.logs.sglang.bars import BAR, CAPTURING, CAPTURING_PREFILL, note
from crossover.logs.sglang.startup import ELAPSED, LEFT, USED, at_rank, number, start_of
from crossover.logs.table import LineKind, kind

_SIZES = re.compile(r"\b(bs|num_tokens)=\[([\d, ]*)\]")


def _phase(name: str) -> str:
    return " ".join(name.split()).lower()


def is_secondary(phase: str) -> bool:
    """Whether a capture is another one than the target's decode or verify graphs."""
    return any(word in phase for word in ("draft", "prefill", "piecewise", "extend", "num tokens"))


def _keep_sizes(builder: Builder, phase: str, text: str) -> None:
    sizes = [int(size) for size in re.findall(r"\d+", text)]
    if sizes:
        start_of(builder).graph_sizes.setdefault(phase, sizes)


def _capture_begin(builder: Builder, line: Line, match: re.Match[str]) -> None:
    at_rank(builder, line).capture_began_gib = number(LEFT, match["rest"])
    if sizes := _SIZES.search(match["rest"]):
        _keep_sizes(builder, _phase(match["name"]), sizes[2])


def _capture_end(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    at = at_rank(builder, line)
    phase, rest = _phase(match["name"]), match["rest"]
    if sizes := _SIZES.search(rest):
        _keep_sizes(builder, phase, sizes[2])
    if step := re.search(r"\bstep[= ](\d+)", rest):  # one graph set a draft step: each is a phase
        phase += f" step {step[1]}"
    elif "draft" in phase:  # 0.5.9 names the step in the begin line only
        at.draft_captures += 1
        phase += f" number {at.draft_captures}"
    seconds, used, left = number(ELAPSED, rest), number(USED, rest), number(LEFT, rest)
    if used is None and left is not None and at.capture_began_gib is not None:  # the draft's line of 0.4.3
        used = round(at.capture_began_gib - left, 2)
    at.capture_began_gib = None
    at.left_gib = left if left is not None else at.left_gib
    if seconds is not None:
        builder.add_at_rank("graph_capture_s", line, phase, seconds)
    if used is not None:
        builder.add_at_rank("graph_capture_gib", line, phase, used)
        at.graph_gib[phase] = used
    return seconds is not None or used is not None or "elapsed" not in rest


def _capture_list(builder: Builder, line: Line, match: re.Match[str]) -> None:
    _keep_sizes(builder, "decode" if match["what"] == "bs" else "num tokens", match["sizes"])


_CONDENSED_PHASE = re.compile(r"([a-z][a-z ]{1,30}?) +(\d+(?:\.\d+)?) s\b")


def _capture_condensed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    owner = match[1]
    for phase in _CONDENSED_PHASE.finditer(match[2]):
        builder.add_at_rank("graph_capture_s", line, f"{owner} {phase[1].strip()}", float(phase[2]))


def _capture_bar(builder: Builder, line: Line, match: re.Match[str]) -> None:
    start = start_of(builder)
    if start.graph_count is None:
        start.graph_count = int(match["total"])
    note(start.bars, CAPTURING, match)


def _prefill_bar(builder: Builder, line: Line, match: re.Match[str]) -> None:
    note(start_of(builder).bars, CAPTURING_PREFILL, match)


KINDS: tuple[LineKind, ...] = (
    kind(
        "capture_begin",
        ("graph begin", "draft extend begin"),
        r"Capture (?P<name>[\w ()-]{1,60}?) begin(?P<rest>.*)",
        _capture_begin,
        figure=False,
        joins=False,
    ),
    kind(
        "capture_end",
        ("graph end", "draft extend end"),
        r"Capture (?P<name>[\w ()-]{1,60}?) end\.(?P<rest>.*)(?<!,) *$",
        _capture_end,
    ),
    kind(
        "capture_list",
        ("graph bs [", "graph num tokens [", "Capture num tokens: ["),
        r"Capture (?:\w+ graph )?(?P<what>bs|num tokens):? \[(?P<sizes>[\d, ]*)\]",
        _capture_list,
    ),
    kind(
        "capture_condensed",
        ("Capture target", "Capture draft"),
        r"Capture (target|draft) ([a-z ]{1,30} +\d+(?:\.\d+)? s\b.*)",
        _capture_condensed,
        figure=False,
    ),
    kind(
        "capture_bar",
        "Capturing batches",
        r"Capturing batches" + BAR,
        _capture_bar,
        figure=False,
        joins=False,
    ),
    kind(
        "prefill_bar",
        "Capturing num tokens",
        r"Capturing num tokens" + BAR,
        _prefill_bar,
        figure=False,
        joins=False,
    ),
)
