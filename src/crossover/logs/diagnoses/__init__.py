"""Diagnoses: what several lines say together, as data in `rules.yaml`; a finding states its evidence.

A new diagnosis is an entry there: which lines are evidence, which combination is a finding, what follows.
May import the table, the builder and the records of `crossover.logs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from crossover.logs.builder import Builder
from crossover.logs.lines import Line
from crossover.logs.model import Diagnosis
from crossover.logs.table import LineKind, kind

EVIDENCE = "evidence_"
"""How the names of the rows that keep evidence begin."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One diagnosis. It holds if all of `needs`, one of `any_of` (if given) and none of `unless` have
    evidence.
    """

    name: str
    kind: str
    severity: str
    conclusion: str
    advice: str
    needs: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    settings: Mapping[str, str] | None = None


@cache
def _document() -> dict[str, Any]:
    text = resources.files(__name__).joinpath("rules.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


@cache
def rules() -> tuple[Rule, ...]:
    """All diagnoses, in the order of the file."""
    return tuple(_rule(dict(entry)) for entry in _document()["rules"])


def _rule(entry: dict[str, Any]) -> Rule:
    entry["any_of"] = entry.pop("any", ())
    for name in ("needs", "any_of", "unless", "also"):
        entry[name] = tuple(entry.get(name, ()))
    return Rule(**entry)


def evidence_kinds() -> list[LineKind]:
    """The rows that keep the evidence lines."""
    return [
        kind(
            f"{EVIDENCE}{name}",
            entry["trigger"],
            entry["pattern"],
            _keeper(name, entry.get("unless")),
            figure=False,
            joins=False,
        )
        for name, entry in _document()["evidence"].items()
    ]


def _keeper(name: str, unless: str | None) -> Any:
    other = re.compile(unless) if unless else None

    def keep(builder: Builder, line: Line, match: re.Match[str]) -> bool:
        if other is not None and other.search(line.text):
            return False
        excerpt = line.message
        if match[0] not in excerpt:  # a configuration line of thousands of characters: show the place
            start, end = max(match.start() - 60, 0), match.end() + 60
            excerpt = f"... {line.text[start:end].strip()} ..."
        builder.keep(name, excerpt)
        return False

    return keep


def diagnose(evidence: Mapping[str, Sequence[str]], config: Mapping[str, Any]) -> list[Diagnosis]:
    """Returns what the evidence shows.

    Args:
        evidence: kept lines by evidence name.
        config: the effective configuration under the common names.
    """
    return [
        Diagnosis(rule.name, rule.kind, rule.severity, rule.conclusion, rule.advice, _lines(rule, evidence))
        for rule in rules()
        if _holds(rule, evidence, config)
    ]


def _holds(rule: Rule, evidence: Mapping[str, Sequence[str]], config: Mapping[str, Any]) -> bool:
    return (
        all(evidence.get(name) for name in rule.needs)
        and (not rule.any_of or any(evidence.get(name) for name in rule.any_of))
        and not any(evidence.get(name) for name in rule.unless)
        and all(_CONDITIONS[condition](config.get(name)) for name, condition in (rule.settings or {}).items())
    )


_CONDITIONS: Mapping[str, Callable[[Any], bool]] = {
    "above_one_or_unknown": lambda value: not isinstance(value, int) or value > 1,
    "not_triton": lambda value: value != "triton",
    "gpu_or_unknown": lambda value: value not in ("npu", "cpu", "xpu", "tpu", "hpu"),
}


def _lines(rule: Rule, evidence: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    names = (*rule.needs, *rule.any_of, *rule.also)
    return tuple(line for name in names for line in list(evidence.get(name, ()))[:3])
