"""Exceptions of any engine: kept as possible root causes; those that refuse a configuration are incidents."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.crash import asserted, frame, remember_error
from crossover.logs.handlers import failure
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line, message_of
from crossover.logs.table import kind


def error(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Any exception: remembered, as it may be the root cause of what comes; some say what they are."""
    text = message_of(line.text[match.start(1) :])
    remember_error(builder, line, text)
    refused = 0 < line.number - builder.facts.get("config_frame", -_LONG_AGO) <= _FRAME_LINES
    refused = refused and _REFUSING.match(match[1]) is not None
    conflict = _LATE if builder.ready_seen else _CONFLICT  # a server that is up refuses requests, in such words too
    if (refused or conflict.search(line.text, match.start())) and not _NOT_CONFLICT.search(line.text):
        advice = _advice(text)
        builder.incidents.add(Kind.CONFIG_CONFLICT, line, message=text, advice=advice, key=text[:80], repeats=False)


def bare_error(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """An exception without a text, at the end of a traceback; what was asserted may say what does not fit."""
    text = remember_error(builder, line, match[1])
    if _ASSERTED.search(text):
        advice = _advice(text)
        builder.incidents.add(Kind.CONFIG_CONFLICT, line, message=text, advice=advice, key=text[:80], repeats=False)
    elif "assert " in text and "loaded_weight" in text:
        builder.incidents.add(Kind.MODEL_UNSUPPORTED, line, message=text, advice=_OTHER_SHAPE, repeats=False)


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
        advice = _advice(text)
        builder.incidents.add(Kind.CONFIG_CONFLICT, line, message=text, advice=advice, key=text[:80], repeats=False)
    return True


def _advice(text: str) -> str | None:
    """Returns what to do; None where the kind's own advice fits."""
    for pattern, advice in _ADVICE:
        if pattern.search(text):
            return advice
    return None if _CONFLICT.search(text) else _REFUSED


_FRAME_LINES = 6
_LONG_AGO = 1000
_REFUSED = "this version refuses the configuration: change what the message names"
_OTHER_SHAPE = "a tensor of the checkpoint has another shape than this version's model: another version or quantisation"
_REFUSING = re.compile(r"(?:[\w.]{1,120}\.)?(?:Value|Assertion|NotImplemented|Runtime|Type|Validation|Config\w{0,20})E")
_ADVICE = (
    (
        re.compile(r"divisible by|not aligned with the quantized|% [\w.]{1,60} == 0"),
        "the shapes do not divide: take another tensor-parallel size, or another quantisation kernel",
    ),
    (
        re.compile(r"attention backend|[Bb]ackend [\w.]{1,60} is not valid"),
        "this attention backend cannot do it: choose another one, or drop what the reason names",
    ),
    (
        re.compile(r"[Vv]ocab"),
        "draft and target must share their vocabulary: take a draft model made for this target",
    ),
)

_CONFLICT = re.compile(
    r"(?:DCP|PCP|[Cc]ontext parallel\w{0,8})[^\n]{0,80}(?:not support|requires?|must|cannot)|Workspace is locked"
    r"|not (?:yet )?(?:supported|compatible|allowed|implemented) (?:with|when|for|together|if|in combination)"
    r"|cannot be (?:used|combined|enabled|set) |is not supported for this|incompatible with|mutually "
    r"exclusive"
    r"|must be divisible by|does not support|requires attention impl|requires --|can not be used|conflicts? "
    r"with"
    r"|only supported (?:with|when|for)|must not be (?:used|set)|is unsupported with|is greater than the derived"
    r"|does not match the quantization method|is not supported for quantization method|is not divisible by"
    r"|not aligned with the quantized weight shape|cannot be enabled at the same time|is smaller than max_model_len"
    r"|[Bb]ackend [\w.]{1,60} is not valid for this configuration|No valid attention backend found"
    r"|Invalid attention backend|[Vv]ocab(?:ulary)? ?size[^\n]{0,80}(?:match|differ|must be)"
)
_ASSERTED = re.compile(
    r"assert [^\n]{0,120}(?:vocab_size|% [\w.]{0,40}(?:tp_size|world_size|parallel_size)\w{0,20} == 0)"
)
_LATE = re.compile(
    r"(?:DCP|PCP|[Cc]ontext parallel\w{0,8})[^\n]{0,80}(?:not support|requires?|must|cannot)|Workspace is locked"
)
_NOT_CONFLICT = re.compile(
    r"Engine core init|out of memory|CUDA error|KV cache is needed|KV cache \(|cache blocks|AssertionError: res="
    r"|User-specified max_model_len|not supported for now|recognize this architecture|Repo id must be|local folder"
    r"|[Rr]epository|ValidationError: \d|\b(?:[Tt]his|[Tt]he) request\b|context length is"
    r"|Free memory on|Available memory on|Mamba cache|tensor's size|compute capability|the current GPU"
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
        "frame",
        '.py", line ',
        r'File "[^"\n]{0,300}?([^/"\n]{1,80}\.py)", line (\d{1,6}), in (<?\w{1,80}>?)',
        frame,
        figure=False,
        joins=False,
    ),
    kind(
        "asserted",
        "    assert ",
        r"    (assert \S[^\n]{0,150})",
        asserted,
        figure=False,
        joins=False,
    ),
    kind(
        "process_frame",
        (", in <module>", ", in _bootstrap", ", in run_engine_core", ", in run_scheduler_process"),
        r'File "[^"\n]{1,300}", line \d{1,6}, in (?:<module>|_bootstrap\b|run_engine_core|run_scheduler_process)',
        lambda builder, line, match: builder.facts.update(process_frame=line.number),
        figure=False,
        joins=False,
    ),
    kind(
        "leaked",
        "resource_tracker: There appear to be ",
        r"resource_tracker: There appear to be \d",
        lambda builder, line, match: builder.facts.update(leaked=line.number),
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
        ("Error: ", "Exception: ", "OutOfResources: ", "BackendCompilerFailed: ", "exc.Unsupported: ", "Expired: "),
        r"(?<![\w.'\"(/])((?:[a-z_]\w{0,40}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception)"
        r"|(?:[a-z_]\w{0,40}\.){1,6}(?:OutOfResources|BackendCompilerFailed|Unsupported|\w{1,40}Expired)): \S",
        error,
        figure=False,
        joins=False,
    ),
    kind(
        "invalid_argument",
        (": error: ", "error: unexpected argument", "provide the model as a positional argument"),
        r"(?:\b(?:vllm|sglang|trtllm-serve)(?: [a-z]{1,12}){0,2}|[\w-]{1,40}\.py|python3? -m [\w.]{1,60}): error: "
        r"(?:argument |unrecognized arguments|the following arguments are required|ambiguous option|expected )"
        r"|\berror: unrecognized arguments|\berror: unexpected argument '|provide the model as a positional argument",
        failure(Kind.INVALID_ARGUMENT),
        figure=False,
        joins=False,
    ),
    kind(
        "native_exception",
        "  what():  ",
        r"^\s*what\(\):  (\S.{0,300})",
        lambda builder, line, match: remember_error(builder, line, match[1]),
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
