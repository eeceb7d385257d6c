"""A server whose emission times are known, against which clients are judged.

Each request's model name is a scenario (`steady:ttft_ms=200,interval_ms=20`), so that any client can ask for
one. It uses the standard library alone and imports nothing from `crossover`: what judges the client must not
share its code.
"""

from ground_truth.scenario import Scenario, parse_scenario
from ground_truth.server import GroundTruthServer, serve_in_thread

__all__ = ["GroundTruthServer", "Scenario", "parse_scenario", "serve_in_thread"]
