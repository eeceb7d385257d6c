"""Footnotes of the page: each reason gets one number, however often it applies."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Notes:
    """Collects the reasons why figures are withheld; numbers start at 1 in the order of first use."""

    reasons: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, reason: str) -> int:
        """Returns the number of `reason`, a new one at its first use."""
        reason = f"{reason[:1].upper()}{reason[1:]}"
        if reason not in self._numbers:
            self.reasons.append(reason)
            self._numbers[reason] = len(self.reasons)
        return self._numbers[reason]
