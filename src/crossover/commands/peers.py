"""`crossover peers`: reads and runs other load-test clients."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossover.peers import PeerReport

HELP = "Read what another load-test client wrote, in our definitions; or run one on our prompts."


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    read = actions.add_parser("read", help="read an output", allow_abbrev=False)
    read.add_argument("file", type=Path, help="JSON, CSV or console text of a client")
    read.add_argument("--tool", default="auto", help="which client wrote it (default: found out)")
    read.add_argument("--backend", help="the client's backend, where the output does not tell")
    read.add_argument("--client-version", help="the client's version, where the output does not tell")
    read.add_argument("--audit", action="store_true", help="audit the figures too")
    read.add_argument("--json", action="store_true", help="print JSON")
    compare = actions.add_parser("compare", help="set two outputs side by side where they may be", allow_abbrev=False)
    compare.add_argument("files", type=Path, nargs="+", metavar="FILE", help="two outputs, or one that holds two runs")
    compare.add_argument("--backend", action="append", default=[], help="of each file in turn, as for `read`")
    compare.add_argument("--client-version", action="append", default=[], help="of each file in turn, as for `read`")
    compare.add_argument("--json", action="store_true", help="print JSON")
    _configure_run(actions.add_parser("run", help="run a client against an endpoint", allow_abbrev=False))
    listing = actions.add_parser("list", help="list the clients and what their columns mean", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="print JSON")


def _configure_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", help="the client")
    parser.add_argument("--url", required=True, help="base URL of the endpoint, without /v1")
    parser.add_argument("--model", required=True, help="the name that the endpoint serves")
    parser.add_argument("--prompts", type=Path, required=True, help="a prompts file or folder")
    parser.add_argument("--out", type=Path, required=True, help="where everything that it writes goes")
    parser.add_argument("--endpoint", choices=("chat", "completions"), default="chat")
    parser.add_argument("--concurrency", type=int, help="requests at once")
    parser.add_argument("--rate", type=float, help="requests per second")
    parser.add_argument("--requests", type=int, help="only the first so many prompts")
    parser.add_argument("--tokenizer", type=Path, help="folder of the model's tokenizer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=3600.0, help="seconds after which it is ended")
    parser.add_argument("--bin", type=Path, help="folder of the client's commands (default: its own environment)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    return {"read": _read, "compare": _compare, "run": _run, "list": _list}[args.action](args)


def _read(args: argparse.Namespace) -> int:
    from crossover.peers import read_output

    reports = read_output(args.file, args.tool, backend=args.backend, version=args.client_version)
    results = [_result(report, audit=args.audit) for report in reports]
    if args.json:
        print(json.dumps(results[0] if len(results) == 1 else results, indent=2))
    else:
        print("\n\n".join(_text(result) for result in results))
    return 0


def _compare(args: argparse.Namespace) -> int:
    from itertools import zip_longest

    from crossover.errors import InputError
    from crossover.peers import compare_reports, read_output

    told = list(zip_longest(args.files, args.backend, args.client_version))[: len(args.files)]
    reports = [
        report for file, backend, version in told for report in read_output(file, backend=backend, version=version)
    ]
    if len(reports) != 2:
        raise InputError(f"{len(reports)} runs in the files, not two", remedy="give two outputs, or one with two runs")
    rows = compare_reports(reports[0], reports[1])
    names = [f"{report.tool} {report.version or '(version not told)'}" for report in reports]
    if args.json:
        print(json.dumps({"runs": names, "figures": rows}, indent=2))
        return 0
    print(f"a: {names[0]}\nb: {names[1]}")
    said: set[str] = set()
    for row in rows:
        values = f"{row['figure']} {row['statistic']}: {row['a']:.6g} and {row['b']:.6g} {row['unit']}"
        ratio = "" if row["ratio"] is None else f", b / a = {row['ratio']:.4g}"
        print(f"  {values}{', not compared' if row['why_not'] else ratio}")
        if row["why_not"] and row["figure"] not in said:
            said.add(row["figure"])
            print(f"    {row['why_not']}")
    return 0


def _run(args: argparse.Namespace) -> int:
    from itertools import islice

    from crossover.peers import PeerRun, run_peer
    from crossover.workloads import read_prompts

    load = PeerRun(
        base_url=args.url.rstrip("/"),
        model=args.model,
        prompts=list(islice(read_prompts(args.prompts), args.requests)),
        tokenizer=args.tokenizer.resolve() if args.tokenizer else None,
        api=args.endpoint,
        concurrency=args.concurrency,
        rate_per_s=args.rate,
        seed=args.seed,
        time_limit_s=args.time_limit,
    )
    result = _result(run_peer(args.tool, load, args.out, bin_dir=args.bin), audit=True)
    print(json.dumps(result, indent=2) if args.json else _text(result))
    return 0


def _list(args: argparse.Namespace) -> int:
    from crossover.peers import MEANINGS, TOOLS

    tools = [
        {"name": tool.name, "title": tool.title, "environment": tool.environment, "runs": tool.plan is not None}
        for tool in TOOLS.values()
    ]
    if args.json:
        print(json.dumps({"tools": tools, "meanings": {key: vars(value) for key, value in MEANINGS.items()}}, indent=2))
        return 0
    for tool in tools:
        print(f"{tool['name']:14} {tool['title']}{'' if tool['runs'] else ' (outputs are read only)'}")
    for meaning in MEANINGS.values():
        ours = f"our {meaning.metric}" if meaning.same else f"near our {meaning.metric}" if meaning.metric else "apart"
        print(f"{meaning.name:30} {ours:18} {meaning.formula}")
    return 0


def _result(report: PeerReport, *, audit: bool) -> dict[str, Any]:
    result = report.to_dict()
    if audit:
        from crossover.audits import audit_table, make_table

        verdict = audit_table(make_table(report.to_table()))
        result["audits"] = [finding.to_dict() for finding in verdict.findings]
    return result


def _text(result: dict[str, Any]) -> str:
    lines = [f"{result['tool']}: {_counts(result['requests'])}, {_length(result['duration_s'])}"]
    for metric, entry in result["metrics"].items():
        figures = ", ".join(
            f"{key} {'missing' if value is None else f'{value:.6g}'}"
            for key, value in entry.items()
            if value is None or isinstance(value, float)
        )
        lines.append(f"  {metric}: {figures} {entry['unit']}")
        if not entry["same_as_ours"]:
            lines.append(f"    not quite ours: {entry['formula']}")
    for entry in result["not_ours"]:
        if entry["statistic"] not in ("mean", "p50", "value"):
            continue
        value = "missing" if entry["value"] is None else f"{entry['value']:.6g} {entry['unit']}"
        lines.append(f"  apart: {entry['column']} = {value}: {entry['formula']}")
    for key, value in result["implied"].items():
        if value is not None:
            lines.append(f"  implied {key}: {value if isinstance(value, list) else f'{value:.6g}'}")
    lines += [f"  {found['verdict']}: {found['subject']}: {found['why']}" for found in result.get("audits", ())]
    return "\n".join(lines)


def _length(duration_s: float | None) -> str:
    return "duration not told" if duration_s is None else f"{duration_s:g} s"


def _counts(requests: dict[str, Any]) -> str:
    return ", ".join(f"{value} {key}" for key, value in requests.items() if value is not None) or "requests not told"
