"""What each source says of a server's configuration, under common names; nothing is decided here.

Common names are those of `effective_config` in an engine report, listed in docs/logs.md.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from crossover.configuration import dialects
from crossover.confounds import is_open

LOG = "log"
METRICS = "/metrics"
MODELS = "/v1/models"
# Start-up facts of an engine report that are settings too: what the engine made of what it was asked for.
_LOGGED_LIMITS = {
    "max_running_requests": "max_running_requests",
    "kv_cache_tokens": "kv_cache_tokens",
    "max_concurrency": "max_concurrency",
    "graph_sizes": "graph_sizes",
}
_CUSTOM_ALL_REDUCE_OFF = re.compile(r"[Cc]ustom (?:quick )?all-?reduce.{0,20} disabled")


@dataclass(frozen=True)
class Statement:
    """What one source says.

    Attributes:
        source: `log`, or the path of the endpoint, with the part of its answer where there are several.
        settings: common name -> value; a setting that the source leaves open (None, `auto`) may be there.
        own: the engine's own name -> value, for arguments that have no common name.
    """

    source: str
    settings: Mapping[str, Any]
    own: Mapping[str, Any] = field(default_factory=dict)


class Dialect(Protocol):
    """How one engine speaks of its configuration; a module is one.

    Attributes:
        READERS: path of an endpoint -> what reads its answer.
        TRUST: sources, the one nearest to what really runs first; others come after them.
    """

    READERS: Mapping[str, Callable[[Any], Iterator[Statement]]]
    TRUST: tuple[str, ...]

    def own_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns command-line arguments under the engine's own names of them."""

    def common(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the engine's own settings under the common names."""


def dialect_of(engine: str | None) -> Dialect | None:
    """Returns how an engine speaks, None for one that is not known."""
    known = {module.name for module in pkgutil.iter_modules(dialects.__path__)}
    if engine not in known:
        return None
    module: Any = importlib.import_module(f"{dialects.__name__}.{engine}")
    return module  # type: ignore[no-any-return]


def statements(engine: str | None, report: Mapping[str, Any] | None, info: Mapping[str, Any]) -> list[Statement]:
    """Returns what every source says, the most trusted first.

    Args:
        engine: its name, None where it is not known.
        report: the engine report of its log (`EngineReport.to_dict()`), None without a log.
        info: answers of the information endpoints by path, and the metrics that tell configuration under `/metrics`
            (see `crossover.engines.endpoints.server_info`).
    """
    dialect = dialect_of(engine)
    found = [one for one in [_logged(report or {})] if one.settings]
    readers = {MODELS: _models, **(dialect.READERS if dialect else {})}
    for path, answer in info.items():
        reader = readers.get(path)
        if reader is not None:
            found += [one for one in reader(answer) if one.settings or one.own]
    trust = dialect.TRUST if dialect else (LOG,)
    return sorted(found, key=lambda one: trust.index(one.source) if one.source in trust else len(trust))


def _logged(report: Mapping[str, Any]) -> Statement:
    config = report.get("effective_config") or {}
    settings = {name: value for name, value in config.items() if name != "raw"}
    startup = report.get("startup") or {}
    for fact, name in _LOGGED_LIMITS.items():
        if startup.get(fact) not in (None, []):
            settings[name] = startup[fact]
    if report.get("version"):
        settings["version"] = report["version"]
    return Statement(LOG, settings | dict(_happened(report)))


def _happened(report: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings that an engine changes with a warning only."""
    for incident in report.get("incidents") or ():
        kind, message = incident.get("kind"), str(incident.get("message"))
        if kind == "fp8_kv_scale_default":
            yield "kv_scale", 1.0
        elif kind == "allreduce_fallback" and _CUSTOM_ALL_REDUCE_OFF.search(message):
            yield "disable_custom_all_reduce", True


def _models(answer: Any) -> Iterator[Statement]:
    """`/v1/models` of either engine: the limit of the first model."""
    models = answer.get("data") if isinstance(answer, Mapping) else None
    for model in models if isinstance(models, list) else ():
        if isinstance(model, Mapping):
            limit = model.get("max_model_len")
            yield Statement(MODELS, {} if is_open(limit) else {"max_model_len": limit})
            return
