"""What the simulated engine says of itself: SGLang's server information, vLLM's version, the models, and the "
"counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crossover.simulator.scheduler import Scheduler
from crossover.simulator.settings import Settings
from crossover.simulator.shape import integer


@dataclass
class Counters:
    """What the engine has done since its start; the engine's own truth, untouched by faults of the answers."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    generated_live: int = 0  # also counts requests that are still running
    finished: dict[str, int] = field(default_factory=lambda: {"stop": 0, "length": 0, "abort": 0})
    drafted: int = 0
    accepted: int = 0
    rounds: int = 0
    cached_tokens: int = 0
    ttft_sum_s: float = 0.0
    ttft_count: int = 0
    e2e_sum_s: float = 0.0
    lag_max_s: float = 0.0
    late_steps: int = 0
    steps: int = 0

    @property
    def completed(self) -> int:
        """Requests that came to their end."""
        return self.finished["stop"] + self.finished["length"]


def server_args(settings: Settings) -> dict[str, Any]:
    """Returns SGLang's `server_args`, the effective values where the simulated engine has them."""
    printed: dict[str, Any] = {
        name.replace("-", "_"): _plain(value) for name, value in settings.arguments.items() if name != "model-path"
    }
    return {
        "model_path": settings.model,
        "tokenizer_path": settings.model,
        "served_model_name": settings.model,
        **printed,
        "tp_size": settings.tensor_parallel,
        "dcp_size": settings.dcp,
        "context_length": settings.context_tokens,
        "mem_fraction_static": settings.memory.fraction,
        "kv_cache_dtype": settings.kv_dtype,
        "max_running_requests": integer(settings.arguments.get("max-running-requests")),
        "chunked_prefill_size": settings.extra.get("chunked_prefill_size"),
        "max_prefill_tokens": settings.extra.get("max_prefill_tokens"),
        "disable_radix_cache": not settings.prefix_caching,
        "disable_custom_all_reduce": not settings.custom_all_reduce,
        "enable_mixed_chunk": settings.mixed,
        "reasoning_parser": settings.reasoning_parser,
        "speculative_algorithm": settings.draft_method,
        "decode_log_interval": settings.log_every_steps,
        "device": "cuda",
    }


def vllm_config(settings: Settings) -> dict[str, Any]:
    """Returns the effective configuration as vLLM's /server_info groups it."""
    speculative = {"method": settings.draft_method, "num_speculative_tokens": settings.draft_tokens}
    return {
        "model_config": {"model": settings.model, "max_model_len": settings.context_tokens},
        "parallel_config": {
            "tensor_parallel_size": settings.tensor_parallel,
            "decode_context_parallel_size": settings.dcp,
            "disable_custom_all_reduce": not settings.custom_all_reduce,
        },
        "scheduler_config": {
            "max_num_batched_tokens": settings.prefill_budget_tokens,
            "max_num_seqs": settings.max_running,
            "long_prefill_token_threshold": settings.chunk_limit_tokens or 0,
        },
        "cache_config": {
            "cache_dtype": settings.kv_dtype,
            "gpu_memory_utilization": settings.memory.fraction,
            "enable_prefix_caching": settings.prefix_caching,
            "kv_cache_tokens": settings.memory.kv_tokens,
        },
        "speculative_config": speculative if settings.draft_tokens else None,
    }


def sglang_server_info(settings: Settings, last_decode_tok_s: float) -> dict[str, Any]:
    """Returns the body of /get_server_info."""
    memory, named = settings.memory, dict(settings.phases)
    graph = {"prefill": 0.0, "decode": round(named.get("graph", 0.0), 2), "target_verify": 0.0}
    return {
        **server_args(settings),
        "internal_states": [
            {
                **server_args(settings),
                "world_size": settings.tensor_parallel,
                "startup_time": {
                    "load_weight": named.get("weights", 0.0),
                    "kv_cache_allocation": named.get("kv_cache", 0.0),
                    "cuda_graph": graph,
                },
                "effective_max_running_requests_per_dp": settings.max_running,
                "last_gen_throughput": last_decode_tok_s,
                "memory_usage": {
                    "weight": round(memory.weights_gib, 3),
                    "kvcache": round(memory.kv_gib, 3),
                    "token_capacity": memory.kv_tokens,
                    "graph": {"decode": memory.graph_gib},
                },
            }
        ],
        "max_total_num_tokens": memory.kv_tokens,
        "version": settings.version,
        "frontend": "python",
        "simulated": True,
    }


def models(settings: Settings, served: Mapping[str, int]) -> dict[str, Any]:
    """Returns the body of /v1/models; `served` is {name: created}."""
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": created,
                "owned_by": settings.dialect,
                "root": settings.model,
                "parent": None,
                "max_model_len": settings.context_tokens,
                "simulated": True,
            }
            for name, created in served.items()
        ],
        "simulated": True,
    }


