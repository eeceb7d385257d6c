"""The load client: records a load with kernel receive stamps, and interprets the recording afterwards.

Nothing is interpreted while the load runs, so a changed definition never costs another run. It may import
`crossover.errors` alone; definitions of metrics live in `crossover.metrics`, which reads the tables made
here.
"""

from crossover.client.fitness import FitnessLimits
from crossover.client.interpretation import Interpretation, interpret
from crossover.client.outcome import REASONS
from crossover.client.probing import ProbeInconclusiveError, ProbeResult, complete_once, probe
from crossover.client.recording import record
from crossover.client.settings import Endpoint, Load, Progress, Sampling, TokenCounts

__all__ = [
    "REASONS",
    "Endpoint",
    "FitnessLimits",
    "Interpretation",
    "Load",
    "ProbeInconclusiveError",
    "ProbeResult",
    "Progress",
    "Sampling",
    "TokenCounts",
    "complete_once",
    "interpret",
    "probe",
    "record",
]
