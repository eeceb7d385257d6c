"""What a client is to us."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.peers.reading import Output
from crossover.peers.report import PeerReport

if TYPE_CHECKING:
    from crossover.peers.running import PeerRun


@dataclass(frozen=True)
class Plan:
    """How a client is to be started.

    Attributes:
        words: the command; its first word is looked up in the client's environment.
        files: what must lie in the output folder before it starts, name to text.
        environment: variables on top of the caller's.
        output: where it writes what `read` reads, relative to the output folder; None for its console output.
        notes: what the run does otherwise than our recorder would, for the report.
    """

    words: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    output: str | None = None
    notes: tuple[str, ...] = ()


LINEAR = "linear interpolation (numpy)"


@dataclass(frozen=True)
class Tool:
    """A client.

    Attributes:
        name: as `client:` in an experiment and `--tool` spell it.
        title: how its makers write it.
        recognises: says whether an output looks like this tool's.
        read: returns a report for each run in an output; none where it is not this tool's.
        environment: name of its environment under envs/, None where outputs are only read.
        plan: from a run to how to start it; None likewise.
        percentiles: how it takes a percentile of a sample.
        audited_as_printed: whether its console output names and units its figures so plainly that the audits read them
            as they stand, with the digits that were printed.
        key_variable: environment variable that it reads an API key from; None where it takes one only in its command
            line or in a file, where others could read it.
    """

    name: str
    title: str
    recognises: Callable[[Output], bool]
    read: Callable[[Output], list[PeerReport]]
    environment: str | None = None
    plan: Callable[[PeerRun, Path], Plan] | None = None
    percentiles: str = LINEAR
    audited_as_printed: bool = False
    key_variable: str | None = None


def flags(values: Mapping[str, Any]) -> list[str]:
    """Returns options as words: None and False are left out, True is the option alone."""
    words: list[str] = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def prompt_texts(prompts: Sequence[Mapping[str, Any]], tool: str) -> list[str]:
    """Returns the texts of prompts for a client that takes nothing else; InputError for ids and messages."""
    from crossover.errors import InputError

    for prompt in prompts:
        if prompt.get("text") is None:
            raise InputError(
                f"{tool} takes prompts as text alone; prompt {prompt.get('index')} is none",
                place="form",
                remedy='build the prompts with form "text"',
            )
    return [str(prompt["text"]) for prompt in prompts]
