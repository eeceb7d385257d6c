"""Time of a dry run of a thousand cells, against Snakemake's own start on an empty workflow, in one run.

    python benchmarks/dry_run.py [--cells 1000] [--runs 5]

The two commands alternate; the ratio is taken pair by pair and the median is printed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
CELLS_A_SERVER = 50


def experiment(cells: int) -> dict:
    """Returns an experiment of so many cells on servers of fifty cells each."""
    servers = max(1, cells // CELLS_A_SERVER)
    return {
        "title": "A thousand cells",
        "hardware": {"gpu": "NVIDIA B300", "gpus": 8},
        "variants": {
            f"v{n}": {
                "engine": "vllm",
                "launcher": {"kind": "simulated", "time_scale": 100},
                "arguments": {"max-num-seqs": 16 + n},
            }
            for n in range(servers)
        },
        "workloads": [
            {
                "dataset": "random",
                "input_tokens": [1000 * (n + 1) for n in range(10)],
                "output_tokens": 100,
                "concurrency": [1, 2, 4, 8, 16],
                "requests": 32,
            }
        ],
    }


def seconds(command: list[str], folder: Path) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "many.yaml").write_text(yaml.safe_dump(experiment(args.cells)))
        (folder / "empty.smk").write_text("rule report:\n    localrule: True\n")
        start = [sys.executable, "-m", "snakemake", "report", "--cores", "1", "-n", "--quiet", "all"]
        empty = [*start, "--snakefile", "empty.smk"]
        many = [
            *start, "--snakefile", str(ROOT / "Snakefile"), "--workflow-profile", str(ROOT / "profiles" / "default"),
            "--configfile", "many.yaml",
        ]  # fmt: skip
        seconds(empty, folder), seconds(many, folder)
        pairs = [(seconds(empty, folder), seconds(many, folder)) for _ in range(args.runs)]
    ratios = [b / a for a, b in pairs]
    print(f"empty workflow      {statistics.median(a for a, _ in pairs):6.2f} s")
    print(f"{args.cells} cells, dry run {statistics.median(b for _, b in pairs):6.2f} s")
    print(f"ratio               {statistics.median(ratios):6.2f} (from {min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
