"""How figures and names are written: significant digits, intervals, contexts, slugs."""

from __future__ import annotations

import math
import re

ABSENT = "–"


def number(value: float | None) -> str:
    """Returns `value` with about three significant digits and thousands separated, or a dash."""
    if value is None or not math.isfinite(value):
        return ABSENT
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1 or value == 0:
        return f"{value:.2f}" if value else "0"
    return f"{value:#.3g}"


def whole(value: float | None) -> str:
    """Returns a count with thousands separated; a dash where it is absent."""
    return ABSENT if value is None or not math.isfinite(value) else f"{value:,.0f}"


def interval(low: float | None, high: float | None) -> str:
    """Returns `low to high`, or nothing where either end is absent."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{number(low)} to {number(high)}"


def percent(fraction: float | None, digits: int = 1) -> str:
    """Returns a fraction of 0..1 as a percentage; a dash where it is absent."""
    return ABSENT if fraction is None or not math.isfinite(fraction) else f"{100 * fraction:.{digits}f} %"


def tokens(count: float | None) -> str:
    """Returns a token count the way engineers say it: 64K, 1M, 1,536; for None that each prompt has its own."""
    if count is None:
        return "own length"
    for size, letter in ((1_000_000, "M"), (1000, "K")):
        if count >= size and round(count / size, 1) * size == count:
            return f"{count / size:g}{letter}"
    if count >= 1024 and count % 1024 == 0:
        return f"{count // 1024:.0f}Ki"
    return whole(count)


def duration(seconds: float | None) -> str:
    """Returns a duration in the unit a person would choose: 410 s, 12.3 min, 3.1 h."""
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    if seconds < 120:
        return f"{number(seconds)} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def cut(text: str, letters: int) -> str:
    """Returns `text`, or as much of it as fits into this many letters, with an ellipsis."""
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def slug(text: str) -> str:
    """Returns `text` as a file name and anchor: lower-case letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def short_key(key: str | None) -> str:
    """Returns the first twelve digits of a store key, enough to tell entries apart on a page."""
    return key[:12] if key else ABSENT


def join(words: list[str]) -> str:
    """Returns `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def plural(count: int, word: str, many: str | None = None) -> str:
    """Returns `1 cell` or `3 cells`."""
    return f"{count:,} {word if count == 1 else many or word + 's'}"
