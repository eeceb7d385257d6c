"""`crossover config`: what a server really runs with, from its log, its endpoints and its metrics."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.errors import InputError

if TYPE_CHECKING:
    from crossover.configuration import Configuration, Setting

HELP = "say what a server really runs with, and whether that is what was asked for"
_ENGINES = ("vllm", "sglang")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="a running server to ask, without /v1")
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable that holds its API key")
    parser.add_argument("--log", type=Path, metavar="FILE", help="its log")
    parser.add_argument(
        "--info", type=Path, action="append", default=[], metavar="FILE",
        help="a saved answer of /server_info, /get_server_info (JSON) or /metrics (text); may be repeated",
    )  # fmt: skip
    parser.add_argument("--engine", choices=("auto", *_ENGINES), default="auto", help="whose server it is")
    parser.add_argument("--experiment", metavar="NAME", help="with --variant: what was asked for")
    parser.add_argument("--variant", metavar="NAME", help="an engine variant of the experiment")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the settings; 0 also where one was changed, since nothing failed."""
    from crossover.configuration import effective_configuration
    from crossover.logs import read_log

    if not (args.url or args.log or args.info):
        raise InputError("there is nothing to read", remedy="give --url, --log or --info")
    requested = _requested(args)
    report = read_log(args.log, engine=args.engine).to_dict() if args.log else None
    saved = [_saved(file) for file in args.info]
    engine = _engine(args, requested, report, [answer for _, answer in saved])
    info: dict[str, Any] = {path: answer for path, answer in saved if path}
    if args.url:
        info |= _asked(args, engine)
    found = effective_configuration(engine, report, info, requested)
    print(json.dumps({"engine": engine, **found.to_dict()}, default=str) if args.json else text(found))
    return 0


def _requested(args: argparse.Namespace) -> dict[str, Any] | None:
    if (args.experiment is None) != (args.variant is None):
        raise InputError("--experiment and --variant go together", remedy="give both or none")
    if args.experiment is None:
        return None
    from crossover.experiment import load_experiment

    experiment = load_experiment(args.experiment)
    if args.variant not in experiment.variants:
        known = ", ".join(experiment.variants)
        raise InputError(f"no variant {args.variant!r}", file=experiment.file, remedy=f"use one of {known}")
    variant = experiment.variants[args.variant]
    return {"engine": variant.engine, "arguments": variant.arguments, "environment": variant.environment}


def _saved(file: Path) -> tuple[str, Any]:
    """Returns the path that a saved answer is of, and what it says: JSON, or the samples of a metrics text."""
    from crossover.engines import ENGINES
    from crossover.engines.information import information_in, without_secrets

    try:
        content = file.read_text(errors="replace")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, remedy="give a saved answer") from None
    try:
        answer = json.loads(content)
    except ValueError:
        names = [name for engine in ENGINES.values() for name in engine.info_metrics]
        try:
            return "/metrics", information_in(content, names)
        except ValueError:
            remedy = "give the body of /server_info, /get_server_info or /metrics as the server sent it"
            raise InputError("neither JSON nor metrics", file=file, remedy=remedy) from None
    if not isinstance(answer, Mapping):
        raise InputError("not a JSON object", file=file, remedy="give the body of /server_info as the server sent it")
    secret = frozenset().union(*(engine.secret_arguments for engine in ENGINES.values()))
    return ("/v1/models" if "data" in answer else "/server_info"), without_secrets(answer, secret, [])


def _engine(
    args: argparse.Namespace,
    requested: Mapping[str, Any] | None,
    report: Mapping[str, Any] | None,
    saved: Sequence[Mapping[str, Any]],
) -> str:
    """Returns the engine: as told, else as the experiment, the log, an answer or the running server shows it."""
    if args.engine != "auto":
        return str(args.engine)
    told = [(requested or {}).get("engine"), (report or {}).get("engine"), *map(_speaker, saved)]
    found = next((name for name in told if name), None)
    if found is None and args.url:
        found = next((name for name in _ENGINES if _answers(args, name)), None)
    if found is None:
        raise InputError("nothing tells which engine it is", place="--engine", remedy=f"say {' or '.join(_ENGINES)}")
    return str(found)


def _speaker(answer: Mapping[str, Any]) -> str | None:
    """Returns whose answer it is, None where it does not show."""
    if "vllm_config" in answer or any(name.startswith("vllm:") for name in answer):
        return "vllm"
    return "sglang" if "tp_size" in answer or any(name.startswith("sglang:") for name in answer) else None


def _answers(args: argparse.Namespace, engine: str) -> bool:
    """Whether the server answers as that engine does: vLLM has /version, SGLang says tp_size."""
    answers = _asked(args, engine)
    return "/version" in answers if engine == "vllm" else any("tp_size" in answer for answer in answers.values())


def _asked(args: argparse.Namespace, engine: str) -> dict[str, Any]:
    import os

    from crossover.engines import get_engine
    from crossover.engines.information import server_info

    key = os.environ.get(args.api_key_env) if args.api_key_env else None
    if args.api_key_env and not key:
        raise InputError("names an empty variable", place="--api-key-env", remedy=f"export {args.api_key_env}")
    answers = server_info(get_engine(engine), args.url, api_key=key)
    if not answers:
        raise InputError(f"{args.url} answers none of the questions", place="--url", remedy="check that it runs")
    return answers


def text(found: Configuration) -> str:
    """Returns the settings for people: those that were changed or disagree first."""
    rows = sorted(found.settings, key=lambda one: (one.verdict != "changed", not one.disagree, one.name))
    width = max((len(one.name) for one in rows), default=0)
    lines = [f"sources, the most trusted first: {', '.join(found.sources)}", ""]
    lines += [f"{one.name:<{width}}  {_told(one)}" for one in rows]
    return "\n".join(lines)


def _told(setting: Setting) -> str:
    words = f"{setting.value}  ({setting.source})" if setting.source else "not stated"
    if setting.verdict == "changed":
        words += f"  CHANGED: {setting.requested} was asked for by {setting.flag}"
    elif setting.verdict:
        words += f"  {setting.verdict}"
    others = [f"{source}: {value}" for source, value in setting.stated if value != setting.value]
    return words + (f"  but {', '.join(others)}" if setting.disagree else "")
