"""Other load-test clients: how to run them on our prompts, and what the columns that they print really are.

A tool is a module of `crossover.peers.tools`; `read_output` turns what it wrote into a `PeerReport`, in which
each figure carries the meaning it has in that tool. May import `crossover.errors`, `crossover.grids`,
`crossover.environments`, `crossover.metrics`, `crossover.workloads`, the kinds of events of `crossover.client`, and of
`crossover.audits` what knows how figures are named and printed.
"""

from crossover.peers.comparison import comparable, compare_reports, why_not_comparable
from crossover.peers.implied import implied
from crossover.peers.meanings import MEANINGS, Meaning
from crossover.peers.reading import read_output
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.reported import reported, to_document
from crossover.peers.running import PeerRun, run_peer
from crossover.peers.streams import read_stream
from crossover.peers.tools import CLIENTS, TOOLS

__all__ = [
    "CLIENTS",
    "MEANINGS",
    "TOOLS",
    "Figure",
    "Meaning",
    "PeerReport",
    "PeerRun",
    "Requests",
    "comparable",
    "compare_reports",
    "implied",
    "read_output",
    "read_stream",
    "reported",
    "run_peer",
    "to_document",
    "why_not_comparable",
]
