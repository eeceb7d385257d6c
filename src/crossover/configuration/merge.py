"""One effective configuration from all sources: each value with its source, disagreements, and what was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crossover.configuration.statements import Dialect, Statement, dialect_of, statements
from crossover.confounds import is_open, same_value
from crossover.redaction import is_secret, is_secret_variable

AS_ASKED, CHANGED, NOT_STATED, LEFT_OPEN = "as asked", "changed", "not stated", "left open"

# Capacities follow from the settings and the machine: a difference in them is a result.
WORKED_OUT = frozenset({"kv_cache_tokens", "kv_cache_blocks", "max_concurrency", "graph_sizes", "world_size"})
# Where a server finds its files and where it listens: a launcher's business, no setting of the engine.
_PLACEMENT = frozenset(
    {
        "model", "model_path", "speculative_model", "speculative_draft_model_path", "served_model_name", "tokenizer",
        "tokenizer_path", "host", "port", "command", "download_dir", "ssl_keyfile", "ssl_certfile", "ssl_ca_certs",
    }
)  # fmt: skip
# Settings that an engine states in parts; a part without an argument of its own is asked for by the whole.
_PARTS = {"attention_backend": ("prefill_attention_backend", "decode_attention_backend")}


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        name: common name; the engine's own where there is no common one.
        value: what the most trusted source with a value says; None where all leave it open.
        source: that source, None without a value.
        stated: every source that says anything, with its value, most trusted first.
        flag: argument or variable that asked for it, None where nothing did.
        requested: what it asked for.
        verdict: `as asked`, `changed`, `not stated` (asked for, but no source has a value), `left open` (what was asked
            for is the engine's choice, such as `auto`); None where nothing asked.
        common: whether the name is a common one.
    """

    name: str
    value: Any
    source: str | None
    stated: tuple[tuple[str, Any], ...]
    flag: str | None = None
    requested: Any = None
    verdict: str | None = None
    common: bool = True

    @property
    def disagree(self) -> bool:
        """Whether two sources have different values."""
        values = [value for _, value in self.stated if not is_open(value)]
        return any(not same_value(values[0], value) for value in values[1:])

    def to_dict(self) -> dict[str, Any]:
        """Returns the setting as JSON holds it."""
        return {
            "setting": self.name,
            "value": self.value,
            "source": self.source,
            "stated": dict(self.stated),
            "disagree": self.disagree,
            "flag": self.flag,
            "requested": self.requested,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Configuration:
    """What a server ran with.

    Attributes:
        settings: every setting that a source states or an argument asks for, by name.
        sources: what was read, most trusted first.
    """

    settings: tuple[Setting, ...]
    sources: tuple[str, ...]

    @property
    def values(self) -> dict[str, Any]:
        """The effective values by common name: settings alone, not what the engine worked out from them."""
        kept = (one for one in self.settings if one.common and one.value is not None and one.name not in WORKED_OUT)
        return {setting.name: setting.value for setting in kept}

    def to_dict(self) -> dict[str, Any]:
        """Returns the configuration as an engine report holds it under `configuration`."""
        return {"sources": list(self.sources), "settings": [setting.to_dict() for setting in self.settings]}


@dataclass(frozen=True)
class _Request:
    """One argument or variable: how it is written, what it asks for, and where the engine's own name lies."""

    flag: str
    value: Any
    path: tuple[str, ...]


def effective_configuration(
    engine: str | None,
    report: Mapping[str, Any] | None,
    info: Mapping[str, Any],
    requested: Mapping[str, Any] | None = None,
) -> Configuration:
    """Merges what all sources say and sets it against what was asked for.

    Args:
        engine: its name, None where it is not known.
        report: engine report of its log, or None.
        info: answers of its information endpoints, by path.
        requested: `arguments` and `environment` as the experiment gives them, or None.

    Returns:
        The settings, sorted by name.
    """
    said = statements(engine, report, info)
    dialect = dialect_of(engine)
    asked, others = _asked(dialect, requested or {})
    names = {name for one in said for name in one.settings} | asked.keys()
    found = [_setting(name, said, asked.get(name)) for name in names]
    found += [made for request in others if (made := _own(request, said)) is not None]
    kept = [one for one in found if one.stated or one.flag]
    return Configuration(tuple(sorted(kept, key=lambda one: one.name)), tuple(one.source for one in said))


def _setting(name: str, said: Sequence[Statement], request: _Request | None) -> Setting:
    stated = tuple((one.source, _plain(one.settings[name])) for one in said if name in one.settings)
    return _judged(name, tuple(pair for pair in stated if pair[1] is not None), request)


def _own(request: _Request, said: Sequence[Statement]) -> Setting | None:
    """A setting without a common name, by the engine's own; a variable that nothing repeats is no setting of it."""
    stated = []
    for one in said:
        value: Any = one.own
        for key in request.path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            stated.append((one.source, _plain(value)))
    if not stated and request.flag.isupper():
        return None
    return replace(_judged(".".join(request.path), tuple(stated), request), common=False)


def _judged(name: str, stated: tuple[tuple[str, Any], ...], request: _Request | None) -> Setting:
    known = [pair for pair in stated if not is_open(pair[1])]
    source, value = next(iter(known or stated), (None, None))
    if request is None:
        return Setting(name, value, source, stated)
    verdict = NOT_STATED
    if is_open(request.value):
        verdict = LEFT_OPEN
    elif known:
        verdict = AS_ASKED if same_value(request.value, value) else CHANGED
    return Setting(name, value, source, stated, request.flag, request.value, verdict)


def _plain(value: Any) -> Any:
    """A list of one (a model's served names) is that one; `None` as text is nothing."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return None if value == "None" else value


def _asked(dialect: Dialect | None, requested: Mapping[str, Any]) -> tuple[dict[str, _Request], list[_Request]]:
    """Returns what is asked for under common names, and the requests that have none."""
    named: dict[str, _Request] = {}
    others: list[_Request] = []
    for request in _requests(dialect, requested):
        own: Any = request.value
        for key in reversed(request.path):
            own = {key: own}
        names = dialect.common(own) if dialect else {}
        for name, value in names.items():
            named[name] = _Request(request.flag, value, request.path)
        if not names:
            others.append(request)
    for whole, parts in _PARTS.items():
        for part in parts if whole in named else ():
            named.setdefault(part, named[whole])
    return {name: request for name, request in named.items() if name not in _PLACEMENT}, others


def _requests(dialect: Dialect | None, requested: Mapping[str, Any]) -> list[_Request]:
    found = []
    arguments = requested.get("arguments")
    for flag, value in arguments.items() if isinstance(arguments, Mapping) else ():
        own = next(iter(dialect.own_arguments({flag: None}) if dialect else [str(flag).replace("-", "_")]))
        if value is None or own in _PLACEMENT or is_secret(own):
            continue
        if isinstance(value, Mapping):
            found += [
                _Request(f"{flag}.{key}", item, (own, str(key)))
                for key, item in value.items()
                if item is not None and key not in _PLACEMENT
            ]
        else:
            found.append(_Request(str(flag), value, (own,)))
    environment = requested.get("environment")
    for name, value in environment.items() if isinstance(environment, Mapping) else ():
        if value is not None and not is_secret_variable(str(name)):
            found.append(_Request(str(name), value, (str(name),)))
    return found
