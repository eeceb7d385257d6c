"""Incidents: what went wrong or was done otherwise than asked, as an enum with severity and advice.

Events of one kind within a minute are one incident with a count, so that a burst of 32 is one entry. The count is how
often it happened, not how many lines tell it: what nested tracebacks, other ranks and the processes above repeat counts
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from crossover.logs.lines import Line, seconds_of
from crossover.logs.model import Incident


class Severity(StrEnum):
    """error: the run is invalid or did not start. warning: the figures are affected. note: worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Kind(StrEnum):
    """Every incident kind. The text after each in `CATALOGUE` is its advice."""

    OOM_RETRY = "oom_retry"
    OUT_OF_MEMORY = "out_of_memory"
    PREEMPTION = "preemption"
    RETRACTION = "retraction"
    JIT_COMPILE = "jit_compile"
    AUTOTUNE_DISABLED = "autotune_disabled"
    SLOW_TOKENIZER = "slow_tokenizer"
    FP8_KV_SCALE_DEFAULT = "fp8_kv_scale_default"
    FP8_Q_SCALE_DEFAULT = "fp8_q_scale_default"
    FP8_KV_ACCURACY = "fp8_kv_accuracy"
    KV_OVERCOMMIT = "kv_overcommit"
    KV_SUGGESTION_WRONG = "kv_suggestion_wrong"
    KV_TOO_SMALL = "kv_too_small"
    MAMBA_BLOCKS_TOO_FEW = "mamba_blocks_too_few"
    CONTEXT_EXCEEDS_POOL = "context_exceeds_pool"
    REQUEST_TOO_LONG = "request_too_long"
    REQUEST_FAILED = "request_failed"
    CONCURRENCY_CAPPED = "concurrency_capped"
    DECODE_STARVED = "decode_starved"
    GRAPH_SIZES_CAPPED = "graph_sizes_capped"
    GRAPH_MODE_CHANGED = "graph_mode_changed"
    KV_PADDING = "kv_padding"
    WARMUP_FAILED = "warmup_failed"
    NCCL_TIMEOUT = "nccl_timeout"
    NCCL_ERROR = "nccl_error"
    PORT_IN_USE = "port_in_use"
    SHM_TOO_SMALL = "shm_too_small"
    GPU_OCCUPIED = "gpu_occupied"
    RESOURCES_MISSING = "resources_missing"
    DEVICE_UNUSABLE = "device_unusable"
    ENVIRONMENT_BROKEN = "environment_broken"
    KERNEL_BUILD_FAILED = "kernel_build_failed"
    GPU_UNSUPPORTED = "gpu_unsupported"
    ACCESS_DENIED = "access_denied"
    INVALID_ARGUMENT = "invalid_argument"
    DISK_FULL = "disk_full"
    ENGINE_DIED = "engine_died"
    SCHEDULER_EXCEPTION = "scheduler_exception"
    KILLED = "killed"
    HEALTH_CHECK_FAILED = "health_check_failed"
    CUDA_ERROR = "cuda_error"
    START_TIMEOUT = "start_timeout"
    KV_TRANSFER_FAILED = "kv_transfer_failed"
    FALLBACK_KERNEL = "fallback_kernel"
    ALLREDUCE_FALLBACK = "allreduce_fallback"
    FUSION_WITHOUT_COMPILATION = "fusion_without_compilation"
    DEVICE_NAME_MISMATCH = "device_name_mismatch"
    QUANTIZATION_MISMATCH = "quantization_mismatch"
    DRAFT_WINDOW_SHORT = "draft_window_short"
    CONFIG_CONFLICT = "config_conflict"
    CONFIG_ADJUSTED = "config_adjusted"
    MODEL_UNSUPPORTED = "model_unsupported"
    MODEL_NOT_FOUND = "model_not_found"
    DOWNLOAD_CORRUPT = "download_corrupt"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True)
class Entry:
    """What goes with a kind: how bad it is, and what to do."""

    severity: Severity
    advice: str


