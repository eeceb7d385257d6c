"""`crossover sim`: a simulated vLLM or SGLang server."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

HELP = "run a simulated vLLM or SGLang server (OpenAI-compatible; no model, no GPU)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("--dialect", choices=("vllm", "sglang"), required=True, help="the engine to behave like")
    parser.add_argument("--model", help="the model's name (default: the one in the engine's arguments)")
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port",
        type=int,
        help="port (default: the one in the engine's arguments, else the engine's own; 0: a free one)",
    )
    parser.add_argument(
        "--time-scale", type=_positive, default=1.0, metavar="S", help="simulated seconds in one real second"
    )
    parser.add_argument("--gpus", type=int, help="GPUs of the simulated machine (the calibrated one has 8)")
    parser.add_argument("--seed", type=int, default=0, help="decides what draft tokens are accepted")
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME[=VALUE]", help="plant a fault; NAME 'list' lists them"
    )
    parser.add_argument(
        "--calibration", type=Path, metavar="FILE", help="coefficients in place of the package's own (YAML)"
    )
    parser.add_argument("engine_arguments", nargs="*", metavar="-- ENGINE ARGS", help="the engine's own arguments")


def run(args: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT."""
    import sys

    from crossover.errors import InputError
    from crossover.simulator.calibration import read_calibration
    from crossover.simulator.faults import KNOWN, parse_faults
    from crossover.simulator.flags import parse_arguments
    from crossover.simulator.server import serve
    from crossover.simulator.settings import derive

    if args.fault == ["list"]:
        for name, (what, default) in sorted(KNOWN.items()):
            print(f"{name + (f'={default}' if default else ''):32} {what}")
        return 0
    try:
        arguments = parse_arguments(args.dialect, args.engine_arguments)
    except InputError as error:
        program = "vllm serve" if args.dialect == "vllm" else "launch_server.py"
        print(f"{program}: error: {error.problem}", file=sys.stderr)
        raise
    calibration = read_calibration(args.calibration) if args.calibration else None
    settings = derive(args.dialect, arguments, args.model, calibration)
    if args.gpus is not None and settings.tensor_parallel > args.gpus:
        raise InputError(f"tensor parallelism over {settings.tensor_parallel} GPUs, but the machine has {args.gpus}")
    port = args.port if args.port is not None else int(arguments.get("port", 8000 if args.dialect == "vllm" else 30000))
    return serve(settings, args.host or "127.0.0.1", port, args.time_scale, parse_faults(args.fault), args.seed)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("must be above 0")
    return value
