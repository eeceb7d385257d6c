"""vLLM's arguments as settings: what its memory profiler, its scheduler and its start-up make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.simulator.shape import Memory, integer, is_on, kv_bytes_of, step_cost

_MODELLED = frozenset(
    [
        "calculate-kv-scales",
        "model",
        "served-model-name",
        "host",
        "port",
        "tensor-parallel-size",
        "decode-context-parallel-size",
        "max-num-batched-tokens",
        "max-num-seqs",
        "max-model-len",
        "gpu-memory-utilization",
        "kv-cache-memory-bytes",
        "kv-cache-dtype",
        "enable-prefix-caching",
        "reasoning-parser",
        "long-prefill-token-threshold",
        "speculative-config",
        "disable-custom-all-reduce",
        "enable-flashinfer-autotune",
        "kernel-config",
        "enforce-eager",
        "num-gpu-blocks-override",
        "seed",
        "attention-backend",
        "attention-config",
        "moe-backend",
        "enable-prompt-tokens-details",
    ]
)


def read(arguments: Mapping[str, Any], calibration: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """Returns the fields of `Settings` that vLLM's arguments decide."""
    section, hardware = calibration["vllm"], calibration["hardware"]
    tensor_parallel = integer(arguments.get("tensor-parallel-size"), 1) or 1
    dcp = integer(arguments.get("decode-context-parallel-size"), 1) or 1
    budget = integer(arguments.get("max-num-batched-tokens"), section["limits"]["prefill_tokens"]) or 1
    context = integer(arguments.get("max-model-len"), section["limits"]["context_tokens"]) or 1
    threshold = integer(arguments.get("long-prefill-token-threshold"), 0)
    speculative = arguments.get("speculative-config") or {}
    draft_tokens = int(speculative.get("num_speculative_tokens", section["draft_tokens"])) if speculative else 0
    dtype = str(arguments.get("kv-cache-dtype", "auto"))
    kernel = arguments.get("kernel-config") or {}
    autotune = is_on(arguments.get("enable-flashinfer-autotune", kernel.get("enable_flashinfer_autotune")), False)
    eager = is_on(arguments.get("enforce-eager"), False)
    custom = not is_on(arguments.get("disable-custom-all-reduce"), False)
    memory = _memory(arguments, section, hardware, tensor_parallel, dcp, budget, kv_bytes_of(dtype), eager)
    retries = _oom_retries(section, memory, tensor_parallel)
    return {
        "modelled": _MODELLED,
        "model": model or str(arguments.get("model", calibration["model"]["name"])),
        "tensor_parallel": tensor_parallel,
        "dcp": dcp,
        "prefill_budget_tokens": budget,
        "chunk_limit_tokens": threshold or None,
        "max_running": integer(arguments.get("max-num-seqs"), section["limits"]["running"]),
        "requested_running": integer(arguments.get("max-num-seqs")),
        "context_tokens": context,
        "mixed": True,
        "draft_tokens": draft_tokens,
        "draft_method": str(speculative.get("method", "draft_model")) if speculative else None,
        "prefix_caching": is_on(arguments.get("enable-prefix-caching"), True),
        "prefix_block_tokens": section["prefix_block_tokens"],
        "kv_dtype": dtype,
        "kv_scales": is_on(arguments.get("calculate-kv-scales"), False),
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
            autotune=autotune,
        ),
        "oom_retries": retries,
        "oom_retry_cost_s": section["oom_retry"]["cost_s"] if retries else 0.0,
        "phases": _phases(section["startup"], eager, autotune),
        "log_every_steps": 0,
        "custom_all_reduce": custom,
        "autotune": autotune,
        "refusal": _refusal(memory, context, tensor_parallel, hardware),
    }


def _memory(
    arguments: Mapping[str, Any],
    section: Mapping[str, Any],
    hardware: Mapping[str, Any],
    tensor_parallel: int,
    dcp: int,
    budget: int,
    kv_bytes: float,
    eager: bool,
) -> Memory:
    """Formula: KV cache = fraction x visible - weights - non-torch - profiled activation, or the size that is "
    "pinned."""
    known, visible = section["memory"], hardware["visible_gib"]
    fraction = float(arguments.get("gpu-memory-utilization", known["default_fraction"]))
    weights = known["weights_gib"] * hardware["gpus"] / tensor_parallel
    activation = known["activation_gib"] * budget / known["activation_at_prefill_tokens"]
    pinned = integer(arguments.get("kv-cache-memory-bytes"))
    kv_gib = pinned / 2**30 if pinned else fraction * visible - weights - known["non_torch_gib"] - activation
    tokens = int(max(0.0, kv_gib) * known["kv_tokens_per_gib"] / kv_bytes) * dcp
    if override := integer(arguments.get("num-gpu-blocks-override")):
        tokens = min(tokens, override * section["prefix_block_tokens"])
    return Memory(
        visible_gib=visible,
        fraction=fraction,
        weights_gib=weights,
        non_torch_gib=known["non_torch_gib"],
        activation_gib=activation,
        graph_gib=0.0 if eager else known["graph_gib"],
        kv_gib=kv_gib,
        kv_tokens=tokens // 32 * 32,
        kv_capacity_tokens=tokens // 32 * 32,
    )


def _oom_retries(section: Mapping[str, Any], memory: Memory, tensor_parallel: int) -> int:
    """Allocations retry when what is free after graphs and KV cache is less than the largest prefill may want."""
    taken = memory.weights_gib + memory.non_torch_gib + memory.activation_gib + memory.graph_gib + memory.kv_gib
    short = memory.visible_gib - taken < section["memory"]["transient_gib"]
    return int(section["oom_retry"]["per_gpu"]) * tensor_parallel if short else 0


def _phases(startup: Mapping[str, Any], eager: bool, autotune: bool) -> tuple[tuple[str, float], ...]:
    names = ["process", "engine", "weights", "profile", "kv_cache", "warmup"]
    names += ["autotune"] if autotune else []
    names += [] if eager else ["graph"]
    return tuple((name, float(startup[f"{name}_s"])) for name in [*names, "serve"])


def _refusal(memory: Memory, context: int, tensor_parallel: int, hardware: Mapping[str, Any]) -> str | None:
    if tensor_parallel > hardware["gpus"]:
        return (
            f"RuntimeError: World size ({tensor_parallel}) is larger than the number of available GPUs "
            f"({hardware['gpus']}) in this node."
        )
    if memory.weights_gib + memory.non_torch_gib > memory.visible_gib:
        free = 0.31
        return (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.31 GiB. GPU 0 has a total capacity of "
            f"{memory.visible_gib:.2f} GiB of which {free:.2f} GiB is free."
        )
    if memory.kv_gib <= 0:
        return (
            "ValueError: No available memory for the cache blocks. "
            "Try increasing `gpu_memory_utilization` when initializing the engine."
        )
    if context > memory.kv_tokens:
        needed = memory.kv_gib * context / max(1, memory.kv_tokens)
        return (
            f"ValueError: To serve at least one request with the model's max seq len ({context}), "
            f"({needed:.2f} GiB KV cache is "
            f"needed, which is larger than the available KV cache memory ({memory.kv_gib:.2f} GiB). Based on "
            "the available "
            f"memory, the estimated maximum model length is {memory.kv_tokens}. Try increasing "
            "`gpu_memory_utilization` or "
            "decreasing `max_model_len` when initializing the engine."
        )
    return None
