"""Exceptions of any engine: kept as possible root causes; those that refuse a configuration are incidents."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.crash import remember_error
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line, message_of
from crossover.logs.table import kind


def error(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Any exception: remembered, as it may be the root cause of what comes; some say what they are."""
    text = message_of(line.text[match.start(1) :])
    remember_error(builder, line, text)
    refused = 0 < line.number - builder.facts.get("config_frame", -_LONG_AGO) <= _FRAME_LINES
    if (refused or _CONFLICT.search(line.text, match.start())) and not _NOT_CONFLICT.search(line.text):
        advice = None if _CONFLICT.search(text) else _REFUSED
        builder.incidents.add(Kind.CONFIG_CONFLICT, line, message=text, advice=advice, key=text[:80], repeats=False)


def bare_error(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """An exception without a text, at the end of a traceback."""
    remember_error(builder, line, match[1])


def config_frame(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A traceback passes through the code that checks the configuration: an error right below is its refusal."""
    builder.facts["config_frame"] = line.number


def invalid_config(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """`1 validation error for VllmConfig`, and below it `  Value error, TEXT [type=value_error, ...]`."""
    text = match[1].strip()
    if not 0 < line.number - builder.facts.get("config_frame", -_LONG_AGO) <= _FRAME_LINES:
        return False
    remember_error(builder, line, text)
    if not _NOT_CONFLICT.search(text):
        advice = None if _CONFLICT.search(text) else _REFUSED
        builder.incidents.add(Kind.CONFIG_CONFLICT, line, message=text, advice=advice, key=text[:80], repeats=False)
    return True


_FRAME_LINES = 6
_LONG_AGO = 1000
_REFUSED = "this version refuses the configuration: change what the message names"

_CONFLICT = re.compile(
    r"not (?:yet )?(?:supported|compatible|allowed|implemented) (?:with|when|for|together|if|in combination)"
    r"|cannot be (?:used|combined|enabled|set) |is not supported for this|incompatible with|mutually "
    r"exclusive"
    r"|must be divisible by|does not support|requires attention impl|requires --|can not be used|conflicts? "
    r"with"
    r"|(?:DCP|PCP|[Cc]ontext parallel\w{0,8})[^\n]{0,80}(?:not support|requires?|must|cannot)|Workspace is locked"
    r"|only supported (?:with|when|for)|must not be (?:used|set)|is unsupported with"
)
_NOT_CONFLICT = re.compile(
    r"Engine core init|out of memory|CUDA error|KV cache is needed|KV cache \(|cache blocks|AssertionError: res="
    r"|User-specified max_model_len|not supported for now|recognize this architecture|Repo id must be|local folder"
    r"|[Rr]epository|ValidationError: \d|\b(?:[Tt]his|[Tt]he) request\b|context length is"
    r"|Free memory on|Available memory on|Mamba cache"
)


KINDS = (
    kind(
        "traceback",
        "Traceback (most recent call last)",
        r"Traceback \(most recent call last\)",
        lambda builder, line, match: builder.facts.update(traceback=line.number),
        figure=False,
        joins=False,
    ),
    kind(
        "config_frame",
        (
            "vllm/config",
            "engine/arg_utils.py",
            "vllm/platforms/",
            "sglang/srt/server_args.py",
            "for VllmConfig",
            "for ModelConfig",
            "for EngineArgs",
            "for ParallelConfig",
            "for SpeculativeConfig",
            "for CacheConfig",
            "for SchedulerConfig",
            "for CompilationConfig",
        ),
        r'File "[^"\n]{0,200}(?:vllm/config(?:/\w{1,40})?\.py|vllm/engine/arg_utils\.py|vllm/platforms/\w{1,40}\.py'
        r'|sglang/srt/server_args\.py)", l|validation errors? for \w{2,40}(?:Config|Args)\b',
        config_frame,
        figure=False,
        joins=False,
    ),
    kind(
        "invalid_config",
        ("Value error, ", "Assertion failed, "),
        r"(?:Value error|Assertion failed), ([^\n]{4,2000}?)(?: \[type=|$)",
        invalid_config,
        figure=False,
        joins=False,
    ),
    kind(
        "error",
        ("Error: ", "Exception: "),
        r"(?<![\w.'\"(/])((?:[a-z_]\w{0,40}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception)): \S",
        error,
        figure=False,
        joins=False,
    ),
    kind(
        "bare_error",
        ("AssertionError", "NotImplementedError"),
        r"(?<![\w.'\"(/])(AssertionError|NotImplementedError)\s*$",
        bare_error,
        figure=False,
        joins=False,
    ),
)
