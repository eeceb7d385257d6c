"""Common names of settings, and when two values are the same setting.

The names are those of `effective_config` in an engine report; each engine spells its flags its own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "tensor_parallel": ("tensor-parallel-size", "tp-size", "tp", "tensor-parallel"),
    "pipeline_parallel": ("pipeline-parallel-size", "pp-size", "pp"),
    "data_parallel": ("data-parallel-size", "dp-size", "dp"),
    "expert_parallel": ("enable-expert-parallel", "ep-size", "expert-parallel-size", "ep"),
    "decode_context_parallel": ("decode-context-parallel-size", "dcp-size", "dcp"),
    "max_model_len": ("max-model-len", "context-length", "context-len", "max-context"),
    "max_running_requests": ("max-num-seqs", "max-running-requests", "concurrency-limit"),
    "memory_fraction": ("gpu-memory-utilization", "mem-fraction-static", "memory-fraction"),
    "chunked_prefill_tokens": ("max-num-batched-tokens", "chunked-prefill-size", "max-batched-tokens"),
    "kv_cache_dtype": ("kv-cache-dtype", "kv-dtype"),
    "attention_backend": ("attention-backend",),
    "moe_backend": ("moe-backend", "moe-runner-backend"),
    "prefix_caching": ("enable-prefix-caching", "prefix-caching"),
    "load_format": ("load-format",),
    "dtype": ("dtype",),
    "quantization": ("quantization",),
    "block_size": ("block-size", "page-size"),
    "disable_custom_all_reduce": ("disable-custom-all-reduce",),
    "speculative_tokens": (
        "num-speculative-tokens", "speculative-num-steps", "speculative-dspark-block-size",
        "speculative-tokens",
    ),
    "speculative_method": ("speculative-algorithm", "speculative-method"),
    "mamba_memory_ratio": ("mamba-full-memory-ratio",),
    "long_prefill_token_threshold": ("long-prefill-token-threshold",),
}  # fmt: skip
_COMMON = {spelling: common for common, spellings in _SPELLINGS.items() for spelling in spellings}
_COMMON |= {common.replace("_", "-"): common for common in _SPELLINGS}

# Values that mean the same to both engines.
_VALUES = {"fp8_e4m3": "fp8", "fp8_e4m3fn": "fp8", "bf16": "bfloat16", "half": "float16", "fp16": "float16"}
_OPEN = frozenset({"auto", "none", "null", "default", ""})


def canonical_name(name: str) -> str:
    """Returns the common name of a flag or field; its own, with underscores, where there is no common one."""
    dashed = name.strip().lstrip("-").lower().replace("_", "-")
    return _COMMON.get(dashed, dashed.replace("-", "_"))


def canonical_arguments(arguments: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Returns common name -> (flag as written, value); speculative settings leave their own mapping."""
    found: dict[str, tuple[str, Any]] = {}
    for flag, value in arguments.items():
        if isinstance(value, Mapping):
            if canonical_name(flag) == "speculative_config":
                for key, inner in value.items():
                    name = {"method": "speculative_method"}.get(key, canonical_name(str(key)))
                    if name in ("speculative_method", "speculative_tokens"):
                        found.setdefault(name, (f"{flag}.{key}", inner))
            continue
        found[canonical_name(str(flag))] = (str(flag), value)
    return found


def same_value(first: Any, second: Any) -> bool:
    """Whether two values are one setting; a value left to the engine (`auto`) agrees with any."""
    if is_open(first) or is_open(second):
        return True
    a, b = _normal(first), _normal(second)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1.0)
    return bool(a == b)


def is_open(value: Any) -> bool:
    """Whether a value leaves the setting to the engine (None, `auto`); `NONE` is a mode, and means off."""
    return value is None or (isinstance(value, str) and value != "NONE" and value.strip().lower() in _OPEN)


def _normal(value: Any) -> Any:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("true", "false"):
            return float(text == "true")
        try:
            return float(text)
        except ValueError:
            text = text.removeprefix("torch.")
            return _VALUES.get(text, text)
    return value
