"""How SGLang speaks of its configuration: `/server_info` (once `/get_server_info`) with the schedulers' own states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from crossover.configuration.statements import LOG, METRICS, MODELS, Statement
from crossover.logs.sglang.config import normalise, parse_command, redacted

INFO = "/server_info"
STATES = f"{INFO} internal_states"
# The scheduler's state is what runs; the front end's arguments are what it was started with.
TRUST = (STATES, METRICS, LOG, INFO, MODELS)

# The scheduler's own names for what it worked out; the per-rank limit stands for the argument, which may be open.
_STATE = {"effective_max_running_requests_per_dp": "max_running_requests", "world_size": "world_size"}
_GAUGES = {
    "sglang:context_len": "max_model_len",
    "sglang:page_size": "block_size",
    "sglang:max_total_num_tokens": "kv_cache_tokens",
}


def own_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments under SGLang's own names: flags with underscores, short spellings written out."""
    return {_own_name(name): value for name, value in arguments.items()}


def _own_name(flag: str) -> str:
    words = parse_command("--" + flag.lstrip("-").replace("_", "-"))
    return next(iter(words), flag)


def common(own: Mapping[str, Any]) -> dict[str, Any]:
    """Returns SGLang's settings under the common names; what is not given stays away."""
    return {name: value for name, value in normalise(own).items() if value is not None}


def _server_info(answer: Any) -> Iterator[Statement]:
    if not isinstance(answer, Mapping):
        return
    own = redacted({name: value for name, value in answer.items() if name != "internal_states"})
    settings = common(own)
    for name, ours in (("max_total_num_tokens", "kv_cache_tokens"), ("version", "version")):
        if own.get(name) is not None:
            settings[ours] = own[name]
    yield Statement(INFO, settings, own)
    states = answer.get("internal_states")
    if isinstance(states, list) and states and isinstance(states[0], Mapping):
        yield _state([state for state in states if isinstance(state, Mapping)])


def _state(states: list[Mapping[str, Any]]) -> Statement:
    """One state a data-parallel engine: settings are the same in all, limits are those of the one that binds."""
    own = redacted(states[0])
    settings = common(own)
    for name, ours in _STATE.items():
        values = [state[name] for state in states if state.get(name) is not None]
        if values:
            settings[ours] = min(values)
    sizes = [(state.get("memory_usage") or {}).get("token_capacity") for state in states]
    known = [size for size in sizes if isinstance(size, int)]
    if known:
        settings["kv_cache_tokens"] = min(known)
    if isinstance(own.get("decode_cuda_graph_bs"), list) and own["decode_cuda_graph_bs"]:
        settings["graph_sizes"] = own["decode_cuda_graph_bs"]
    return Statement(STATES, settings, own)


def _metrics(answer: Any) -> Iterator[Statement]:
    """Gauges, one sample a rank: the smallest binds."""
    if not isinstance(answer, Mapping):
        return
    settings = {}
    for name, ours in _GAUGES.items():
        values = [sample["value"] for sample in answer.get(name) or () if sample.get("value") is not None]
        if values:
            settings[ours] = int(min(values))
    yield Statement(METRICS, settings)


READERS: Mapping[str, Callable[[Any], Iterator[Statement]]] = {
    INFO: _server_info,
    "/get_server_info": _server_info,
    METRICS: _metrics,
}
