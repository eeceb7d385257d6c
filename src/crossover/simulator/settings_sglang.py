"""SGLang's arguments as settings: its static memory is split over KV pool, draft pool and linear-attention states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.simulator.shape import Memory, integer, is_on, kv_bytes_of, step_cost

_MODELLED = frozenset(
    [
        "quantization-param-path",
        "model-path",
        "served-model-name",
        "host",
        "port",
        "tp-size",
        "dcp-size",
        "chunked-prefill-size",
        "max-prefill-tokens",
        "context-length",
        "mem-fraction-static",
        "kv-cache-dtype",
        "max-running-requests",
        "disable-radix-cache",
        "reasoning-parser",
        "speculative-algorithm",
        "speculative-dspark-block-size",
        "speculative-num-draft-tokens",
        "disable-custom-all-reduce",
        "mamba-full-memory-ratio",
        "mamba-ssm-dtype",
        "enable-mixed-chunk",
        "decode-log-interval",
        "max-total-tokens",
        "disable-cuda-graph",
        "random-seed",
        "enable-cache-report",
        "skip-server-warmup",
    ]
)


def read(arguments: Mapping[str, Any], calibration: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """Returns the fields of `Settings` that SGLang's arguments decide."""
    section, hardware = calibration["sglang"], calibration["hardware"]
    limits = section["limits"]
    tensor_parallel = integer(arguments.get("tp-size"), 1) or 1
    dcp = integer(arguments.get("dcp-size"), 1) or 1
    chunk = integer(arguments.get("chunked-prefill-size"), limits["prefill_tokens"]) or limits["prefill_tokens"]
    most = integer(arguments.get("max-prefill-tokens"), 16384) or 16384
    method = arguments.get("speculative-algorithm")
    drafted = arguments.get("speculative-dspark-block-size", arguments.get("speculative-num-draft-tokens"))
    draft_tokens = (integer(drafted, section["draft_tokens"]) or 0) if method else 0
    dtype = str(arguments.get("kv-cache-dtype", "auto"))
    eager = is_on(arguments.get("disable-cuda-graph"), False)
    custom = not is_on(arguments.get("disable-custom-all-reduce"), False)
    memory = _memory(arguments, section, hardware, tensor_parallel, dcp, kv_bytes_of(dtype), bool(draft_tokens))
    requested = integer(arguments.get("max-running-requests"))
    return {
        "modelled": _MODELLED,
        "model": model or str(arguments.get("model-path", calibration["model"]["name"])),
        "tensor_parallel": tensor_parallel,
        "dcp": dcp,
        "prefill_budget_tokens": max(1, min(chunk, most)) if chunk > 0 else most,
        "chunk_limit_tokens": None,
        "max_running": max(1, min(requested or limits["running"], memory.mamba_slots)),
        "requested_running": requested or limits["running"],
        "context_tokens": integer(arguments.get("context-length"), limits["context_tokens"]),
        "mixed": is_on(arguments.get("enable-mixed-chunk"), False),
        "draft_tokens": draft_tokens,
        "draft_method": str(method) if method else None,
        "prefix_caching": not is_on(arguments.get("disable-radix-cache"), False),
        "prefix_block_tokens": section["prefix_block_tokens"],
        "kv_dtype": dtype,
        "kv_scales": bool(arguments.get("quantization-param-path")),
        "reasoning_parser": arguments.get("reasoning-parser"),
        "memory": memory,
        "cost": step_cost(
            section["step_time"],
            gpus=hardware["gpus"],
            tensor_parallel=tensor_parallel,
            dcp=dcp,
            kv_bytes=kv_bytes_of(dtype),
            drafting=bool(draft_tokens),
            custom_all_reduce=custom,
            autotune=False,
        ),
        "oom_retries": 0,
        "oom_retry_cost_s": 0.0,
        "phases": _phases(section["startup"], eager, is_on(arguments.get("skip-server-warmup"), False)),
        "log_every_steps": integer(arguments.get("decode-log-interval"), 40),
        "custom_all_reduce": custom,
        "autotune": False,
        "refusal": _refusal(memory, tensor_parallel, hardware),
        "extra": {"chunked_prefill_size": chunk, "max_prefill_tokens": most},
    }


def _memory(
    arguments: Mapping[str, Any],
    section: Mapping[str, Any],
    hardware: Mapping[str, Any],
    tensor_parallel: int,
    dcp: int,
    kv_bytes: float,
    drafting: bool,
) -> Memory:
    """Formula: static memory M = (fraction x visible) - weights; states take M x r/(1+r) scaled to the
    published split; the
    rest holds T tokens of the target's KV and T x DCP tokens of the draft's (its pool counts virtual tokens).
    """
    known, visible = section["memory"], hardware["visible_gib"]
    fraction = float(arguments.get("mem-fraction-static", known["default_fraction"]))
    weights = known["weights_gib"] * hardware["gpus"] / tensor_parallel
    (published_fraction, published_static), *_ = known["static_gib_at_fraction"].items()
    static = published_static + (fraction - published_fraction) * visible - (weights - known["weights_gib"])
    (published_ratio, published_mamba), *_ = known["mamba_gib_at_ratio"].items()
    ratio = float(arguments.get("mamba-full-memory-ratio", known["default_mamba_ratio"]))
    share = ratio / (1 + ratio) * published_mamba / published_static / (published_ratio / (1 + published_ratio))
    mamba = max(0.0, static) * share
    half = str(arguments.get("mamba-ssm-dtype", "float32")) in ("bfloat16", "float16")
    per_running = known["mamba_gib_per_running"] * (0.5 + known["conv_share"] if half else 1.0)
    draft_gib = known["draft_gib_per_ktoken"] * dcp * kv_bytes if drafting else 0.0
    target_gib = known["kv_gib_per_ktoken"] * kv_bytes
    tokens = (
        int(max(0.0, static - mamba) / (target_gib + draft_gib) * 1000) // known["page_tokens"] * known["page_tokens"]
    )
    tokens = min(tokens, integer(arguments.get("max-total-tokens"), tokens) or tokens)
    return Memory(
        visible_gib=visible,
        fraction=fraction,
        weights_gib=weights,
        graph_gib=known["graph_gib"],
        non_torch_gib=known["other_gib"],
        kv_gib=tokens / 1000 * target_gib,
        kv_tokens=tokens,
        kv_capacity_tokens=tokens * dcp,
        draft_kv_gib=tokens / 1000 * draft_gib,
        draft_kv_tokens=tokens * dcp if drafting else 0,
        mamba_gib=mamba,
        mamba_slots=int(mamba / per_running + 1e-6),
    )


def _phases(startup: Mapping[str, Any], eager: bool, skip_warmup: bool) -> tuple[tuple[str, float], ...]:
    names = ["process", "engine", "weights", "kv_cache", *([] if eager else ["graph"]), "warmup", "serve"]
    names += [] if skip_warmup else ["warmup_request"]
    return tuple((name, float(startup[f"{name}_s"])) for name in names)


def _refusal(memory: Memory, tensor_parallel: int, hardware: Mapping[str, Any]) -> str | None:
    if tensor_parallel > hardware["gpus"] or memory.weights_gib > memory.visible_gib:
        return (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.31 GiB. GPU 0 has a total capacity of "
            f"{memory.visible_gib:.2f} GiB of which 0.31 GiB is free."
        )
    if memory.kv_tokens <= 0:
        return (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
            f"Current value: self.mem_fraction_static={memory.fraction}"
        )
    return None
