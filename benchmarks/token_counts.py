"""Does asking for token counts change what is measured?

    python benchmarks/token_counts.py --url http://HOST:PORT --model NAME [--rounds 8] [--concurrency 8]

Each round measures the same load three times, in changing order: without counts, with continuous usage, with token ids.
Printed: mean TPOT and output throughput of each, and the paired ratio to the load without counts with its 95 %
interval (t over rounds, of the logarithm). An interval around 1 that is narrow enough is the answer wanted.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
from scipy import stats

from crossover import metrics
from crossover.client import Endpoint, Load, Sampling, TokenCounts, interpret, record

FIGURES = ("tpot_s", "output_tok_s")


def measured(endpoint: Endpoint, counts: TokenCounts, load: Load, prompts: list[dict[str, Any]]) -> dict[str, float]:
    """Returns the figures of one load, and checks that tokens, events and usage agree."""
    with tempfile.TemporaryDirectory() as folder:
        record(endpoint, prompts, load, Sampling(token_counts=counts), Path(folder))
        found = interpret(Path(folder))
    if not (found.requests["status"] == "ok").all():
        raise SystemExit(f"{counts}: {found.findings}")
    if counts != "none":
        sums = found.events.groupby("request")["tokens"].sum()
        # Tokens after the last output, such as held-back characters, belong to no event.
        missing = int((found.requests.set_index("request")["completion_tokens"] - sums).sum())
        print(f"  {counts}: {sorted(set(found.requests['tokens_source']))}, {missing} tokens without an event")
    result = metrics.summarise(found.events, found.requests)
    return {"tpot_s": result["tpot_s"]["mean"], "output_tok_s": result["output_tok_s"]}


def ratio(values: list[float], base: list[float]) -> str:
    """Returns the paired ratio with its interval."""
    logs = np.log(np.array(values) / np.array(base))
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    low, middle, high = (math.exp(x) for x in (logs.mean() - half, logs.mean(), logs.mean() + half))
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Parses the arguments, measures, prints."""
    parser = argparse.ArgumentParser(description="Does asking for token counts change what is measured?")
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--output", type=int, default=100)
    args = parser.parse_args()
    endpoint = Endpoint(args.url, args.model)
    load = Load(concurrency=args.concurrency)
    orders = itertools.cycle(itertools.permutations(get_args(TokenCounts)))
    figures: dict[str, dict[str, list[float]]] = {name: {f: [] for f in FIGURES} for name in get_args(TokenCounts)}
    for number in range(args.rounds):
        # Prompts of a round are new to the server, so that its prefix cache favours no turn.
        for turn, counts in enumerate(next(orders)):
            prompts = [
                {"index": i, "text": f"{number} {turn} {i} " + "word " * 50, "output_tokens": args.output}
                for i in range(2 * args.concurrency)
            ]
            for name, value in measured(endpoint, counts, load, prompts).items():
                figures[counts][name].append(value)
    for counts, found in figures.items():
        means = "  ".join(f"{name} {np.mean(values):.5g}" for name, values in found.items())
        ratios = "  ".join(f"{name} {ratio(found[name], figures['none'][name])}" for name in FIGURES)
        print(f"{counts:18} {means}" + (f"   ratio to none: {ratios}" if counts != "none" else ""))


if __name__ == "__main__":
    main()
