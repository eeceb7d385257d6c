"""What the engine changed of what was asked for, and says so: features it turned off, limits it set itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.sglang.events import new_event
from crossover.logs.table import LineKind, kind

_OFF: Mapping[str, Mapping[str, Any]] = {
    "cuda graph": {"enforce_eager": True},
    "cuda graphs": {"enforce_eager": True},
    "radix cache": {"prefix_caching": False},
    "overlap scheduler": {"overlap_schedule": False},
    "overlap schedule": {"overlap_schedule": False},
    "mixed chunk": {"mixed_chunk": False},
    "mixed chunked prefill": {"mixed_chunk": False},
    "chunked prefill": {"chunked_prefill_tokens": None},
}
"""What is turned off -> the setting that it is, under its common name."""

_NAMES = "|".join(sorted(_OFF, key=len, reverse=True))


def _adjusted(builder: Builder, line: Line, key: str) -> None:
    if new_event(builder, line, Kind.CONFIG_ADJUSTED, key):
        builder.incidents.add(Kind.CONFIG_ADJUSTED, line, key=key)


def _turned_off(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A setting, but no incident: the line also comes where the feature was off as asked for."""
    for name in re.findall(rf"(?i:{_NAMES})", match["what"]):
        builder.configure(_OFF[name.lower()])


def _off(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure(_OFF["radix cache" if match[1] or match[2] else "cuda graph"])


def _chunk(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"chunked_prefill_tokens": int(match[1])})
    builder.set("chunked_prefill_tokens", int(match[1]))
    _adjusted(builder, line, "chunk")


def _requests(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"max_running_requests": int(match[1])})
    _adjusted(builder, line, "requests")


def _pool_limit(builder: Builder, line: Line, match: re.Match[str]) -> None:
    _adjusted(builder, line, "pool")


def _page_size(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"block_size": int(match[1])})
    _adjusted(builder, line, "page_size")


KINDS: tuple[LineKind, ...] = (
    kind(
        "turned_off",
        ("disabled because", "disabled for prefill server", "disabled due to"),
        rf"(?P<what>(?i:(?:{_NAMES})(?:(?:, (?:and )?| and )(?:{_NAMES}|\w[\w ]{{1,25}}))*)) (?:is|are) disabled "
        r"(?:because|due to|for prefill server)",
        _turned_off,
        figure=False,
        joins=False,
    ),
    kind(
        "off",
        ("isabling radix cache", "isable radix cache for", "forced as chunk cache for", "CUDA Graph is DISABLED"),
        r"[Dd]isabl(?:e|ing) (radix cache) (?:since|for)|(KV cache) is forced as chunk cache|CUDA Graph is DISABLED",
        _off,
        figure=False,
        joins=False,
    ),
    kind(
        "chunk_adjusted",
        "chunked prefill size is adjusted to",
        r"chunked prefill size is adjusted to (\d{1,9})\b",
        _chunk,
        figure=False,
    ),
    kind(
        "requests_set",
        ("Setting max_running_requests to", "Max running requests is reset to"),
        r"(?:Setting max_running_requests to|Max running requests is reset to) (\d{1,9})\b",
        _requests,
        figure=False,
    ),
    kind(
        "pool_limit_too_large",
        "is larger than the profiled value",
        r"max_total_tokens=\d{1,15} is larger than the profiled value \d{1,15}",
        _pool_limit,
        figure=False,
    ),
    kind(
        "page_size_changed",
        ("hange page_size to", "hanging page_size from"),
        r"[Cc]hang(?:e|ing) page_size (?:from \d+ )?to (\d+)",
        _page_size,
        figure=False,
    ),
)
