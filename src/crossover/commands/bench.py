"""`crossover bench`: measure an OpenAI-compatible endpoint; print the figures and the recorder's own fitness."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.errors import InputError

if TYPE_CHECKING:
    from crossover.client import Endpoint, Interpretation, Load, Progress, Sampling, TokenCounts

HELP = "measure an endpoint with a client that stamps in the kernel and audits itself"

_FIGURES = ("duration_s", "output_tok_s", "ttft_s", "ttfot_s", "tpot_s", "itl_s", "icl_s", "e2e_s")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--url", help="base URL of the server, with or without /v1")
    parser.add_argument("--model", help="the name the server knows the model by")
    parser.add_argument("--endpoint", choices=("chat", "completions"), default="chat", help="API (default: chat)")
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable that holds the API key")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the recording and tables go")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _configure_prompts(parser.add_argument_group("prompts"))
    _configure_load(parser.add_argument_group("load"))
    _configure_reading(parser.add_argument_group("sampling and reading"))


def _configure_prompts(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--prompts", type=Path, metavar="FILE", help="a prompts file (JSON lines)")
    group.add_argument("--random-input", type=int, metavar="N", help="random prompts of N tokens")
    group.add_argument("--random-output", type=int, metavar="N", help="ask for N output tokens each")
    group.add_argument("--tokenizer", type=Path, metavar="PATH", help="tokenizer.json that makes random prompts exact")


def _configure_load(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--concurrency", type=int, metavar="C", help="closed loop: C requests are always under way")
    group.add_argument("--rate", type=float, metavar="R", help="open loop: R requests a second")
    group.add_argument("--arrivals", choices=("poisson", "fixed"), default="poisson", help="of an open loop")
    group.add_argument("--requests", type=int, metavar="R", help="how many (default: each prompt once)")
    group.add_argument("--duration", type=float, metavar="S", help="start no request later than S seconds")
    group.add_argument("--ramp", type=float, default=0.0, metavar="S", help="reach the full load over S seconds")
    group.add_argument("--request-timeout", type=float, metavar="S", help="give a request up after S seconds")
    group.add_argument("--stall-timeout", type=float, default=600.0, metavar="S", help="give up after S silent seconds")
    group.add_argument("--reuse-connections", action="store_true", help="keep connections between requests")
    group.add_argument("--seed", type=int, default=0, help="of random prompts and arrivals (default: 0)")


def _configure_reading(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--temperature", type=float, default=0.0, help="default: 0")
    group.add_argument("--no-ignore-eos", action="store_true", help="let the model end where it wants")
    group.add_argument("--extra-body", default="{}", metavar="JSON", help="further body fields")
    group.add_argument("--no-probe", action="store_true", help="send no probe request before measuring")
    group.add_argument("--clock-scale", type=float, default=1.0, metavar="S", help="of a simulated engine")
    group.add_argument("--reread", action="store_true", help="interpret the recording in DIR again; send nothing")


def run(args: argparse.Namespace) -> int:
    """Measures or reads again, and prints the figures; 1 if no request got output or the recorder was unfit."""
    from crossover.client import interpret
    from crossover.client.columns import write_parquet

    if not 0 < args.clock_scale < math.inf:
        raise InputError(
            f"{args.clock_scale} is not above zero and finite", place="--clock-scale", remedy="1 is real time"
        )
    extra_findings: list[dict[str, Any]] = [] if args.reread else _measure(args)
    interpretation = interpret(args.out, args.clock_scale, tokenizer=args.tokenizer)
    write_parquet(interpretation.event_columns, interpretation.rows, args.out)
    result = summary(interpretation, extra_findings, args.concurrency)
    (args.out / "summary.json").write_text(json.dumps(result, indent=1))
    print(json.dumps(result) if args.json else text(result))
    answered = result["requests"]["ok"] or result["requests"]["incomplete"]
    return 0 if answered and result["fitness"]["verdict"] == "ok" else 1


def _measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Sends the load and returns findings that the recording itself does not hold."""
    from crossover.client import record

    endpoint, load, sampling = _endpoint(args), _load(args), _sampling(args)
    args.out.mkdir(parents=True, exist_ok=True)
    prompts = _prompts(args)
    findings: list[dict[str, Any]] = []
    if not args.no_probe:
        sampling, findings = _probed(endpoint, sampling, args.request_timeout)
    progress = _show_progress if sys.stderr.isatty() else None
    with _stop_on_signal() as stopped:
        record(
            endpoint,
            prompts,
            load,
            sampling,
            args.out,
            on_progress=progress,
            should_stop=lambda: bool(stopped),
        )
    return findings


