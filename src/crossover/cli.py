"""The `crossover` command: finds the subcommands in `crossover.commands` and turns errors into one line."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from crossover import __version__, commands
from crossover.errors import CrossoverError, is_full


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser with one subparser for each module of `crossover.commands`."""
    parser = argparse.ArgumentParser(
        prog="crossover", description="Compare LLM inference engines, and trust the verdict."
    )
    parser.add_argument("--version", action="version", version=f"crossover {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in _command_names():
        module = importlib.import_module(f"{commands.__name__}.{name}")
        subparser = subparsers.add_parser(
            name.replace("_", "-"), help=module.HELP, description=module.HELP, allow_abbrev=False
        )
        module.configure(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def _command_names() -> list[str]:
    """Returns the modules of `crossover.commands`; an underscore marks those that several commands share."""
    names = (module.name for module in pkgutil.iter_modules(commands.__path__))
    return sorted(name for name in names if not name.startswith("_"))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns its exit status (0 fine, 1 failed run, 2 bad input)."""
    args = build_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except CrossoverError as error:
        if args.debug:
            raise
        print(f"crossover {args.command}: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if args.debug or not (isinstance(error, OSError) or is_full(error)):
            raise
        full = "no room on the disk; make room and run again: " if is_full(error) else ""
        print(f"crossover {args.command}: {full}{error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
