"""What a measurement is asked to do: where to send, how often, and with which sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import SplitResult, quote, urlsplit

from crossover.errors import InputError

Api = Literal["chat", "completions"]
TokenCounts = Literal["continuous_usage", "token_ids", "none"]

API_PATHS: Mapping[str, str] = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible endpoint.

    Args:
        base_url: scheme, host, port and, behind a gateway, a path prefix; without `/v1`.
        model: the name the server knows the model by.
        api: `chat` or `completions`.
        api_key: sent as a bearer token; it never appears in the repr nor in a recording.
    """

    base_url: str
    model: str
    api: Api = "chat"
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.api not in API_PATHS:
            raise InputError(f"unknown API {self.api!r}", place="api", remedy=f"use one of {', '.join(API_PATHS)}")
        try:
            parts = self.parts
            known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
            why = ""
        except ValueError as error:
            known, why = False, f": {error}"
        if not known or not self.base_url.isprintable() or " " in self.base_url:
            raise InputError(
                f"{self.base_url!r} is no URL of a server{why}",
                place="url",
                remedy="use http://HOST:PORT or https://HOST",
            )
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise InputError(
                "holds a line break or a character that no HTTP header may hold",
                place="API key",
                remedy="give the key alone",
            )

    @property
    def parts(self) -> SplitResult:
        """The URL in parts."""
        return urlsplit(self.base_url)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.parts.scheme == "https"

    @property
    def host(self) -> str:
        """The host's name or address."""
        return self.parts.hostname or ""

    @property
    def port(self) -> int:
        """The TCP port, by default that of the scheme."""
        return self.parts.port or (443 if self.tls else 80)

    @property
    def path(self) -> str:
        """The path of the completions endpoint, with the base URL's query.

        A base URL that ends in `/v1` or in the whole path of the API is tolerated.
        """
        base = self.parts.path.rstrip("/")
        for ending in (*API_PATHS.values(), "/v1"):
            base = base.removesuffix(ending)
        query = f"?{self.parts.query}" if self.parts.query else ""
        return quote(base + API_PATHS[self.api], safe="/%:@!$&'()*+,;=~") + query


@dataclass(frozen=True)
class Load:
    """When requests are sent. Exactly one of `concurrency` and `rate_per_s` is set.

    Args:
        concurrency: closed loop: so many requests are always under way; the next one starts when one ends.
        rate_per_s: open loop: requests start at this mean rate whatever the server does.
        arrivals: open loop only: `poisson` (exponential gaps) or `fixed` (equal gaps).
        requests: how many in all; without it and without a duration, each prompt is sent once.
        duration_s: no request starts later than this after the first; those under way are waited for.
        ramp_s: closed loop: the first requests start evenly spread over this time; open loop: the rate rises
            linearly.
        request_timeout_s: a request that takes longer from its send is given up (`timeout`).
        seed: of the arrival times.
        reuse_connections: keep connections for further requests (a connection a request otherwise).
        stall_timeout_s: a response that has begun and is silent for so long is given up (`stall`); None waits
            forever.
        connect_timeout_s: for a connection to be established.
    """

    concurrency: int | None = None
    rate_per_s: float | None = None
    arrivals: Literal["poisson", "fixed"] = "poisson"
    requests: int | None = None
    duration_s: float | None = None
    ramp_s: float = 0
    request_timeout_s: float | None = None
    seed: int = 0
    reuse_connections: bool = False
    stall_timeout_s: float | None = 600.0
    connect_timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if (self.concurrency is None) == (self.rate_per_s is None):
            raise InputError("exactly one of concurrency and rate is needed", place="load")
        if self.arrivals not in ("poisson", "fixed"):
            raise InputError(
                f"unknown arrivals {self.arrivals!r}", place="load.arrivals", remedy="use poisson or fixed"
            )
        for name in (
            "concurrency",
            "rate_per_s",
            "requests",
            "duration_s",
            "request_timeout_s",
            "stall_timeout_s",
        ):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{value} is not above zero and finite", place=f"load.{name}")
        if not 0 <= self.ramp_s < math.inf:
            raise InputError(f"{self.ramp_s} is below zero or not finite", place="load.ramp_s")


@dataclass(frozen=True)
class Sampling:
    """The body fields that decide what is generated.

    Args:
        temperature: 0 is greedy.
        seed: the engine's sampling seed.
        ignore_eos: generate the asked number of tokens (vLLM and SGLang know the field; set False for
            others).
        extra: further body fields, as they are; they win over everything else.
        token_counts: what to ask for so that the tokens of each event are known.
    """

    temperature: float | None = 0.0
    seed: int | None = None
    ignore_eos: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    token_counts: TokenCounts = "continuous_usage"

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise InputError(f"{self.temperature} is below zero or not finite", place="sampling.temperature")

    def body_fields(self) -> dict[str, Any]:
        """Returns the fields for a request's body, those about the stream included."""
        options: dict[str, Any] = {"include_usage": True}
        if self.token_counts == "continuous_usage":
            options["continuous_usage_stats"] = True
        fields: dict[str, Any] = {"stream": True, "stream_options": options}
        if self.token_counts == "token_ids":
            fields["return_token_ids"] = True
        if self.temperature is not None:
            fields["temperature"] = self.temperature
        if self.seed is not None:
            fields["seed"] = self.seed
        if self.ignore_eos:
            fields["ignore_eos"] = True
        return fields | dict(self.extra)


@dataclass(frozen=True)
class Progress:
    """How far a running load is; `tokens_seen_estimate` counts reads, since nothing is interpreted under
    load.
    """

    sent: int
    done: int
    failed: int
    bytes_seen: int
    tokens_seen_estimate: int
    elapsed_s: float
