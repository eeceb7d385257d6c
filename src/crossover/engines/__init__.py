"""The engines: how each is started, asked, reset and counted; one module an engine, found by its `ENGINE`.

Data about engines only: nothing here starts a process. May import `crossover.errors`, `crossover.redaction`
and, in `endpoints` and `information`, httpx and prometheus_client.
"""

from crossover.engines.base import CacheReset, Engine
from crossover.engines.registry import ENGINES, get_engine

__all__ = ["ENGINES", "CacheReset", "Engine", "get_engine"]
