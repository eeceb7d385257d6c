"""The command line: one line for an error, the right status, a traceback only when asked for."""

import re
from pathlib import Path

import pytest

from crossover.cli import build_parser, main

README = Path(__file__).parents[2] / "README.md"


def test_bad_input_is_one_line_and_status_2(capsys) -> None:
    assert main(["plan", "no-such-experiment"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("crossover plan: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(Exception, match="no experiment"):
        main(["--debug", "plan", "no-such-experiment"])


def test_an_experiment_that_is_nearly_right_names_the_right_one(capsys) -> None:
    main(["plan", "kimi-k3-b30"])
    assert "did you mean `kimi-k3-b300`?" in capsys.readouterr().err


def test_every_command_says_what_it_is_for() -> None:
    text = build_parser().format_help()
    for name in ("plan", "why", "store", "deploy", "bench", "parse-log", "audit", "report", "compare", "lock", "sim"):
        assert re.search(rf"^\s+{name}\s+\S", text, re.MULTILINE), name


def test_the_readme_names_no_command_that_is_not_there() -> None:
    actions = [action for action in build_parser()._actions if action.choices]
    known = set(actions[0].choices)
    named = set(re.findall(r"`crossover ([a-z][a-z-]+)", README.read_text()))
    assert named - known == set()
