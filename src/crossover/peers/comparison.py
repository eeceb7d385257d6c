"""Whether two figures may stand side by side."""

from __future__ import annotations

from crossover.peers.report import Figure, PeerReport

Runs = tuple[PeerReport, PeerReport]


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
    if a.meaning != b.meaning:
        return f"{a.column} is: {a.means.formula}; {b.column} is: {b.means.formula}"
    names = [f"{run.tool} {run.version}" for run in runs or ()]
    if len(set(names)) > 1:
        return f"{a.column} is of {names[0]}, {b.column} of {names[1]}, and not of our definition: {a.means.formula}"
    return None
