"""Whether two figures may stand side by side, and two reports figure by figure."""

from __future__ import annotations

from typing import Any

from crossover.audits.figures import recognise
from crossover.peers.implied import implied
from crossover.peers.report import Figure, PeerReport

Runs = tuple[PeerReport, PeerReport]
# Counts over the wall time, which no tool can define otherwise.
_PLAIN = frozenset({"requests-over-wall", "input-over-wall", "total-over-wall"})


def comparable(a: Figure, b: Figure, runs: Runs | None = None) -> bool:
    """Says whether two figures are of one definition and one statistic."""
    return why_not_comparable(a, b, runs) is None


def why_not_comparable(a: Figure, b: Figure, runs: Runs | None = None) -> str | None:
    """Returns the reason why two figures must not be compared, or None where they may be.

    Two figures of the same meaning may be; so may two of different tools that both are our own definition.
    The figure of a kind that the output does not tell is comparable with none, not even with its like.

    Args:
        runs: the reports that the figures are of, where they are at hand: a figure that is not of our definition is
            then compared within one version of one tool alone, since tools change theirs under the same name.
    """
    if a.statistic != b.statistic:
        return f"{a.column} is the {a.statistic}, {b.column} the {b.statistic}"
    for figure in (a, b):
        if figure.meaning.endswith("unknown-kind"):
            return f"{figure.column}: {figure.means.formula}"
    if a.means.same and b.means.same and a.means.metric == b.means.metric:
        return None
    if a.meaning == b.meaning and a.meaning in _PLAIN:
        return None
    if a.meaning != b.meaning:
        return f"{a.column} is: {a.means.formula}; {b.column} is: {b.means.formula}"
    names = [f"{run.tool} {run.version or '(version not told)'}" for run in runs or ()]
    if len(set(names)) > 1:
        return f"{a.column} is of {names[0]}, {b.column} of {names[1]}, and not of our definition: {a.means.formula}"
    return None


def compare_reports(a: PeerReport, b: PeerReport) -> list[dict[str, Any]]:
    """Sets the figures of two runs side by side that go by one name.

    Returns:
        `{"figure", "statistic", "a", "b", "unit", "ratio", "why_not"}` each: values in the unit; `ratio` is b / a, null
        where the two are of different definitions, and `why_not` then says how these differ.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    own = {_name(figure): figure for figure in reversed(b.figures) if figure.value is not None}
    for figure in a.figures:
        name = _name(figure)
        other = own.get(name)
        if other is None or figure.value is None or name in found:
            continue
        reason = why_not_comparable(figure, other, (a, b))
        left, right = _value(a, figure), _value(b, other)
        found[name] = {
            "figure": name[0],
            "statistic": name[1],
            "a": left,
            "b": right,
            "unit": figure.means.unit,
            "ratio": right / left if reason is None and left else None,
            "why_not": reason,
        }
    return list(found.values())


def _value(report: PeerReport, figure: Figure) -> float:
    """The figure, or what its counts give where it is a rate that was rounded for print (0.05 for 0.0462)."""
    assert figure.value is not None
    exact = implied(report)["request_rate_per_s"] if figure.meaning == "requests-over-wall" else None
    return float(figure.value if exact is None else exact)


def _name(figure: Figure) -> tuple[str, str]:
    """What a figure is called, whatever it is: an ITL is an ITL for whoever reads two tables."""
    known = recognise(figure.column, "s")
    if known is None:
        return figure.means.metric or figure.column, figure.statistic
    single = {"mean": "value"}.get(known.statistic, known.statistic)
    return known.quantity, single if figure.statistic == "value" else figure.statistic
