"""vLLM: `vllm serve`, booleans in pairs (`--flag`, `--no-flag`), nested configuration as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.engines.base import CacheReset, Engine, Placement
from crossover.engines.rendering import FlagStyle, render_flags

# As the parser of 0.32.0 has them; tests/real asks it again.
_STYLE = FlagStyle(
    negated=True,
    odd=frozenset(
        {
            "headless",
            "grpc",
            "data-parallel-multi-port-external-lb",
            "disable-log-stats",
            "aggregate-engine-logging",
        }
    ),
    repeated=frozenset({"middleware"}),
    json_lists=frozenset({"allowed-origins", "allowed-methods", "allowed-headers"}),
)


def _command(arguments: Mapping[str, Any], placement: Placement) -> tuple[str, ...]:
    rest = dict(arguments)
    model = rest.pop("model", None) or placement.model_path
    rest.setdefault("host", placement.host)
    rest.setdefault("port", placement.port)
    if placement.served_model_name is not None:
        rest.setdefault("served-model-name", placement.served_model_name)
    speculative = rest.get("speculative-config")
    if placement.draft_path is not None and isinstance(speculative, Mapping):
        rest["speculative-config"] = {**speculative, "model": placement.draft_path}
    return ("vllm", "serve", str(model), *render_flags(rest, _STYLE))


ENGINE = Engine(
    name="vllm",
    build_command=_command,
    cache_reset=CacheReset("POST", "/reset_prefix_cache", {"VLLM_SERVER_DEV_MODE": "1"}),
    info_paths=("/version", "/v1/models", "/server_info?config_format=json"),
    info_metrics=("vllm:cache_config_info",),
    metrics_path="/metrics",
    counters={
        "prompt_tokens": "vllm:prompt_tokens_total",
        "generation_tokens": "vllm:generation_tokens_total",
        "cached_tokens": "vllm:prefix_cache_hits_total",
        "preemptions": "vllm:num_preemptions_total",
    },
    base_environment={"VLLM_NO_USAGE_STATS": "1"},
)
