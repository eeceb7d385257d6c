"""`python -m ground_truth --port 0 --truth FILE`: prints its URL, serves until SIGTERM, then writes the
truth.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
from pathlib import Path

from ground_truth.server import GroundTruthServer


def main() -> None:
    """Parses the arguments and serves."""
    parser = argparse.ArgumentParser(prog="ground_truth", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--truth", type=Path, help="where to write when each chunk left (JSON)")
    parser.add_argument("--core", type=int, help="run on this core only")
    args = parser.parse_args()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    server = GroundTruthServer(args.host, args.port)
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    signal.signal(signal.SIGINT, lambda *_: server.stop())
    print(f"http://{args.host}:{server.port}", flush=True)
    gc.disable()
    server.run()
    if args.truth:
        args.truth.write_text(json.dumps(server.summary()))


if __name__ == "__main__":
    main()
