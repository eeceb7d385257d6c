"""What an audit hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PASSED = "passed"
NOT_APPLICABLE = "not applicable"
FAULTS = (
    "impossible",
    "not closed",
    "mislabelled",
    "inconsistent",
    "contradiction",
    "infeasible",
    "overcommitted",
    "under-sampled",
    "contaminated",
    "incomplete",
    "missing",
)
NOTE = "rounding"
VERDICTS = (*FAULTS, NOTE)


@dataclass(frozen=True)
class Finding:
    """One statement of an audit.

    Attributes:
        verdict: one of `VERDICTS`, or `passed`, or `not applicable`.
        subject: the figure it is about, as a path such as `client.vllm-64k.tpot_mean_ms`.
        why: the identity with its numbers, one sentence.
        reported: what was reported, in the unit it was reported in.
        bound: what the identity allows or gives, in the same unit.
        advice: what to do about it.
        withholds: metrics (`ttft_s`) or statistics (`ttft_s.p90`) that must not be shown.
        audit: name of the audit; filled in by the registry.
    """

    verdict: str
    subject: str
    why: str
    reported: Any = None
    bound: Any = None
    advice: str | None = None
    withholds: tuple[str, ...] = field(default=())
    audit: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the finding as metrics.json and `crossover audit --json` hold it."""
        return {
            "audit": self.audit,
            "verdict": self.verdict,
            "subject": self.subject,
            "reported": self.reported,
            "bound": self.bound,
            "why": self.why,
            "advice": self.advice,
            "withholds": list(self.withholds),
        }


def passed(subject: str, why: str, reported: Any = None, bound: Any = None) -> Finding:
    """Returns the statement that a check was made and held."""
    return Finding(PASSED, subject, why, reported, bound)


def not_applicable(subject: str, why: str) -> Finding:
    """Returns the statement that a check could not be made, and why."""
    return Finding(NOT_APPLICABLE, subject, why)
