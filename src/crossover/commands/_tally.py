"""What `crossover parse` and `crossover metrics` say and write at their end."""

from __future__ import annotations

import sys
from pathlib import Path

from crossover.analysis import Tally
from crossover.planning.receipts import write_json


def finish(tally: Tally, receipt: Path | None) -> int:
    """Prints the tally, writes the receipt, and returns the exit status: a failed cell is a result."""
    print(f"{len(tally.made)} made, {len(tally.reused)} reused, {len(tally.failed)} failed", file=sys.stderr)
    for cell, reason in tally.failed.items():
        print(f"{cell}: {reason}", file=sys.stderr)
    if receipt:
        write_json(receipt, vars(tally))
    return 0
