"""Whether two figures may stand side by side."""

from __future__ import annotations

from crossover.peers.report import Figure


def comparable(a: Figure, b: Figure) -> bool:
    """Says whether two figures are of one definition and one statistic."""
    return why_not_comparable(a, b) is None


def why_not_comparable(a: Figure, b: Figure) -> str | None:
    """Returns the reason why two figures must not be compared, or None where they may be.

    Two figures of the same meaning may be; so may two of different tools that both are our own definition.
    The figure of a kind that the output does not tell is comparable with none, not even with its like.
    """
    if a.statistic != b.statistic:
        return f"{a.column} is the {a.statistic}, {b.column} the {b.statistic}"
    for figure in (a, b):
        if figure.meaning.endswith("unknown-kind"):
            return f"{figure.column}: {figure.means.formula}"
    if a.meaning == b.meaning or (a.means.same and b.means.same and a.means.metric == b.means.metric):
        return None
    return f"{a.column} is: {a.means.formula}; {b.column} is: {b.means.formula}"
