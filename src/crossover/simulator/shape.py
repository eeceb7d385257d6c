"""The small records that the settings of both dialects are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StepCost:
    """Coefficients of one step's duration (see `scheduler.Scheduler`). Formula: DESIGN's a + b x (KV tokens / DCP).

    `prefill_base_s` and `prefill_context_s` hold for `prefill_chunk_tokens` new tokens.
    """

    prefill_chunk_tokens: int
    prefill_base_s: float
    prefill_context_s: float
    decode_base_s: float
    decode_per_running_s: float
    kv_s_per_token: float  # already divided by the DCP size
    mixed_decode_share: float

    def prefill_s(self, new_tokens: float, context_tokens: float) -> float:
        """Returns the seconds that `new_tokens` behind `context_tokens` take."""
        chunk = self.prefill_chunk_tokens
        return new_tokens / chunk * (self.prefill_base_s + self.prefill_context_s * context_tokens / chunk)

    def decode_s(self, running: int, kv_tokens: float) -> float:
        """Returns the seconds of one decode step over `running` requests that hold `kv_tokens` together."""
        return self.decode_base_s + self.decode_per_running_s * running + self.kv_s_per_token * kv_tokens


@dataclass(frozen=True)
class Memory:
    """Memory of one GPU in GiB, and the token pools. `kv_tokens` is as printed, `kv_capacity_tokens` what all "
    "ranks hold."""

    visible_gib: float
    fraction: float
    weights_gib: float
    kv_gib: float
    kv_tokens: int
    kv_capacity_tokens: int
    graph_gib: float
    non_torch_gib: float = 0.0
    activation_gib: float = 0.0
    draft_kv_gib: float = 0.0
    draft_kv_tokens: int = 0
    mamba_gib: float = 0.0
    mamba_slots: int = 0


@dataclass(frozen=True)
class Jit:
    """A kernel compiled on the first step of a kind after the start, unless a warm-up ran such a step."""

    kernel: str
    phase: str  # prefill or decode
    cost_s: float
    min_new_tokens: int = 0
    min_context_tokens: int = 0
    min_running: int = 0
    min_kv_tokens: int = 0


def step_cost(
    section: Mapping[str, Any],
    *,
    gpus: int,
    tensor_parallel: int,
    dcp: int,
    kv_bytes: float,
    drafting: bool,
    custom_all_reduce: bool,
    autotune: bool,
) -> StepCost:
    """Returns the coefficients for a configuration.

    Args:
        section: the dialect's `step_time` from the calibration, which holds for `gpus` GPUs.
        kv_bytes: bytes an element of the KV cache; the coefficients hold for 1.
        drafting: a draft model runs, so that each step also verifies its tokens.
    """
    slower = gpus / tensor_parallel
    tuned = section["autotune_share"] if autotune else 1.0
    base = section["decode_base_ms"] * tuned * (1.0 if drafting else section["without_draft_share"]) * slower
    base += section["dcp_ms"] if dcp > 1 else 0.0
    base += 0.0 if custom_all_reduce or tensor_parallel == 1 else section["all_reduce_fallback_ms"]
    return StepCost(
        prefill_chunk_tokens=section["prefill_chunk_tokens"],
        prefill_base_s=section["prefill_base_s"] * tuned * slower,
        prefill_context_s=section["prefill_context_s"] * slower,
        decode_base_s=base / 1000,
        decode_per_running_s=section["decode_per_running_ms"] * slower / 1000,
        kv_s_per_token=section["kv_ms_per_ktoken"] * kv_bytes / dcp / 1e6,
        mixed_decode_share=section["mixed_decode_share"],
    )


def kv_bytes_of(dtype: str) -> float:
    """Returns the bytes an element of a KV cache data type takes (`auto` is bfloat16 here)."""
    return 1.0 if dtype.startswith("fp8") else 0.5 if dtype.startswith(("fp4", "nvfp4", "int4")) else 2.0


def is_on(value: Any, default: bool) -> bool:
    """Returns a switch as given in a file or on a command line."""
    if value is None:
        return default
    if isinstance(value, str):
        return value.strip().lower() in ("1", "true", "yes", "on", "")
    return bool(value)


def integer(value: Any, default: int | None = None) -> int | None:
    """Returns a whole number as both engines read it: `1000000`, `1_000_000`, `128k`, `1M` (decimal), `1Ki` "
    "(binary)."""
    if value is None:
        return default
    text = str(value).strip().replace("_", "")
    for suffix, factor in (("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30), ("K", 2**10), ("M", 2**20), ("G", 2**30)):
        if text.endswith(suffix):
            return int(float(text.removesuffix(suffix)) * factor)
    for suffix, factor in (("k", 10**3), ("m", 10**6), ("g", 10**9)):
        if text.endswith(suffix):
            return int(float(text.removesuffix(suffix)) * factor)
    return int(float(text))