def _endpoint(args: argparse.Namespace) -> Endpoint:
    import os

    from crossover.client import Endpoint

    for name in ("url", "model"):
        if not getattr(args, name):
            raise InputError("is missing", place=f"--{name}", remedy=f"give --{name}")
    key = None
    if args.api_key_env:
        key = os.environ.get(args.api_key_env, "").strip()
        if not key:
            raise InputError("names an empty variable", place="--api-key-env", remedy=f"export {args.api_key_env}")
    return Endpoint(args.url, args.model, args.endpoint, key)


def _load(args: argparse.Namespace) -> Load:
    from crossover.client import Load

    return Load(
        concurrency=args.concurrency,
        rate_per_s=args.rate,
        arrivals=args.arrivals,
        requests=args.requests,
        duration_s=args.duration,
        ramp_s=args.ramp,
        request_timeout_s=args.request_timeout,
        seed=args.seed,
        reuse_connections=args.reuse_connections,
        stall_timeout_s=args.stall_timeout,
    )


def _sampling(args: argparse.Namespace) -> Sampling:
    from crossover.client import Sampling

    try:
        extra = json.loads(args.extra_body)
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", place="--extra-body", remedy='give {"field": value}') from error
    if not isinstance(extra, dict):
        raise InputError("is no JSON object", place="--extra-body", remedy='give {"field": value}')
    return Sampling(temperature=args.temperature, ignore_eos=not args.no_ignore_eos, extra=extra)