_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE
CATALOGUE: Mapping[Kind, Entry] = {
    Kind.OOM_RETRY: Entry(_W, "lower the memory fraction or pin the KV bytes; exclude the requests that overlap"),
    Kind.OUT_OF_MEMORY: Entry(_E, "lower the memory fraction, the token budget, the concurrency or the length"),
    Kind.PREEMPTION: Entry(_W, "the KV pool is too small for this concurrency: latencies include recomputation"),
    Kind.RETRACTION: Entry(_W, "the KV pool is too small for this concurrency: retracted requests start again"),
    Kind.JIT_COMPILE: Entry(_W, "let the warm-up cover these shapes; exclude the requests that overlap"),
    Kind.AUTOTUNE_DISABLED: Entry(_W, "kernels use heuristic tactics: enable autotuning, or compare like with like"),
    Kind.SLOW_TOKENIZER: Entry(_W, "tokenisation enters TTFT at long inputs: use a fast tokenizer or send token ids"),
    Kind.FP8_KV_SCALE_DEFAULT: Entry(_W, "the engine ran with KV scale 1.0: check quality, or calibrate the scales"),
    Kind.FP8_Q_SCALE_DEFAULT: Entry(_N, "the query scale was set to the key's; it matters to some backends only"),
    Kind.FP8_KV_ACCURACY: Entry(_N, "FP8 KV cache: compare quality with a 16-bit cache"),
    Kind.KV_OVERCOMMIT: Entry(_W, "the KV cache took more than the log allows: lower gpu-memory-utilization"),
    Kind.KV_SUGGESTION_WRONG: Entry(_W, "do not follow the engine's suggestion: it cannot be right"),
    Kind.KV_TOO_SMALL: Entry(_E, "lower max-model-len, or give the KV cache more memory"),
    Kind.MAMBA_BLOCKS_TOO_FEW: Entry(_E, "lower max-num-seqs to the number of Mamba cache blocks"),
    Kind.CONTEXT_EXCEEDS_POOL: Entry(_W, "input + output must fit the token pool, not the context length"),
    Kind.REQUEST_TOO_LONG: Entry(_W, "the request did not fit: the run plan and the server's limits disagree"),
    Kind.REQUEST_FAILED: Entry(_W, "requests were refused or ended with an error: none of them is a completed one"),
    Kind.CONCURRENCY_CAPPED: Entry(_W, "fewer requests run at once than asked for: raise the pool that binds"),
    Kind.DECODE_STARVED: Entry(
        _W, "prefill takes the steps: limit its chunks, and take no decode rate from these samples"
    ),
    Kind.GRAPH_SIZES_CAPPED: Entry(_W, "batches above the largest captured size run without a graph"),
    Kind.GRAPH_MODE_CHANGED: Entry(_N, "another graph mode than asked for: name it in the comparison"),
    Kind.KV_PADDING: Entry(_N, "part of the KV memory is padding"),
    Kind.WARMUP_FAILED: Entry(
        _E, "the engine's own warm-up request failed: check proxies (no_proxy) and the log above"
    ),
    Kind.NCCL_TIMEOUT: Entry(_E, "a rank hung or died: look for the first error of any rank above"),
    Kind.NCCL_ERROR: Entry(_E, "collective communication failed: look for the first error of any rank above"),
    Kind.PORT_IN_USE: Entry(_E, "another process holds the port: stop it, or choose another port"),
    Kind.SHM_TOO_SMALL: Entry(_E, "give the container more shared memory (--shm-size or --ipc=host)"),
    Kind.SCHEDULER_EXCEPTION: Entry(_E, "the last line of this traceback is the cause; the server ends with it"),
    Kind.GPU_OCCUPIED: Entry(
        _E, "the GPUs have unequal free memory: another process is on them; stop it before measuring"
    ),
    Kind.RESOURCES_MISSING: Entry(_E, "fewer devices than the parallel sizes ask for: lower them, or add nodes"),
    Kind.DEVICE_UNUSABLE: Entry(_E, "no usable GPU: check what the container may see, the driver and nvidia-smi"),
    Kind.ENVIRONMENT_BROKEN: Entry(_E, "a package or compiler is missing or does not fit: use the engine's own image"),
    Kind.KERNEL_BUILD_FAILED: Entry(
        _E, "a kernel could not be built for this GPU: compiler, CUDA and architecture must fit; or another backend"
    ),
    Kind.GPU_UNSUPPORTED: Entry(
        _E, "this GPU cannot run it (number format, quantisation or kernel): another checkpoint, backend or GPU"
    ),
    Kind.ACCESS_DENIED: Entry(
        _E, "no right to read or write it: a token with access for a gated model, owner and mode for a file"
    ),
    Kind.INVALID_ARGUMENT: Entry(_E, "the command line is refused: correct the argument; versions differ in them"),
    Kind.DISK_FULL: Entry(_E, "the disk is full: make room, or move the caches (HF_HOME, XDG_CACHE_HOME)"),
    Kind.ENGINE_DIED: Entry(_E, "look at the root cause above this line"),
    Kind.KILLED: Entry(_E, "killed from outside: check the exit code (137 = out of host memory) and the kernel log"),
    Kind.HEALTH_CHECK_FAILED: Entry(_E, "the server stopped answering: look at what runs at that time"),
    Kind.CUDA_ERROR: Entry(_E, "a kernel failed: rerun with blocking launches to find it; the run is invalid"),
    Kind.START_TIMEOUT: Entry(_E, "raise the engine's ready timeout, or find what it waits for"),
    Kind.KV_TRANSFER_FAILED: Entry(_E, "prefill and decode servers lost each other: these requests failed"),
    Kind.FALLBACK_KERNEL: Entry(_W, "a slower kernel than the configured one ran: name it in the comparison"),
    Kind.ALLREDUCE_FALLBACK: Entry(_W, "all-reduce runs on plain NCCL: enable the custom one, or say so"),
    Kind.FUSION_WITHOUT_COMPILATION: Entry(_W, "announced fusions may not run, as compilation is off"),
    Kind.DEVICE_NAME_MISMATCH: Entry(_W, "settings looked up by device name may be another device's"),
    Kind.QUANTIZATION_MISMATCH: Entry(_W, "check quality: the kernel expects another scale format"),
    Kind.DRAFT_WINDOW_SHORT: Entry(_W, "the draft model sees less than the context: acceptance falls with length"),
    Kind.CONFIG_CONFLICT: Entry(_E, "two options exclude each other in this version: change one"),
    Kind.CONFIG_ADJUSTED: Entry(_N, "the engine changed what was asked for: compare effective configurations"),
    Kind.MODEL_UNSUPPORTED: Entry(_E, "this version does not know the model or the option for it"),
    Kind.MODEL_NOT_FOUND: Entry(_E, "check the model path and what was downloaded"),
    Kind.DOWNLOAD_CORRUPT: Entry(_E, "delete the temporary file and download again; verify digests"),
    Kind.STALLED: Entry(_W, "no progress after this line: look at what the engine waits for"),
}

