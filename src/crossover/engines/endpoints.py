"""The requests that are made to a running engine besides completions: cache reset and counters."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache

import httpx
from prometheus_client.parser import text_string_to_metric_families

from crossover.engines.base import Engine


def http_client(base_url: str, timeout_s: float, api_key: str | None = None) -> httpx.Client:
    """Returns a client for one server. Proxies of the environment are ignored: these servers are near, and a
    proxy answers in their place (a known cause of failed warm-ups)."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx.Client(base_url=base_url, timeout=timeout_s, headers=headers, trust_env=False, verify=_tls())


@cache
def _tls() -> ssl.SSLContext:
    """Reads the authorities once: it takes tens of milliseconds, and a server is polled while it starts."""
    return httpx.create_ssl_context(trust_env=False)


def reset_cache(engine: Engine, base_url: str, timeout_s: float = 30.0, api_key: str | None = None) -> bool | None:
    """Empties the prefix cache. Returns whether the server accepted, None where the engine has no such
    request."""
    if engine.cache_reset is None:
        return None
    try:
        with http_client(base_url, timeout_s, api_key) as client:
            return client.request(engine.cache_reset.method, engine.cache_reset.path).is_success
    except httpx.HTTPError:
        return False


def read_counters(
    engine: Engine, base_url: str, timeout_s: float = 10.0, api_key: str | None = None
) -> dict[str, float | None] | None:
    """Returns the engine's counters under our names, None where the server publishes no metrics."""
    if engine.metrics_path is None:
        return None
    try:
        with http_client(base_url, timeout_s, api_key) as client:
            response = client.get(engine.metrics_path)
    except httpx.HTTPError:
        return None
    return counters_in(response.text, engine.counters) if response.is_success else None


def counters_in(text: str, names: Mapping[str, str]) -> dict[str, float | None]:
    """Returns counters of a Prometheus text, summed over their labels (data-parallel engines, streaming or
    not).

    Args:
        text: the exposition.
        names: our name to the sample's name; a sample that is not there is None, not 0.
    """
    totals: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
    return {ours: totals.get(theirs) for ours, theirs in names.items()}
