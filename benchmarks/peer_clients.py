"""How right load-test clients are, and what they cost: all against one server whose emission times are known.

    python benchmarks/peer_clients.py                  # 1,024 streams x 200 tokens at 20 ms, all clients: about 10 min
    python benchmarks/peer_clients.py --streams 64,256 --clients recorder,guidellm --out DIR

For each number of streams every client sends the same prompts, one client after the other. The server runs on the
first core, the client on the others. It sends the first token `--ttft-ms` after the request and then one every
`--interval-ms`, so the truth of every figure is known before. Printed, as a Markdown table: what each client says, the
error, the CPU time of the whole command, and that time as a ratio to the recorder's. "TTFT sent" is when the server
really sent the first tokens, on average: above `--ttft-ms` the machine was too busy for it, and clients say so too.

A client's environment is installed unless `--bin CLIENT=DIR` names a folder that has its commands. Before it is
measured, each client runs once with 8 streams, so that nothing is compiled or cached for the first time. ITL is the
client's figure of that name in our sense, else the gap a chunk (here each chunk has one token), else the mean time
a token of a request.
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
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from crossover import __version__
from crossover.errors import CrossoverError
from crossover.peers import CLIENTS, PeerRun, run_peer
from crossover.peers.word_tokenizer import write_word_tokenizer
from crossover.workloads import build, read_prompts

HERE = Path(__file__).resolve().parent
KNOWN = ("recorder", *CLIENTS)
WARM_UP_STREAMS, WARM_UP_TOKENS = 8, 20
GAPS = ("itl_s", "icl_s", "tpot_s")
COLUMNS = (
    "client", "streams", "ok", "TTFT sent, ms", "TTFT mean, ms", "ITL mean, ms", "E2E mean, ms", "output, tok/s",
    "CPU, s", "x recorder",
)  # fmt: skip


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
            "itl_s": self.interval_s,
            "e2e_s": self.e2e_s,
            "output_tok_s": self.streams * self.tokens / self.e2e_s,
        }


@dataclass(frozen=True)
class Found:
    """What a client says (figures as in `Truth.figures`, None where it does not), and what it took."""

    client: str
    version: str | None
    ok: int | None
    figures: dict[str, float | None]
    cpu_s: float
    sent_ttft_s: float | None = None


@contextlib.contextmanager
def server(core: int, truth: Path) -> Iterator[str]:
    """Runs the server on one core; yields its URL, and writes afterwards what it really did."""
    words = [sys.executable, "-m", "ground_truth", "--core", str(core), "--truth", str(truth)]
    process = subprocess.Popen(words, cwd=HERE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def sent_ttft_s(truth: Path, streams: int) -> float | None:
    """Returns the mean time to the first token as the server sent it; of the last requests, since clients try out
    the server with single ones before.
    """
    requests = [request for request in json.loads(truth.read_text())["requests"].values() if request["emitted_ns"]]
    requests = sorted(requests, key=lambda request: request["began_ns"])[-streams:]
    spans = [request["emitted_ns"][0] - request["began_ns"] for request in requests]
    return sum(spans) / len(spans) / 1e9 if spans else None


def run_recorder(url: str, truth: Truth, prompts: Path, out: Path) -> Found:
    """Runs `crossover bench`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [
        sys.executable, "-m", "crossover.cli", "bench", "--url", url, "--model", truth.model, "--prompts", str(prompts),
        "--concurrency", str(truth.streams), "--out", str(out), "--json", "--no-probe",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise CrossoverError(done.stderr.strip()[-300:])
    result = json.loads(done.stdout)
    if result["fitness"]["verdict"] != "ok":
        raise CrossoverError(f"it rejects its own recording: {'; '.join(result['fitness']['reasons'])}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {name: result[name]["mean"] for name in ("ttft_s", "itl_s", "e2e_s")}
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures["output_tok_s"] = result["output_tok_s"]
    return Found("recorder", __version__, result["requests"]["ok"], figures, cpu_s)


def run_other(
    name: str, url: str, truth: Truth, prompts: Path, out: Path, bin_dir: Path | None, tokenizer: Path
) -> Found:
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
    figures = {metric: report.figure(metric) for metric in ("ttft_s", "e2e_s")}
    figures["itl_s"] = next((gap for gap in map(report.figure, GAPS) if gap is not None), None)
    figures["output_tok_s"] = report.figure("output_tok_s", "value")
    return Found(name, report.version, report.requests.ok, figures, spent["cpu_s"])


def row(found: Found, truth: Truth, recorder_cpu_s: float | None) -> str:
    """Returns one line of the table."""
    cells = [f"{found.client} {found.version or ''}".strip(), f"{truth.streams:,}", str(found.ok)]
    cells.append("-" if found.sent_ttft_s is None else f"{found.sent_ttft_s * 1e3:.1f}")
    for metric, true in truth.figures().items():
        value = found.figures[metric]
        scale = 1.0 if metric == "output_tok_s" else 1e3
        cells.append("-" if value is None else f"{value * scale:,.1f} ({value / true - 1:+.1%})")
    ratio = "-" if recorder_cpu_s is None else f"{found.cpu_s / recorder_cpu_s:.1f}"
    return f"| {' | '.join([*cells, f'{found.cpu_s:.1f}', ratio])} |"


class Comparison:
    """One run of the benchmark: the arguments, the cores, and what came out."""

    def __init__(self, args: argparse.Namespace, server_core: int) -> None:
        self._args, self._core = args, server_core
        self._bins = {name: Path(folder).absolute() for name, _, folder in (pair.partition("=") for pair in args.bin)}
        self._tokenizer = args.tokenizer or write_word_tokenizer(args.out / "tokenizer")
        self.results: list[dict[str, Any]] = []

    def measure(self, truth: Truth) -> None:
        """Runs every client against the same truth and prints its line of the table."""
        recorder_cpu_s = None
        for name in self._args.clients:
            try:
                if not self._args.cold:
                    warm_up = replace(truth, streams=WARM_UP_STREAMS, tokens=WARM_UP_TOKENS)
                    self._run(name, warm_up, self._args.out / f"{name}-warm-up")
                found = self._run(name, truth, self._args.out / f"{name}-{truth.streams}")
            except CrossoverError as error:
                print(f"| {name} | {truth.streams:,} | failed: {error} |", flush=True)
                continue
            if name == "recorder":
                recorder_cpu_s = found.cpu_s
            self.results.append({"found": vars(found), "truth": {**vars(truth), **truth.figures()}})
            print(row(found, truth, recorder_cpu_s), flush=True)

    def _run(self, name: str, truth: Truth, out: Path) -> Found:
        prompts, did = self._prompts(truth), self._args.out / "truth.json"
        with server(self._core, did) as url:
            if name == "recorder":
                found = run_recorder(url, truth, prompts, out)
            else:
                found = run_other(name, url, truth, prompts, out, self._bins.get(name), self._tokenizer)
        return replace(found, sent_ttft_s=sent_ttft_s(did, truth.streams))

    def _prompts(self, truth: Truth) -> Path:
        folder: Path = self._args.out / f"prompts-{truth.streams}-{truth.tokens}"
        if not folder.exists():
            spec = {"dataset": "random", "input_tokens": 16, "output_tokens": truth.tokens, "requests": truth.streams}
            build(spec, folder)
        return folder / "prompts.jsonl"


def main() -> None:
    """Parses the arguments and runs every client at every number of streams."""
    args = parse()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(cores[1:]) or set(cores))
    with contextlib.ExitStack() as stack:
        if args.out is None:
            args.out = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peer-clients-")))
        args.out = args.out.absolute()
        args.out.mkdir(parents=True, exist_ok=True)
        comparison = Comparison(args, cores[0])
        load = os.getloadavg()[0]
        print(f"{date.today()}, {len(cores)} cores, load {load:.1f} before; {args.tokens} tokens a stream\n")
        print(f"| {' | '.join(COLUMNS)} |\n| {' | '.join('---' for _ in COLUMNS)} |", flush=True)
        for streams in args.streams:
            comparison.measure(Truth(streams, args.tokens, args.ttft_ms / 1e3, args.interval_ms / 1e3))
        if args.json:
            args.json.write_text(json.dumps(comparison.results, indent=2) + "\n", "utf-8")


def parse() -> argparse.Namespace:
    """Returns the arguments."""
    parser = argparse.ArgumentParser(description="How right load-test clients are, and what they cost.")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep what each client wrote there")
    parser.add_argument("--clients", type=lambda text: text.split(","), default=list(KNOWN), help=",".join(KNOWN))
    parser.add_argument("--streams", type=lambda text: [int(part) for part in text.split(",")], default=[1024])
    parser.add_argument("--tokens", type=int, default=200, help="a stream (default: 200)")
    parser.add_argument("--ttft-ms", type=float, default=200.0, help="default: 200")
    parser.add_argument("--interval-ms", type=float, default=20.0, help="between tokens (default: 20)")
    parser.add_argument("--tokenizer", type=Path, help="folder of a tokenizer for clients that want one (else: words)")
    parser.add_argument(
        "--bin", action="append", default=[], metavar="CLIENT=DIR", help="where a client's commands are"
    )
    parser.add_argument("--cold", action="store_true", help="no run before the one that is measured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args()
    unknown = sorted(set(args.clients) - set(KNOWN))
    if unknown:
        parser.error(f"unknown client {unknown[0]}; use {', '.join(KNOWN)}")
    return args


if __name__ == "__main__":
    main()
