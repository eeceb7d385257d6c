"""What a running server says of itself: the answers of its information endpoints and the metrics that tell its
configuration, without its secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from crossover.engines.base import Engine
from crossover.engines.endpoints import http_client
from crossover.redaction import HIDDEN, hide, is_secret


def server_info(
    engine: Engine,
    base_url: str,
    timeout_s: float = 60.0,
    api_key: str | None = None,
    hide: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns the JSON of every information path that answers, by path (without its query).

    Of alternatives (an older and a newer path of the same thing) the first that answers is kept. The metrics that tell
    configuration stand under the path of the metrics, as `information_in` gives them.

    Args:
        timeout_s: of one request. vLLM looks its whole machine over before it answers, which takes seconds.
        api_key: sent as the server wants it, and hidden in what comes back.
        hide: further texts that must be in no record.
    """
    answers: dict[str, Any] = {}
    with http_client(base_url, timeout_s, api_key) as client:
        for paths in engine.info_paths:
            for path in (paths,) if isinstance(paths, str) else paths:
                answer = _json(client, path)
                if answer is not None:
                    answers[path.partition("?")[0]] = answer
                    break
        if engine.metrics_path and engine.info_metrics:
            text = _get(client, engine.metrics_path)
            told = information_in(text.text, engine.info_metrics) if text is not None else {}
            if told:
                answers[engine.metrics_path] = told
    values = [value for value in (api_key, *hide) if value]
    return {path: without_secrets(answer, engine.secret_arguments, values) for path, answer in answers.items()}


def _get(client: httpx.Client, path: str) -> httpx.Response | None:
    try:
        response = client.get(path)
    except httpx.HTTPError:
        return None
    return response if response.is_success else None


def _json(client: httpx.Client, path: str) -> Any:
    response = _get(client, path)
    try:
        return None if response is None else response.json()
    except ValueError:
        return None


def information_in(text: str, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Returns samples of a Prometheus text, by name: `{"labels": {...}, "value": ...}` each, one a rank or engine.

    Args:
        text: the exposition.
        names: the samples wanted; one that is not there gives no entry.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in names:
                found.setdefault(sample.name, []).append({"labels": dict(sample.labels), "value": sample.value})
    return found


def without_secrets(answer: Any, arguments: frozenset[str], values: Sequence[str]) -> Any:
    """Returns an answer with the values of secret fields, flags and the given texts hidden.

    Args:
        answer: JSON.
        arguments: secret flags, without their dashes.
        values: texts to hide wherever they stand; one of fewer than four characters would hide half of the answer.
    """
    flags = re.compile(rf"(--(?:{'|'.join(map(re.escape, sorted(arguments)))})[ =])\S+")

    def cleaned(value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            return {key: cleaned(item, str(key)) for key, item in value.items()}
        if isinstance(value, list):
            return [cleaned(item, name) for item in value]
        if not isinstance(value, str) or not value:
            return value
        if name.lower().replace("_", "-") in arguments or is_secret(name):
            return HIDDEN
        return hide(flags.sub(rf"\1{HIDDEN}", value), values)

    return cleaned(answer)
