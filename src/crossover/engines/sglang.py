"""SGLang: `python3 -m sglang.launch_server`, switches without a negative form, lists as several words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.engines.base import CacheReset, Engine, Placement
from crossover.engines.rendering import FlagStyle, render_flags

# As the parser of 0.5.23 has them; tests/real asks it again.
_STYLE = FlagStyle(
    negated=False,
    odd=frozenset(
        {
            "enable-tf32-matmul",
            "dcp-replicate-q-proj",
            "enable-tp-lm-head-all-to-all",
            "enable-fused-qk-norm-rope",
            "speculative-enable-w4a4-mxfp4-megamoe",
            "mm-enable-dp-encoder",
            "experts-shared-outer-loras",
            "lora-strict-loading",
            "dllm-fdfo",
            "ple-offload-embedding",
            "enable-decoder-swa-bounded-replay",
            "enable-dsa-fused-indexer",
        }
    ),
    json_lists=frozenset({"sidecar-args", "decoupled-spec-connect-endpoints", "forward-hooks"}),
)


def _command(arguments: Mapping[str, Any], placement: Placement) -> tuple[str, ...]:
    rest = dict(arguments)
    model = rest.pop("model-path", None) or rest.pop("model", None) or placement.model_path
    rest.setdefault("host", placement.host)
    rest.setdefault("port", placement.port)
    if placement.served_model_name is not None:
        rest.setdefault("served-model-name", placement.served_model_name)
    if placement.draft_path is not None:
        rest["speculative-draft-model-path"] = placement.draft_path
    return ("python3", "-m", "sglang.launch_server", "--model-path", str(model), *render_flags(rest, _STYLE))


ENGINE = Engine(
    name="sglang",
    build_command=_command,
    cache_reset=CacheReset("POST", "/flush_cache"),
    info_paths=(("/server_info", "/get_server_info"), ("/model_info", "/get_model_info"), "/v1/models"),
    info_metrics=("sglang:context_len", "sglang:page_size", "sglang:max_total_num_tokens"),
    # It answers completions before its own warm-up request has gone through.
    health_path="/health",
    # Present only when the server was started with enable-metrics.
    metrics_path="/metrics",
    counters={
        "prompt_tokens": "sglang:prompt_tokens_total",
        "generation_tokens": "sglang:generation_tokens_total",
        "cached_tokens": "sglang:cached_tokens_total",
        "preemptions": "sglang:num_retractions_total",
    },
)
