"""The records that a log becomes, and the JSON that other tools rely on.

Units stand in the names: `_s` seconds, `_gib` GiB, `_tok_s` tokens per second; fractions are 0..1. Absent is
None, never 0. Records that come by the million are named tuples, because a frozen dataclass takes five times
as long to build.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Rank = Mapping[str, int]
"""The ranks that a line's prefix names, such as `{"dp": 0, "tp": 1}`."""


class Interval(NamedTuple):
    """One throughput line of vLLM: averages since its previous one."""

    t: str | None
    engine_id: int | None
    prefill_tok_s: float | None
    decode_tok_s: float | None
    running: int | None
    waiting: int | None
    kv_usage: float | None
    cpu_kv_usage: float | None
    prefix_hit_rate: float | None
    cpu_prefix_hit_rate: float | None
    external_hit_rate: float | None
    preemptions: int | None
    t_outer: str | None = None


class PrefillBatch(NamedTuple):
    """One prefill line of SGLang."""

    t: str | None
    rank: Rank | None
    new_seq: int | None
    new_tokens: int | None
    cached_tokens: int | None
    pending_tokens: int | None
    kv_usage: float | None
    running: int | None
    queued: int | None
    graph: bool | None
    prefill_tok_s: float | None
    t_outer: str | None = None


class DecodeBatch(NamedTuple):
    """One decode line of SGLang."""

    t: str | None
    rank: Rank | None
    running: int | None
    tokens: int | None
    kv_usage: float | None
    swa_usage: float | None
    mamba_usage: float | None
    accept_len: float | None
    accept_rate: float | None
    graph: bool | None
    decode_tok_s: float | None
    queued: int | None
    t_outer: str | None = None


class Speculation(NamedTuple):
    """One speculative decoding line of vLLM. `accept_len` counts the bonus token; V0 lines are cumulative.

    `window_s` is the span that the line really covers: accepted tokens over accepted tokens per second.
    """

    t: str | None
    engine_id: int | None
    window_s: float | None
    accept_len: float | None
    accept_rate: float | None
    accepted_tokens: int | None
    drafted_tokens: int | None
    accepted_tok_s: float | None
    drafted_tok_s: float | None
    per_position: tuple[float, ...] | None
    t_outer: str | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of cache slots: `name` is target, draft, mamba or swa."""

    name: str
    tokens: int | None
    gib: float | None


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One line of the memory waterfall; `rank` is None where the log does not tell the GPUs apart."""

    item: str
    gib: float
    rank: Rank | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """Events of one kind in one burst. `kind` is a member of `crossover.logs.incidents.Kind`.

    Attributes:
        t, t_outer: of the first event.
        t_last: of the last one; None where the burst is a single event.
        spans_outer: (first, last) outer stamps of each run of events close to each other, in order, since a
            burst may hold long pauses; None where no line had an outer stamp, or the burst is a single event.
    """

    t: str | None
    kind: str
    severity: str
    count: int
    message: str
    advice: str
    t_outer: str | None = None
    t_last: str | None = None
    spans_outer: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What several lines say together; `evidence` holds those lines, as they stand in the log."""

    name: str
    kind: str
    severity: str
    conclusion: str
    advice: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Startup:
    """What the engine said of its own start; durations are the longest over the ranks."""

    container_created: str | None = None
    ready: str | None = None
    ready_seen: bool = False
    weights_load_s: float | None = None
    model_load_s: float | None = None
    model_load_gib: float | None = None
    compile_s: float | None = None
    kernel_warmup_s: float | None = None
    graph_capture_s: float | None = None
    graph_capture_gib: float | None = None
    graph_sizes: tuple[int, ...] | None = None
    graph_count: int | None = None
    engine_init_s: float | None = None
    kv_cache_gib: float | None = None
    kv_cache_tokens: int | None = None
    kv_cache_tokens_total: int | None = None
    dp_size: int | None = None
    max_concurrency: float | None = None
    max_concurrency_at_tokens: int | None = None
    max_running_requests: int | None = None
    context_length: int | None = None
    chunked_prefill_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class EngineReport:
    """All that one log says. Sequences of records may be backed by a temporary file: iterate, or index."""

    engine: Literal["vllm", "sglang"] | None = None
    version: str | None = None
    clock: Literal["engine", "outer"] = "engine"
    startup: Startup = field(default_factory=Startup)
    pools: Sequence[Pool] = ()
    memory: Sequence[MemoryItem] = ()
    intervals: Sequence[Interval] = ()
    prefill_batches: Sequence[PrefillBatch] = ()
    decode_batches: Sequence[DecodeBatch] = ()
    speculation: Sequence[Speculation] = ()
    incidents: Sequence[Incident] = ()
    effective_config: Mapping[str, Any] = field(default_factory=dict)
    lines: int = 0
    unparsed: int = 0
    diagnoses: Sequence[Diagnosis] = ()
    unparsed_examples: Sequence[str] = ()
    failure: Incident | None = None
    """Why the server did not start, or ended: the incident that is the cause, not one that follows from it."""
    newest_first: bool = False
    """The lines go back in time, so that causes stand below what they led to, and little here is right."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON contract: every key of it, and those of `OPTIONAL` only where they are known."""
        return {
            "engine": self.engine,
            "version": self.version,
            "clock": self.clock,
            "startup": plain(self.startup),
            **{name: [plain(record) for record in getattr(self, name)] for name in RECORDS},
            "effective_config": dict(self.effective_config),
            "lines": self.lines,
            "unparsed": self.unparsed,
        }


RECORDS = (
    "pools", "memory", "intervals", "prefill_batches", "decode_batches", "speculation", "incidents",
)  # fmt: skip
"""The lists of the report, in the order of its JSON."""


OPTIONAL = frozenset({"t_outer", "t_last", "spans_outer"})
"""Keys of records that stand in the JSON only where they are known."""


def plain(record: Any) -> dict[str, Any]:
    """Returns a record as a dict that JSON takes; the keys of `OPTIONAL` only where there is a value."""
    values = record._asdict() if hasattr(record, "_asdict") else _fields(record)
    return {
        name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if value is not None or name not in OPTIONAL
    }


def _fields(record: Any) -> dict[str, Any]:
    return {item.name: getattr(record, item.name) for item in dataclasses.fields(record)}
