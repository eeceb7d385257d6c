"""How right load-test clients are: each against a server whose emission times are known, one after the other.

    python benchmarks/peer_clients.py --out DIR --streams 64,256,1024 --clients recorder,guidellm --tokenizer MODEL_DIR

The server runs on the first core, the client on the others. It sends the first token after `--ttft-ms` and
then one every `--interval-ms`, so the truth of every figure is known before. Printed: what each client says,
its error, the CPU time that it took, and that time as a ratio to the recorder's. A client's environment is
installed unless `--bin` names a folder that has it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover.errors import CrossoverError
from crossover.peers import CLIENTS, PeerRun, run_peer
from crossover.workloads import build, read_prompts

HERE = Path(__file__).resolve().parent
KNOWN = ("recorder", *CLIENTS)


@dataclass(frozen=True)
class Truth:
    """What the server does: times in seconds, `streams` requests at once, each of `tokens` tokens."""

    streams: int
    tokens: int
    ttft_s: float
    interval_s: float

    @property
    def e2e_s(self) -> float:
        return self.ttft_s + (self.tokens - 1) * self.interval_s

    @property
    def model(self) -> str:
        return f"steady:ttft_ms={self.ttft_s * 1e3:g},interval_ms={self.interval_s * 1e3:g}"

    def figures(self) -> dict[str, float]:
        return {
            "ttft_s": self.ttft_s,
            "tpot_s": self.interval_s,
            "e2e_s": self.e2e_s,
            "output_tok_s": self.streams * self.tokens / self.e2e_s,
        }


@contextlib.contextmanager
def server(core: int) -> Iterator[str]:
    """Runs the server on one core; yields its URL."""
    words = [sys.executable, "-m", "ground_truth", "--core", str(core)]
    process = subprocess.Popen(words, cwd=HERE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def run_recorder(url: str, truth: Truth, prompts: Path, out: Path) -> dict[str, Any]:
    """Runs `crossover bench` and returns its figures with its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [
        sys.executable, "-m", "crossover.cli", "bench", "--url", url, "--model", truth.model, "--prompts", str(prompts),
        "--concurrency", str(truth.streams), "--out", str(out), "--json", "--no-probe",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CrossoverError(done.stderr.strip()[-300:])
    found = json.loads(done.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {name: found[name]["mean"] for name in ("ttft_s", "tpot_s", "e2e_s")}
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**figures, "output_tok_s": found["output_tok_s"], "ok": found["requests"]["ok"], "cpu_s": cpu_s}


def run_other(
    name: str, url: str, truth: Truth, prompts: Path, out: Path, bin_dir: Path | None, tokenizer: Path | None
) -> dict[str, Any]:
    """Runs another client; takes each figure of the meaning nearest to ours."""
    run = PeerRun(
        base_url=url,
        model=truth.model,
        prompts=list(read_prompts(prompts)),
        tokenizer=tokenizer,
        concurrency=truth.streams,
        time_limit_s=900.0,
    )
    report = run_peer(name, run, out, bin_dir=bin_dir, envs_dir=HERE.parent / "envs")
    spent = json.loads((out / "peer.json").read_text("utf-8"))["spent"]
    figures = {metric: report.figure(metric) for metric in ("ttft_s", "tpot_s", "e2e_s")}
    rate = report.figure("output_tok_s", "value")
    return {**figures, "output_tok_s": rate, "ok": report.requests.ok, "cpu_s": spent["cpu_s"]}


def row(name: str, found: dict[str, Any], truth: Truth, recorder_cpu_s: float | None) -> str:
    """Returns one line of the table."""
    cells = [f"{name:12}", f"{truth.streams:7}", f"{found.get('ok')!s:>5}"]
    for metric, true in truth.figures().items():
        value = found.get(metric)
        scale = 1.0 if metric == "output_tok_s" else 1e3
        cells.append("      missing       " if value is None else f"{value * scale:10.2f} ({value / true - 1:+7.1%})")
    ratio = "" if recorder_cpu_s is None else f"{found['cpu_s'] / recorder_cpu_s:6.1f}x"
    return " ".join([*cells, f"{found['cpu_s']:7.1f}", ratio])


def main() -> None:
    """Parses the arguments and runs every client at every number of streams."""
    args = parse()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(cores[1:]) or set(cores))
    bins = {name: Path(folder) for name, _, folder in (pair.partition("=") for pair in args.bin)}
    results = []
    print(
        "client       streams    ok  TTFT ms               TPOT ms              E2E ms               tok/s        CPU s"
    )
    for streams in args.streams:
        truth = Truth(streams, args.tokens, args.ttft_ms / 1e3, args.interval_ms / 1e3)
        prompts = args.out / f"prompts-{streams}"
        spec = {"dataset": "random", "input_tokens": 16, "output_tokens": args.tokens, "requests": streams}
        build(spec, prompts)
        recorder_cpu_s = None
        for name in args.clients:
            out = args.out / f"{name}-{streams}"
            with server(cores[0]) as url:
                try:
                    if name == "recorder":
                        found = run_recorder(url, truth, prompts / "prompts.jsonl", out)
                        recorder_cpu_s = found["cpu_s"]
                    else:
                        found = run_other(name, url, truth, prompts, out, bins.get(name), args.tokenizer)
                except CrossoverError as error:
                    print(f"{name:12} {streams:7} failed: {error}", flush=True)
                    continue
            results.append({"client": name, "streams": streams, "found": found, "truth": truth.figures()})
            print(row(name, found, truth, recorder_cpu_s), flush=True)
    (args.out / "results.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")


def parse() -> argparse.Namespace:
    """Returns the arguments."""
    parser = argparse.ArgumentParser(description="How right load-test clients are.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--clients", type=lambda text: text.split(","), default=list(KNOWN))
    parser.add_argument("--streams", type=lambda text: [int(part) for part in text.split(",")], default=[64])
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--ttft-ms", type=float, default=200.0)
    parser.add_argument("--interval-ms", type=float, default=20.0)
    parser.add_argument("--tokenizer", type=Path, help="folder of any tokenizer, for clients that want one")
    parser.add_argument(
        "--bin", action="append", default=[], metavar="CLIENT=DIR", help="where a client's commands are"
    )
    args = parser.parse_args()
    unknown = sorted(set(args.clients) - set(KNOWN))
    if unknown:
        parser.error(f"unknown client {unknown[0]}; use {', '.join(KNOWN)}")
    args.out = args.out.absolute()
    return args


if __name__ == "__main__":
    main()