def _prompts(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from crossover.workloads import build, read_prompts

    if (args.prompts is None) == (args.random_input is None):
        raise InputError("exactly one of --prompts and --random-input is needed", place="prompts")
    if args.prompts is not None:
        return read_prompts(args.prompts)
    if args.random_output is None:
        raise InputError("is missing", place="--random-output", remedy="say how many tokens each request asks for")
    exact = args.tokenizer is not None
    spec = {
        "dataset": "random",
        "input_tokens": args.random_input,
        "output_tokens": args.random_output,
        "requests": args.requests or _prompts_for(args),
        "seed": args.seed,
        "tokenizer": {"kind": "file", "path": str(args.tokenizer)} if exact else {"kind": "words"},
        "form": "token_ids" if exact and args.endpoint == "completions" else "text",
    }
    build(spec, args.out / "prompts")
    return _counted(read_prompts(args.out / "prompts"), exact)


def _counted(prompts: Iterator[dict[str, Any]], exact: bool) -> Iterator[dict[str, Any]]:
    """Words are no tokens of the server's model: without its tokenizer nothing is expected of the length."""
    for prompt in prompts:
        yield prompt if exact else prompt | {"prompt_tokens": None}


def _prompts_for(args: argparse.Namespace) -> int:
    """How many different prompts a load of unknown size gets; they repeat where that is too few."""
    if args.duration is None:
        raise InputError("is missing", place="--requests", remedy="give --requests or --duration")
    return int(args.rate * args.duration * 1.2) + 8 if args.rate else max(64, 8 * (args.concurrency or 1))


def _probed(endpoint: Endpoint, sampling: Sampling, timeout_s: float | None) -> tuple[Sampling, list[dict[str, Any]]]:
    """Returns the sampling with what the server can tell about tokens, and a finding if it would not say."""
    from dataclasses import replace

    from crossover.client import ProbeInconclusiveError, probe

    try:
        found = probe(endpoint, sampling, timeout_s or 600.0)
    except ProbeInconclusiveError as error:
        return sampling, [{"finding": "no_probe", "severity": "warning", "count": 1, "why": str(error)}]
    counts: TokenCounts = "token_ids" if found.token_ids else "none"
    if found.continuous_usage:
        counts = "continuous_usage"
    return replace(sampling, token_counts=counts), []


def summary(
    interpretation: Interpretation, extra_findings: list[dict[str, Any]], concurrency: int | None
) -> dict[str, Any]:
    """Returns the command's JSON; the figures of a rejected recording are null."""
    from crossover import metrics

    rows, fitness = interpretation.rows, interpretation.fitness
    figures: dict[str, Any] = dict.fromkeys(_FIGURES)
    if fitness["verdict"] == "ok":
        figures |= metrics.summarise_recording(interpretation, concurrency)
    ok = [row for row in rows if row["status"] == "ok"]
    statuses = Counter(row["status"] for row in rows)
    reasons = Counter(row["reason"] for row in rows if row["reason"] is not None)
    return {
        "requests": {name: statuses[name] for name in ("ok", "failed", "incomplete")},
        "reasons": dict(reasons.most_common()),
        **figures,
        "tokens": {
            "prompt": _total(ok, "prompt_tokens"),
            "completion": _total(ok, "completion_tokens"),
            "source": "usage" if ok else None,
            "per_event_source": sorted({row["tokens_source"] for row in ok} - {None}),
        },
        "fitness": fitness,
        "findings": [*extra_findings, *interpretation.findings],
    }


def _total(rows: Sequence[Mapping[str, Any]], name: str) -> int | None:
    values = [row[name] for row in rows]
    return sum(values) if values and None not in values else None


def text(result: dict[str, Any]) -> str:
    """Returns the summary for people."""
    requests = result["requests"]
    lines = [
        f"requests    {requests['ok']} ok, {requests['failed']} failed, {requests['incomplete']} incomplete",
        f"tokens      {result['tokens']['prompt']} prompt, {result['tokens']['completion']} completion (usage)",
        f"duration    {_number(result['duration_s'])} s, output {_number(result['output_tok_s'])} tok/s",
        "",
        f"{'seconds':<10}{'mean':>12}{'p50':>12}{'p90':>12}{'p99':>12}",
    ]
    for name in _FIGURES[2:]:
        figure = result[name] or {}
        cells = "".join(f"{_number(figure.get(key)):>12}" for key in ("mean", "p50", "p90", "p99"))
        lines.append(f"{name.removesuffix('_s').upper():<10}{cells}")
    fitness = result["fitness"]
    lag = fitness["lag_s"] or fitness["send_lag_s"] or {}
    lines += [
        "",
        f"recorder    {fitness['verdict']}, {fitness['clock']} clock, lag p99 {_number(lag.get('p99'))} s",
    ]
    lines += [f"{finding['severity']:<12}{finding['finding']}: {finding['why']}" for finding in result["findings"]]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def _show_progress(progress: Progress) -> None:
    line = f"{progress.elapsed_s:6.0f} s  {progress.done} done, {progress.failed} failed of {progress.sent} sent"
    print(f"\r{line}, {progress.bytes_seen >> 10} KiB", end="", file=sys.stderr, flush=True)


@contextmanager
def _stop_on_signal() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that a stopped measurement is still recorded and interpreted."""
    seen: list[int] = []
    names = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(name, lambda number, _: seen.append(number)) for name in names]
    try:
        yield seen
    finally:
        for name, handler in zip(names, before, strict=True):
            signal.signal(name, handler)
        if seen:
            print("stopped: requests under way were given up", file=sys.stderr)
