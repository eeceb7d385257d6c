"""How right the recorder is, against a server whose emission times are known.

    python benchmarks/recorder.py [--streams 64,256,1024] [--json FILE]

The server runs on the first core, the client on the second. Printed for each number of streams: the error of every
chunk's kernel stamp, TTFT against its truth, and CPU seconds (of the loop alone, and of the whole command). Then
sixteen prompts of about 1 MB are sent at once: how far apart do their first bytes leave, and arrive?
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from ground_truth.judge import chunk_errors

HERE = Path(__file__).resolve().parent
GOALS = {"p50_us": 10.0, "p99_us": 100.0, "ttft_error": 0.05, "cpu_s": 4.0}
START_SPREAD_MS = 5.0


def measured(model: str, prompts: list[dict[str, Any]], cores: tuple[int, int], out: Path) -> dict[str, Any]:
    """Runs server and client; returns the client's JSON, its tables, the truth and CPU seconds."""
    file = out / "prompts.jsonl"
    file.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    words = [sys.executable, "-m", "ground_truth", "--core", str(cores[0]), "--truth", str(out / "truth.json")]
    server = subprocess.Popen(words, cwd=HERE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    bench = [
        sys.executable, "-m", "crossover.cli", "bench", "--url", url, "--model", model, "--prompts", str(file),
        "--concurrency", str(len(prompts)), "--out", str(out / "bench"), "--json", "--no-probe",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            bench, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {cores[1]})
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return {
        "result": json.loads(done.stdout),
        "events": pd.read_parquet(out / "bench" / "events.parquet"),
        "requests": pd.read_parquet(out / "bench" / "requests.parquet"),
        "truth": json.loads((out / "truth.json").read_text()),
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def accuracy(streams: int, cores: tuple[int, int]) -> dict[str, Any]:
    """Returns the row of one number of streams."""
    prompts = [{"index": i, "text": "a b c", "output_tokens": 200} for i in range(streams)]
    with tempfile.TemporaryDirectory() as folder:
        found = measured("steady:ttft_ms=200,interval_ms=20", prompts, cores, Path(folder))
    requests, events = found["requests"], found["events"]
    ids = dict(zip(requests["request"], requests["request_id"], strict=True))
    output = events[events["kind"].isin(["content", "reasoning", "tool"])]
    seen = {ids[number]: group["t_kernel_ns"].tolist() for number, group in output.groupby("request")}
    sent = dict(zip(requests["request_id"], requests["sent_ns"].astype(int), strict=True))
    errors = chunk_errors(found["truth"], seen, sent)
    first = output.groupby("request")["t_kernel_ns"].min() - requests.set_index("request")["sent_ns"].astype("int64")
    fitness = found["result"]["fitness"]
    return {
        "streams": streams,
        "chunks": errors.chunks,
        "p50_us": errors.p50_us,
        "p99_us": errors.p99_us,
        "max_us": errors.max_us,
        "ttft_ms": float(first.mean()) / 1e6,
        "ttft_true_ms": errors.ttft_s * 1e3,
        "ttft_error": float(first.mean()) / 1e9 / errors.ttft_s - 1,
        "loop_cpu_s": fitness["cpu_s"],
        "cpu_s": found["cpu_s"],
        "coalesced_reads": fitness["coalesced_reads"],
        "lag_p99_ms": fitness["lag_s"]["p99"] * 1e3,
        "server_late_max_ms": found["truth"]["late_ns_max"] / 1e6,
        "verdict": fitness["verdict"],
    }


def long_prompts(cores: tuple[int, int], count: int = 16) -> dict[str, Any]:
    """Returns how far apart the starts of long requests are, as the client sent and as the server received them."""
    prompts = [{"index": i, "text": "word " * 200_000, "output_tokens": 2} for i in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        found = measured("steady:ttft_ms=50,interval_ms=5", prompts, cores, Path(folder))
    requests, truth = found["requests"], found["truth"]["requests"]
    began = [truth[request_id]["began_ns"] for request_id in requests["request_id"]]
    received = [truth[request_id]["received_ns"] for request_id in requests["request_id"]]
    return {
        "prompts": count,
        "start_spread_ms": float(requests["sent_ns"].max() - requests["sent_ns"].min()) / 1e6,
        "arrival_spread_ms": (max(began) - min(began)) / 1e6,
        "all_received_ms": (max(received) - min(began)) / 1e6,
    }


def main() -> None:
    """Parses the arguments, runs, prints."""
    parser = argparse.ArgumentParser(description="How right the recorder is.")
    parser.add_argument("--streams", type=lambda text: [int(part) for part in text.split(",")], default=[64, 256, 1024])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args()
    available = sorted(os.sched_getaffinity(0))
    cores = (available[0], available[-1])
    rows = []
    for streams in args.streams:
        row = accuracy(streams, cores)
        rows.append(row)
        print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
        missed = [name for name, goal in GOALS.items() if abs(row[name]) > goal]
        print(f"  goals at {streams} streams: {'all met' if not missed else 'missed ' + ', '.join(missed)}", flush=True)
    starts = long_prompts(cores)
    print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in starts.items()))
    print(
        f"  start goal of {START_SPREAD_MS} ms: {'met' if starts['start_spread_ms'] <= START_SPREAD_MS else 'missed'}"
    )
    if args.json:
        args.json.write_text(json.dumps({"accuracy": rows, "long_prompts": starts}, indent=1))


if __name__ == "__main__":
    main()
