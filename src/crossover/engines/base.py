"""What the rest of the package needs to know of an engine, as data and two functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crossover.engines.rendering import environment_value


@dataclass(frozen=True)
class CacheReset:
    """The request that empties an engine's prefix cache between cells.

    Attributes:
        method: HTTP method.
        path: path below the server's address.
        environment: variables that the server must have been started with for the path to exist.
    """

    method: str
    path: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """Where a server finds its weights and where it listens: the part of a command line that is no intent.

    Attributes:
        model_path: folder (or hub name) of the target model, as the engine's process sees it.
        host: address to listen on.
        port: port to listen on.
        draft_path: folder of the draft model, None without one.
        served_model_name: the name that clients use, None for the engine's own choice (its model path).
    """

    model_path: str
    host: str
    port: int
    draft_path: str | None = None
    served_model_name: str | None = None


CommandBuilder = Callable[[Mapping[str, Any], Placement], tuple[str, ...]]


@dataclass(frozen=True)
class Engine:
    """One inference engine.

    Attributes:
        name: the name that experiments use.
        build_command: makes the command line from normalised arguments and a placement.
        cache_reset: how the prefix cache is emptied, None where the engine cannot.
        info_paths: GET paths whose JSON tells version and effective configuration; those that answer are
            kept. Several in a tuple are spellings of one, of which the first that answers is kept.
        info_metrics: samples of the metrics whose labels or value tell configuration.
        health_path: answers with an error of the server (5xx) while the engine is still warming itself up, which
            may be after the first completion has come back; None where the engine warms up before it listens.
        metrics_path: Prometheus text, None where there is none.
        counters: our names (`prompt_tokens`, `generation_tokens`, `cached_tokens`, `preemptions`) to the
            engine's.
        base_environment: variables that every start of this engine gets unless the experiment says otherwise.
        secret_arguments: arguments whose values reach no record.
    """

    name: str
    build_command: CommandBuilder
    cache_reset: CacheReset | None = None
    info_paths: tuple[str | tuple[str, ...], ...] = ()
    info_metrics: tuple[str, ...] = ()
    health_path: str | None = None
    metrics_path: str | None = None
    counters: Mapping[str, str] = field(default_factory=dict)
    base_environment: Mapping[str, str] = field(default_factory=dict)
    secret_arguments: frozenset[str] = frozenset({"api-key", "admin-api-key", "hf-token", "ssl-keyfile-password"})

    def command(
        self,
        arguments: Mapping[str, Any],
        *,
        model_path: str,
        host: str,
        port: int,
        draft_path: str | None = None,
        served_model_name: str | None = None,
    ) -> tuple[str, ...]:
        """Returns the command line, its flags exactly as this engine takes them.

        Args:
            arguments: flag names (dashes or underscores, no leading dashes) to values: True and False are
                switches, None removes the flag, a mapping is JSON, a list is several values of one flag.
            model_path: see `Placement`, as for the others.
            host: used unless `arguments` has a host.
            port: used unless `arguments` has a port.
            draft_path: see `Placement`.
            served_model_name: used unless `arguments` has one.
        """
        placement = Placement(model_path, host, port, draft_path, served_model_name)
        return self.build_command(normalise(arguments), placement)

    def environment(self, declared: Mapping[str, Any], *, cache_reset: bool = False) -> dict[str, str]:
        """Returns the variables for the engine's process, declared ones winning over the engine's own.

        Args:
            declared: variables of the experiment; None removes one of the engine's own.
            cache_reset: whether the prefix cache is to be reset through the endpoint, which may need
                variables.
        """
        needed = self.cache_reset.environment if cache_reset and self.cache_reset else {}
        merged: dict[str, Any] = {**self.base_environment, **needed, **declared}
        return {name: environment_value(value) for name, value in merged.items() if value is not None}

    def address(self, arguments: Mapping[str, Any]) -> tuple[str | None, int | None]:
        """Returns the host and port that the arguments themselves ask for, each None where they do not."""
        given = normalise(arguments)
        host, port = given.get("host"), given.get("port")
        return (None if host is None else str(host), None if port is None else int(port))

    def model_name(self, arguments: Mapping[str, Any], *, model_path: str, served_model_name: str | None = None) -> str:
        """Returns the id under which the server will list the model in `/v1/models`."""
        given = normalise(arguments).get("served-model-name")
        if isinstance(given, list | tuple):
            given = given[0]
        return str(given or served_model_name or model_path)


def normalise(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments under their dashed names (`max_model_len` is `max-model-len`), in the given
    order."""
    return {name.lstrip("-").replace("_", "-"): value for name, value in arguments.items()}
