"""How fast the log reader is, and how much memory it takes: a synthetic mix of real lines through a pipe.

    python benchmarks/log_reader.py [--gigabytes 0.2] [--mix all|vllm|sglang|quiet]

A child process writes the log (nothing goes to disk), this process reads it. Printed: megabytes per second of this
process's CPU time and of wall time, and the peak of resident memory. The goal is 25 MB/s on one core, and less than
200 MB for 2 GB of log.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time

ACCESS = 'INFO:     127.0.0.1:{port} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
VLLM = (
    "(APIServer pid=1) INFO {md} {hms} [loggers.py:273] Engine 00{engine}: Avg prompt throughput: {a:.1f} tokens/s, "
    "Avg generation throughput: {b:.1f} tokens/s, Running: {n} reqs, Waiting: 3 reqs, GPU KV cache usage: {u:.1f}%, "
    "Prefix cache hit rate: 0.0%\n",
    "(APIServer pid=1) INFO {md} {hms} [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 1.35, Accepted "
    "throughput: {u:.2f} tokens/s, Drafted throughput: {a:.2f} tokens/s, Accepted: {tokens} tokens, Drafted: {context} "
    "tokens, Per-position acceptance rate: {p:.3f}, 0.083, 0.{n:03d}, 0.000, 0.000, 0.000, 0.000, Avg Draft acceptance "
    "rate: {u:.1f}%\n",
)
SGLANG = (
    "[2026-{md} {hms} TP0] Prefill batch, #new-seq: {n}, #new-token: {tokens}, #cached-token: {context}, token usage: "
    "{p:.2f}, #running-req: {n}, #queue-req: {engine}, #pending-token: {tokens}, cuda graph: True, input throughput "
    "(token/s): {a:.2f}\n",
    "[2026-{md} {hms} TP0] Decode batch, #running-req: {n}, #token: {context}, token usage: {p:.2f}, accept len: "
    "{p:.2f}, cuda graph: True, gen throughput (token/s): {b:.2f}, #queue-req: 0\n",
)
OTHER = (
    "(Worker_TP0 pid=447) WARNING {md} {hms} [jit_monitor.py:135] Triton kernel JIT compilation during inference: "
    "_causal_conv1d_fwd_kernel. This causes a latency spike; consider extending warmup to cover this shape/config.\n",
    "(EngineCore pid=1) DEBUG {md} {hms} [core.py:900] EngineCore loop active.\n",
    "/opt/lib/python3.12/site-packages/torch/cpp_extension.py:2356: UserWarning: TORCH_CUDA_ARCH_LIST is not set\n",
    "(Worker_TP1 pid=448) INFO {md} {hms} [custom_all_reduce.py:203] Registering 10586 cuda graph addresses\n",
)
MIXES = {  # lines of each group in a hundred, and one in a hundred of the rest
    "all": {"access": 50, "vllm": 24, "sglang": 25},
    "vllm": {"access": 50, "vllm": 49},
    "sglang": {"access": 50, "sglang": 49},
    "quiet": {"access": 97},
}


def lines(mix: str, megabytes: int = 8) -> bytes:
    """Returns some megabytes of log: clocks that go on, ports and figures that change."""
    rng = random.Random(0)
    groups: dict[str, tuple[str, ...]] = {"access": (ACCESS,), "vllm": VLLM, "sglang": SGLANG, "other": OTHER}
    weights = {**MIXES[mix], "other": 100 - sum(MIXES[mix].values())}
    made: list[str] = []
    size, second = 0, 0
    while size < megabytes * 1_000_000:
        name = rng.choices(list(weights), list(weights.values()))[0]
        second += 1
        line = rng.choice(groups[name]).format(
            port=rng.randrange(30000, 60000), md=f"07-{1 + second // 86400 % 28:02d}", a=rng.uniform(0, 20000),
            hms=f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}", b=rng.uniform(0, 900),
            n=rng.randrange(64), u=rng.uniform(0, 100), p=rng.random(), engine=rng.randrange(4),
            tokens=rng.randrange(16384), context=int(10 ** rng.uniform(0, 6)),
        )  # fmt: skip
        made.append(line)
        size += len(line)
    return "".join(made).encode()


def write(mix: str, gigabytes: float) -> None:
    """The child: writes the same megabytes again and again."""
    piece, left = lines(mix), int(gigabytes * 1e9)
    while left > 0:
        left -= os.write(1, piece[:left])


def measure(mix: str, gigabytes: float) -> dict[str, float | int | str]:
    """Reads the child's log; returns throughput in MB/s (1e6 bytes) and the peak of resident memory in MB."""
    from crossover.logs import LogReader

    command = [sys.executable, __file__, "--write", "--mix", mix, "--gigabytes", str(gigabytes)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    reader, size = LogReader(), 0
    first = child.stdout.read(1)  # the child has made its lines
    wall, cpu = time.perf_counter(), time.process_time()
    reader.feed(first.decode())
    while chunk := child.stdout.read(1 << 18):
        size += len(chunk)
        reader.feed(chunk.decode("utf-8", "replace"))
    report = reader.finish()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    child.wait()
    return {
        "mix": mix,
        "megabytes": round(size / 1e6),
        "lines": report.lines,
        "records": len(report.intervals)
        + len(report.speculation)
        + len(report.prefill_batches)
        + len(report.decode_batches),
        "unparsed": report.unparsed,
        "mb_per_cpu_s": round(size / 1e6 / cpu, 1),
        "mb_per_s": round(size / 1e6 / wall, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=0.2)
    parser.add_argument("--mix", choices=list(MIXES), default="all")
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        write(args.mix, args.gigabytes)
    else:
        print(json.dumps(measure(args.mix, args.gigabytes)))


if __name__ == "__main__":
    main()
