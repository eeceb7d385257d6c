"""How vLLM speaks of its configuration: `/server_info`, `/version`, and the labels of `vllm:cache_config_info`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from crossover.configuration.statements import LOG, METRICS, MODELS, Statement
from crossover.logs.literals import pairs_of_call, value_of
from crossover.logs.vllm.config import normalise

INFO = "/server_info"
ENVIRONMENT = f"{INFO} vllm_env"
CACHE_INFO = "vllm:cache_config_info"
# The engine's process fills in the cache's labels after it has measured its memory; the log has what it resolved
# later than the front end, whose copy /server_info shows.
TRUST = (METRICS, LOG, INFO, MODELS)

# Fields that have another name than their argument.
_RENAMED: Mapping[str, str] = {"cache_dtype": "kv_cache_dtype"}
# Groups whose fields are arguments of their own, with the fields that matter where others would collide.
_GROUPS: Mapping[str, frozenset[str] | None] = {
    "model_config": None,
    "cache_config": None,
    "parallel_config": None,
    "scheduler_config": None,
    "load_config": frozenset({"load_format"}),
    "device_config": frozenset({"device"}),
    "structured_outputs_config": frozenset({"reasoning_parser"}),
}
_WHOLE = ("speculative_config", "compilation_config", "attention_config", "kernel_config")
# What the engine worked out, under the names of the engine report.
_WORKED_OUT = {
    "kv_cache_size_tokens": "kv_cache_tokens",
    "kv_cache_max_concurrency": "max_concurrency",
    "num_gpu_blocks": "kv_cache_blocks",
}
_MODES = {"mode": ("NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE"), "cudagraph_mode": ("NONE",)}


def own_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments under vLLM's own names, which are the flags with underscores."""
    return {name.lstrip("-").replace("-", "_"): value for name, value in arguments.items()}


def common(own: Mapping[str, Any]) -> dict[str, Any]:
    """Returns vLLM's settings under the common names."""
    compilation = own.get("compilation_config")
    passes = compilation.get("pass_config") if isinstance(compilation, Mapping) else None
    fused = passes.get("fuse_allreduce_rms") if isinstance(passes, Mapping) else None
    return normalise(own.items()) | ({} if fused is None else {"allreduce_fusion": fused})


def _server_info(answer: Any) -> Iterator[Statement]:
    """JSON groups (`?config_format=json`), or the text that the log prints too (older servers)."""
    config = answer.get("vllm_config") if isinstance(answer, Mapping) else None
    if isinstance(config, str):
        own = dict(pairs_of_call(config))
        yield Statement(INFO, common(own), own)
    elif isinstance(config, Mapping):
        own = _flattened(config)
        yield Statement(INFO, common(own) | _worked_out(own), own)
    variables = answer.get("vllm_env") if isinstance(answer, Mapping) else None
    if isinstance(variables, Mapping):
        yield Statement(ENVIRONMENT, {}, variables)


def _flattened(config: Mapping[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for group, wanted in _GROUPS.items():
        fields = config.get(group)
        for name, value in fields.items() if isinstance(fields, Mapping) else ():
            if wanted is None or name in wanted:
                own[_RENAMED.get(str(name), str(name))] = value
    for group in _WHOLE:
        if isinstance(config.get(group), Mapping):
            own[group] = {name: _mode(name, value) for name, value in config[group].items()}
    return own


def _mode(name: str, value: Any) -> Any:
    """JSON holds the numbers of the modes, the log their names."""
    names = _MODES.get(name, ())
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names)
    return names[value] if known else value


def _worked_out(own: Mapping[str, Any]) -> dict[str, Any]:
    return {ours: own[theirs] for theirs, ours in _WORKED_OUT.items() if own.get(theirs) is not None}


def _version(answer: Any) -> Iterator[Statement]:
    if isinstance(answer, Mapping) and answer.get("version"):
        yield Statement("/version", {"version": str(answer["version"])})


def _metrics(answer: Any) -> Iterator[Statement]:
    """The labels are texts; data-parallel engines repeat them, the first one speaks."""
    sample = next(iter(answer.get(CACHE_INFO) or ()), None) if isinstance(answer, Mapping) else None
    labels = sample.get("labels") if isinstance(sample, Mapping) else None
    if isinstance(labels, Mapping):
        own = {_RENAMED.get(str(name), str(name)): value_of(str(text)) for name, text in labels.items()}
        yield Statement(METRICS, common(own) | _worked_out(own), own)


READERS: Mapping[str, Callable[[Any], Iterator[Statement]]] = {
    INFO: _server_info,
    "/version": _version,
    METRICS: _metrics,
}