BURST_S = 60.0
BURST_LINES = 2000
_KEPT = 5000  # incidents at most: a log of nothing but errors must not fill the memory
# A simulated minute may be a second of the outer clock, so events of one span are much closer than those of a burst.
SPAN_S = 0.1
_SPANS = 200  # spans of a burst at most; what comes later widens the last one


@dataclass(slots=True)
class _Open:
    t: str | None
    t_outer: str | None
    number: int
    kind: Kind
    severity: Severity
    count: int
    message: str
    advice: str
    last_s: float | None
    last_number: int
    clock: str = ""
    by_rank: Counter[Any] = field(default_factory=Counter)
    told: dict[Any, set[Hashable]] = field(default_factory=dict)
    t_last: str | None = None
    spans: list[list[str]] = field(default_factory=list)

    def again(self, line: Line, now_s: float | None) -> None:
        """Notes the time of a further event of the burst."""
        near = now_s is not None and self.last_s is not None and now_s - self.last_s <= SPAN_S
        self.last_s, self.last_number = now_s if now_s is not None else self.last_s, line.number
        self.t_last = line.t or self.t_last
        if line.t_outer is None:
            return
        if self.spans and (near or len(self.spans) >= _SPANS):
            self.spans[-1][1] = line.t_outer
        else:
            self.spans.append([line.t_outer, line.t_outer])

    def tell(self, rank: Any, event: Hashable) -> int:
        """Remembers an event of a rank, and returns how many different ones it told."""
        told = self.told.setdefault(rank, set())
        if len(told) < _KEPT:
            told.add(event)
        return len(told)

    def incident(self) -> Incident:
        several = len(self.spans) > 1 or any(first != last for first, last in self.spans)
        return Incident(
            self.t, self.kind.value, self.severity.value, self.count, self.message, self.advice, self.t_outer,
            self.t_last, tuple((first, last) for first, last in self.spans) if several else None,
        )  # fmt: skip


