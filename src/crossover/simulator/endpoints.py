"""The endpoints besides completions: health, models, metrics, versions, cache reset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from crossover.simulator import server_info
from crossover.simulator.http import Request
from crossover.simulator.settings import Settings

if TYPE_CHECKING:
    from crossover.simulator.server import Simulator

REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_Answer = tuple[int, Any, str]
_JSON, _TEXT = "application/json", "text/plain; version=0.0.4; charset=utf-8"


def answer(simulator: Simulator, request: Request) -> _Answer:
    """Returns (status, body, content type)."""
    routes = {**_BOTH, **_OWN[simulator.settings.dialect]}
    known = routes.get(request.path)
    if known is None:
        return 404, {"detail": "Not Found"}, _JSON
    methods, respond = known
    if request.method not in methods:
        return 405, {"detail": "Method Not Allowed"}, _JSON
    if request.path.startswith("/v1/") and not is_authorised(simulator.settings, request):
        return 401, {"error": "Unauthorized"}, _JSON
    return respond(simulator)


def is_authorised(settings: Settings, request: Request) -> bool:
    """Tells whether the request carries one of the API keys, if any are set."""
    keys = settings.arguments.get("api-key")
    if not keys:
        return True
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    return given in (keys if isinstance(keys, list) else [keys])


def _health(simulator: Simulator) -> _Answer:
    return (200 if simulator.ready else 503), "", "text/plain"


def _models(simulator: Simulator) -> _Answer:
    return 200, server_info.models(simulator.settings, simulator.served), _JSON


def _metrics(simulator: Simulator) -> _Answer:
    name = next(iter(simulator.served))
    text = server_info.metrics_text(simulator.settings, simulator.scheduler, simulator.counters, name)
    return 200, text, _TEXT


def _version(simulator: Simulator) -> _Answer:
    return 200, {"version": simulator.settings.version, "simulated": True}, _JSON


def _vllm_info(simulator: Simulator) -> _Answer:
    return 200, {"vllm_config": server_info.vllm_config(simulator.settings), "simulated": True}, _JSON


def _reset_prefix_cache(simulator: Simulator) -> _Answer:
    if simulator.scheduler.running:
        return 200, "", "text/plain"  # as vLLM: it answers 200 and resets nothing while blocks are in use
    simulator.scheduler.cache.reset()
    return 200, "", "text/plain"


def _server_info(simulator: Simulator) -> _Answer:
    return 200, server_info.sglang_server_info(simulator.settings, simulator.log.last_decode_tok_s), _JSON


def _model_info(simulator: Simulator) -> _Answer:
    return 200, {"model_path": simulator.settings.model, "is_generation": True, "simulated": True}, _JSON


def _flush_cache(simulator: Simulator) -> _Answer:
    if not simulator.scheduler.idle:
        return 400, "Flush cache failed: requests are running or waiting.\n", "text/plain"
    simulator.scheduler.cache.reset()
    return 200, "Cache flushed.\nPlease check backend logs for more details.\n", "text/plain"


_Route = tuple[tuple[str, ...], Callable[["Simulator"], _Answer]]
_BOTH: Mapping[str, _Route] = {
    "/health": (("GET",), _health),
    "/ping": (("GET", "POST"), _health),
    "/v1/models": (("GET",), _models),
    "/metrics": (("GET",), _metrics),
}
_OWN: Mapping[str, Mapping[str, _Route]] = {
    "vllm": {
        "/version": (("GET",), _version),
        "/server_info": (("GET",), _vllm_info),
        "/reset_prefix_cache": (("POST",), _reset_prefix_cache),
    },
    "sglang": {
        "/get_server_info": (("GET",), _server_info),
        "/server_info": (("GET",), _server_info),
        "/get_model_info": (("GET",), _model_info),
        "/model_info": (("GET",), _model_info),
        "/health_generate": (("GET",), _health),
        "/flush_cache": (("GET", "POST"), _flush_cache),
    },
}
