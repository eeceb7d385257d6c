"""Compiling and warming kernels while the server starts: printed durations, and progress bars that run to their end."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.lines import Line
from crossover.logs.sglang.bars import BAR, COMPILING, DEEP_GEMM, STATE, WEIGHTS, note
from crossover.logs.sglang.startup import elapsed_between, start_of
from crossover.logs.table import LineKind, kind

_LABELS = {"Compiling num tokens": COMPILING, "DeepGEMM warmup": DEEP_GEMM}
_SHARDS = (
    "Loading safetensors checkpoint shards",
    "Loading pt checkpoint shards",
    "Loading np_cache checkpoint shards",
    "Loading safetensors using Runai Model Streamer",
    "Multi-thread loading shards",
    "Multi-thread loading pt checkpoint shards",
)


def _no_vote(builder: Builder) -> None:
    """vLLM prints the same, so it does not tell whose log this is."""
    builder.votes -= 1


def _drawn(builder: Builder, label: str, match: re.Match[str]) -> None:
    _no_vote(builder)
    note(start_of(builder).bars, label, match)


def _bar(builder: Builder, line: Line, match: re.Match[str]) -> None:
    _drawn(builder, _LABELS[match["label"]], match)


def _shards(builder: Builder, line: Line, match: re.Match[str]) -> None:
    _drawn(builder, WEIGHTS, match)


def _compiled(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """One graph of several; a graph that is compiled again for the same shape counts again."""
    _no_vote(builder)
    compiled = builder.facts["sglang_compiled"] = builder.facts.get("sglang_compiled", 0) + 1
    builder.add_at_rank("compile_s", line, f"graph {compiled}", float(match[1]))


def _warmed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.add_at_rank("kernel_warmup_s", line, "deep_gemm", float(match[1]))


def _autotune(builder: Builder, line: Line, match: re.Match[str]) -> None:
    began = start_of(builder).autotune_began
    label = rank_label(line)
    if match[1] == "Running":
        began[label] = line.seconds()
    elif (gone := elapsed_between(began.pop(label, None), line.seconds())) is not None:
        done = builder.facts["sglang_autotuned"] = builder.facts.get("sglang_autotuned", 0) + 1
        builder.add_at_rank("kernel_warmup_s", line, f"autotune {done}", gone)  # the draft model is tuned as well


KINDS: tuple[LineKind, ...] = (
    kind(
        "graph_compiled",
        "Compiling a graph for",
        r"Compiling a graph for (?:dynamic shape|shape [^\n]{1,40}?) takes (\d+\.\d+) s\b",
        _compiled,
        figure=False,
    ),
    kind("bar", tuple(_LABELS), rf"(?P<label>{'|'.join(_LABELS)}){BAR}", _bar, figure=False, joins=False),
    kind(
        "shards",
        _SHARDS,
        rf"(?:{'|'.join(_SHARDS)}): *\d{{1,3}}% Completed{STATE}",
        _shards,
        figure=False,
        joins=False,
    ),
    kind(
        "deep_gemm_warmup",
        "DeepGEMM warmup done",
        r"DeepGEMM warmup done in (\d+\.\d+) ?s\b",
        _warmed,
    ),
    kind(
        "autotune",
        "FlashInfer autotune",
        r"(Running|FlashInfer) (?:FlashInfer )?autotune(?: with|\.\.\.| completed| \(cache)",
        _autotune,
        figure=False,
    ),
)
