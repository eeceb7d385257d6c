"""Which fields of a streamed event carry output, and of what kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REASONING, CONTENT, TOOL, ROLE, EMPTY, USAGE, DONE = range(7)
KINDS = ("reasoning", "content", "tool", "role", "empty", "usage", "done")
"""The kinds of an event, by code; the first three are output."""

OUTPUT_FIELDS: Mapping[str, int] = {
    "content": CONTENT,
    "text": CONTENT,
    "refusal": CONTENT,
    "reasoning": REASONING,
    "reasoning_content": REASONING,
    "reasoningContent": REASONING,
    "reasoning_details": REASONING,
    "thinking": REASONING,
    "audio": CONTENT,
    "tool_calls": TOOL,
    "function_call": TOOL,
}
"""Fields of a delta (chat) or a choice (completions) that carry output."""

SILENT_FIELDS = frozenset(
    {
        "role", "index", "delta", "id", "usage", "finish_reason", "native_finish_reason", "stop_reason",
        "matched_stop", "logprobs", "prompt_logprobs", "token_ids", "prompt_token_ids", "prompt_text",
        "annotations", "hidden_states", "routed_experts", "meta_info", "content_filter_results",
        "obfuscation", "weight_version", "content_filter_offsets", "name", "error", "provider_specific_fields",
        "extra_content",
    }
)  # fmt: skip
"""Fields that carry no output of their own; gateways repeat the reasoning in `provider_specific_fields`."""

_REASONING_PARTS = frozenset({"thinking", "reasoning"})
_OUTPUT_KEYS = (
    "function", "name", "arguments", "text", "summary", "data", "custom", "input", "thinking", "reasoning", "refusal",
    "transcript",
)  # fmt: skip
_OUTPUT_KEYS_SET = frozenset(_OUTPUT_KEYS)
_TEXT_KEYS = ("function", "name", "arguments", "text", "thinking", "reasoning", "refusal")


def carries_output(value: Any) -> bool:
    """Whether a known output field holds any: whitespace does, the empty string and an empty list do not.

    A tool call counts when it has a name or arguments, an item of a list of texts when it has text.
    """
    if isinstance(value, str):
        return value != ""
    if isinstance(value, Mapping):
        return any(carries_output(value.get(key)) for key in _OUTPUT_KEYS)
    if isinstance(value, list):
        return any(carries_output(item) for item in value)
    return False


def classify(fields: Mapping[str, Any]) -> int:
    """Returns the kind of a delta or choice: content before tool before reasoning where it carries
    several.
    """
    found = EMPTY
    for name, value in fields.items():
        if value is None or value == "":
            continue
        kind = OUTPUT_FIELDS.get(name)
        if kind is not None:
            if carries_output(value):
                if kind == CONTENT and value.__class__ is list and not any(map(_is_answer, value)):
                    kind = REASONING
                if kind == CONTENT:
                    return CONTENT
                found = TOOL if TOOL in (kind, found) else kind
        elif name == "role" and found == EMPTY:
            found = ROLE
    return found


def _is_answer(part: Any) -> bool:
    """Whether a part of a content list has output that is no reasoning (a part names its own type)."""
    if isinstance(part, Mapping) and _REASONING_PARTS & {part.get("type"), *part}:
        return False
    return carries_output(part)


def unknown_output(fields: Mapping[str, Any]) -> list[str]:
    """Returns the names of fields that are not known and hold text or a list: they may carry tokens.

    A list of content parts none of which can be read counts as such a field.
    """
    content = fields.get("content")
    unread = content.__class__ is list and any(map(_is_unread, content))
    return ["content[]"] * unread + [
        name
        for name, value in fields.items()
        if name not in OUTPUT_FIELDS and name not in SILENT_FIELDS and isinstance(value, str | list | Mapping) and value
    ]


def _is_unread(part: Any) -> bool:
    return isinstance(part, Mapping) and not carries_output(part) and not _OUTPUT_KEYS_SET & part.keys()


def texts(fields: Mapping[str, Any]) -> str:
    """Returns the text that a delta or choice carries, all output fields together; used to count tokens by
    tokenizer.
    """
    parts = []
    for name, value in fields.items():
        if name in OUTPUT_FIELDS and value and name != "reasoning_details":
            parts.append(_text_of(value))
    return "".join(parts)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "".join(_text_of(value.get(key)) for key in _TEXT_KEYS)
    return "".join(_text_of(item) for item in value) if isinstance(value, list) else ""
