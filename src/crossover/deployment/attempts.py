"""Failed attempts: what is kept of a cell that got no entry, so that nothing measured is lost.

Layout: `STORE/attempts/RUN_KEY/TIME/` with `attempt.json` and whatever was recorded. An attempt is no entry: it
may be deleted, and the next run tries the cell again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossover.deployment.clock import now


def write_attempt(
    store_root: Path,
    run_key: str,
    reason: str,
    log_tail: Sequence[str],
    recorded: Path | None,
    facts: Mapping[str, Any],
) -> Path:
    """Sets down a failed attempt and returns its folder.

    Args:
        reason: one line.
        log_tail: the last lines of the engine's log.
        recorded: folder with what the recorder has written, moved into the attempt; None where it wrote nothing.
        facts: the cell's facts so far (shape of cell.json), and failure: the class of the server's end (see
            docs/launchers.md), None where the server lives on.
    """
    stamp = now().replace(":", "").replace("-", "")
    folder = store_root / "attempts" / run_key / f"{stamp}-{os.getpid()}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    if recorded is not None and recorded.is_dir():
        recorded.rename(folder)
    folder.mkdir(exist_ok=True)
    attempt = {**facts, "status": "failed", "reason": reason, "log_tail": list(log_tail)}
    (folder / "attempt.json").write_text(json.dumps(attempt, indent=1, sort_keys=True, default=str))
    return folder
