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
    "tool_calls": TOOL,
    "function_call": TOOL,
}
"""Fields of a delta (chat) or a choice (completions) that carry output."""

SILENT_FIELDS = frozenset(
    {
        "role", "index", "delta", "id", "usage", "finish_reason", "native_finish_reason", "stop_reason",
        "matched_stop", "logprobs", "prompt_logprobs", "token_ids", "prompt_token_ids", "prompt_text",
        "annotations", "hidden_states", "routed_experts", "meta_info", "content_filter_results",
        "obfuscation", "weight_version",
    }
)  # fmt: skip
"""Fields that are known to carry no output."""


def carries_output(value: Any) -> bool:
    """Whether a known output field holds any: whitespace does, the empty string and an empty list do not.

    A tool call counts when it has a name or arguments, an item of a list of texts when it has text.
    """
    if isinstance(value, str):
        return value != ""
    if isinstance(value, Mapping):
        return any(
            carries_output(value.get(key))
            for key in ("function", "name", "arguments", "text", "summary", "data", "custom", "input")
        )
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
                if kind == CONTENT:
                    return CONTENT
                found = TOOL if TOOL in (kind, found) else kind
        elif name == "role" and found == EMPTY:
            found = ROLE
    return found


def unknown_output(fields: Mapping[str, Any]) -> list[str]:
    """Returns the names of fields that are not known and hold text or a list: they may carry tokens."""
    return [
        name
        for name, value in fields.items()
        if name not in OUTPUT_FIELDS and name not in SILENT_FIELDS and isinstance(value, str | list | Mapping) and value
    ]


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
        return "".join(_text_of(value.get(key)) for key in ("function", "name", "arguments", "text"))
    return "".join(_text_of(item) for item in value) if isinstance(value, list) else ""