class Told(NamedTuple):
    """An incident, and the numbers of the first and the last line that tells it."""

    first: int
    last: int
    incident: Incident


def _clock_of(t: str | None) -> str:
    """What a stamp has: a year, a date or a time alone. Stamps of two such clocks cannot be compared."""
    return "" if t is None else "date" if t.startswith("--") else "time" if t.startswith("T") else "year"


class IncidentLog:
    """Collects events and merges bursts."""

    def __init__(self) -> None:
        self._all: list[_Open] = []
        self._latest: dict[tuple[Kind, str], _Open] = {}

    def add(
        self,
        kind: Kind,
        line: Line,
        *,
        message: str | None = None,
        advice: str | None = None,
        count: int = 1,
        severity: Severity | None = None,
        key: str = "",
        rank: Any = None,
        repeats: bool = True,
        event: Hashable | None = None,
    ) -> None:
        """Records `count` events. Events with the same kind and `key` within a minute are one incident.

        Args:
            rank: where every rank reports the same event; the count is then that of the busiest rank.
            repeats: False where further lines of the burst belong to the same event and do not count.
            event: what tells events of one rank apart: the same one again does not count, with `repeats` or without.
        """
        entry = CATALOGUE[kind]
        now = seconds_of(line.t_outer or line.t)
        clock = _clock_of(line.t_outer or line.t)
        latest = self._latest.get((kind, key))
        if latest is not None and self._same_burst(latest, now if clock == latest.clock else None, line.number):
            latest.again(line, now)
            if event is not None:
                latest.count = max(latest.count, latest.tell(rank, event))
            elif repeats and rank is None:
                latest.count += count
            elif repeats:
                latest.by_rank[rank] += count
                latest.count = max(latest.count, latest.by_rank[rank])
            return
        if len(self._all) >= _KEPT:
            if latest is not None:
                latest.count += count
            return
        opened = _Open(
            line.t, line.t_outer, line.number, kind, severity or entry.severity, count,
            message or line.message, advice or entry.advice, now, line.number, clock,
        )  # fmt: skip
        opened.by_rank[rank] += count
        if event is not None:
            opened.tell(rank, event)
        if line.t_outer is not None:
            opened.spans.append([line.t_outer, line.t_outer])
        self._all.append(opened)
        self._latest[kind, key] = opened

    @staticmethod
    def _same_burst(latest: _Open, now: float | None, number: int) -> bool:
        if now is not None and latest.last_s is not None:
            return -BURST_S <= now - latest.last_s <= BURST_S or (now < 86400 and now - latest.last_s < -80000)
        return number - latest.last_number <= BURST_LINES

    def refine(self, kind: Kind, message: str, key: str = "") -> None:
        """Replaces the message of the newest incident of a kind, as a later line says more."""
        if (kind, key) in self._latest:
            self._latest[kind, key].message = message

    def settle(self, kind: Kind, severity: Severity, advice: str, key: str = "") -> None:
        """Replaces severity and advice of the newest incident of a kind, as later lines show what came of it."""
        if (kind, key) in self._latest:
            self._latest[kind, key].severity = severity
            self._latest[kind, key].advice = advice

    def has(self, *kinds: Kind) -> bool:
        return any(item.kind in kinds for item in self._all)

    def __len__(self) -> int:
        return len(self._all)

    def told(self) -> list[Told]:
        """Returns the incidents in the order of the log, with the first and the last line that tells each."""
        return [Told(item.number, item.last_number, item.incident()) for item in self._all]