def metrics_text(settings: Settings, scheduler: Scheduler, counters: Counters, served: str) -> str:
    """Returns the counters in Prometheus' text format under the real engine's names."""
    rows = _vllm_rows(settings, scheduler, counters, served) if settings.dialect == "vllm" else None
    rows = rows if rows is not None else _sglang_rows(settings, scheduler, counters, served)
    rows += [
        ("crossover_sim:steps_total", "counter", "", counters.steps),
        ("crossover_sim:late_steps_total", "counter", "", counters.late_steps),
        ("crossover_sim:lag_real_seconds_max", "gauge", "", counters.lag_max_s),
    ]
    lines, seen = [], set()
    for name, kind, labels, value in rows:
        family = name.removesuffix("_sum").removesuffix("_count") if kind == "histogram" else name
        if family not in seen:
            seen.add(family)
            lines += [f"# HELP {family} {family} of the simulated engine.", f"# TYPE {family} {kind}"]
        lines.append(f"{name}{{{labels}}} {float(value)}" if labels else f"{name} {float(value)}")
    return "\n".join(lines) + "\n"


_Rows = list[tuple[str, str, str, float]]


def _vllm_rows(settings: Settings, scheduler: Scheduler, counters: Counters, served: str) -> _Rows:
    base = f'engine="0",model_name="{served}"'
    rows: _Rows = [
        ("vllm:num_requests_running", "gauge", base, len(scheduler.running)),
        ("vllm:num_requests_waiting", "gauge", base, len(scheduler.waiting)),
        ("vllm:kv_cache_usage_perc", "gauge", base, scheduler.kv_usage()),
        ("vllm:prefix_cache_queries_total", "counter", base, scheduler.cache.queries),
        ("vllm:prefix_cache_hits_total", "counter", base, scheduler.cache.hits),
        ("vllm:num_preemptions_total", "counter", base, scheduler.preemptions),
        ("vllm:prompt_tokens_total", "counter", base, counters.prompt_tokens),
        ("vllm:prompt_tokens_cached_total", "counter", base, counters.cached_tokens),
        ("vllm:generation_tokens_total", "counter", base, counters.generation_tokens),
    ]
    rows += [
        ("vllm:request_success_total", "counter", f'engine="0",finished_reason="{reason}",model_name="{served}"', count)
        for reason, count in counters.finished.items()
    ]
    if settings.draft_tokens:
        rows += [
            ("vllm:spec_decode_num_drafts_total", "counter", base, counters.rounds),
            ("vllm:spec_decode_num_draft_tokens_total", "counter", base, counters.drafted),
            ("vllm:spec_decode_num_accepted_tokens_total", "counter", base, counters.accepted),
        ]
    info = (
        f'engine="0",cache_dtype="{settings.kv_dtype}",enable_prefix_caching="{settings.prefix_caching}",'
        f'gpu_memory_utilization="{settings.memory.fraction:g}",block_size="{settings.prefix_block_tokens}"'
    )
    return [
        *rows,
        ("vllm:time_to_first_token_seconds_count", "histogram", base, counters.ttft_count),
        ("vllm:time_to_first_token_seconds_sum", "histogram", base, counters.ttft_sum_s),
        ("vllm:e2e_request_latency_seconds_count", "histogram", base, counters.completed),
        ("vllm:e2e_request_latency_seconds_sum", "histogram", base, counters.e2e_sum_s),
        ("vllm:cache_config_info", "gauge", info, 1),
    ]


def _sglang_rows(settings: Settings, scheduler: Scheduler, counters: Counters, served: str) -> _Rows:
    base = f'engine_type="unified",model_name="{served}"'
    stream = f'engine_type="unified",is_streaming="true",model_name="{served}"'
    rank = f'engine_type="unified",model_name="{served}",moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    return [
        ("sglang:prompt_tokens_total", "counter", stream, counters.prompt_tokens),
        ("sglang:generation_tokens_total", "counter", stream, counters.generation_tokens),
        ("sglang:num_requests_total", "counter", stream, sum(counters.finished.values())),
        ("sglang:cached_tokens_total", "counter", f'cache_source="device",{base}', counters.cached_tokens),
        ("sglang:time_to_first_token_seconds_count", "histogram", stream, counters.ttft_count),
        ("sglang:time_to_first_token_seconds_sum", "histogram", stream, counters.ttft_sum_s),
        ("sglang:e2e_request_latency_seconds_count", "histogram", stream, counters.completed),
        ("sglang:e2e_request_latency_seconds_sum", "histogram", stream, counters.e2e_sum_s),
        ("sglang:max_total_num_tokens", "gauge", rank, settings.memory.kv_tokens),
        ("sglang:num_running_reqs", "gauge", rank, len(scheduler.running)),
        ("sglang:num_queue_reqs", "gauge", rank, len(scheduler.waiting)),
        ("sglang:token_usage", "gauge", rank, scheduler.kv_usage()),
        ("sglang:cache_hit_rate", "gauge", rank, scheduler.cache.hit_rate()),
        ("sglang:spec_accept_length", "gauge", rank, 1 + counters.accepted / max(1, counters.rounds)),
        ("sglang:num_retractions_total", "counter", base, scheduler.preemptions),
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value
