"""Why two cells differ: factors of decode throughput, prefill by context, and where end-to-end time went.

Pure functions over figures; may import nothing of the package but `crossover.errors` and, for published
tables, `crossover.audits.table`.
"""

from crossover.attribution.decode import Comparison, DecodeState, Estimate, compare, largest_factor
from crossover.attribution.latency import Phases, explain_latency, phases_of_cell
from crossover.attribution.measured import attribute_pair, decode_state_of_cell
from crossover.attribution.prefill import PrefillModel, fit_prefill
from crossover.attribution.published import attribute_table

__all__ = [
    "Comparison",
    "DecodeState",
    "Estimate",
    "Phases",
    "PrefillModel",
    "attribute_pair",
    "attribute_table",
    "compare",
    "decode_state_of_cell",
    "explain_latency",
    "fit_prefill",
    "largest_factor",
    "phases_of_cell",
]
