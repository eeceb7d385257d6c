"""The faults that tests plant in the simulated engine, each named, some with a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from crossover.errors import InputError

# name: (what it does, default value or None when a value must be given)
KNOWN: Mapping[str, tuple[str, str | None]] = {
    "exit-at-start": ("the process ends with this status while it loads weights", "1"),
    "oom-at-start": ("CUDA out of memory while it loads weights", ""),
    "port-in-use": ("the port is taken, said as this engine says it", ""),
    "never-ready": ("the start-up never ends", ""),
    "slow-start": ("each phase of the start-up takes this many times longer", "3"),
    "die-after-tokens": ("the engine dies once it has generated this many tokens", None),
    "die-after-requests": ("the engine dies once it has finished this many requests", None),
    "stall": ("AFTER_TOKENS:SECONDS, no step for so many simulated seconds, once", "1000:60"),
    "drop-tokens": ("this share of the chunks is counted in the usage but never sent", "0.1"),
    "http-500": ("every Nth completion is answered with status 500", "2"),
    "jit-in-measurement": ("AFTER_TOKENS:SECONDS, a kernel is compiled in the middle of decoding", "1000:8"),
    "inflate-usage": ("the usage says this many times the tokens", "2"),
    "wrong-cache": ("this share of each prompt counts as cached, and a reset changes nothing", "0.5"),
    "changed-backend": ("the log names this attention backend whatever was asked for", "TRITON_MLA"),
    "delta-field": ("output comes in a delta field of this name", "thinking"),
    "oom-retries": ("so many soft out-of-memory retries at the first full prefill step", "32"),
    "ignore-sigterm": ("SIGTERM is logged and nothing else", ""),
}


@dataclass(frozen=True)
class Faults:
    """The faults of one run: {name: value}. An absent fault is not in it."""

    values: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def number(self, name: str) -> float | None:
        """Returns the value of a fault as a number, None when it is not planted."""
        return float(self.values[name]) if name in self.values else None

    def pair(self, name: str) -> tuple[float, float] | None:
        """Returns the value `A:B` of a fault, None when it is not planted."""
        if name not in self.values:
            return None
        first, _, second = self.values[name].partition(":")
        return float(first), float(second)


def parse_faults(texts: Iterable[str]) -> Faults:
    """Returns the faults given as NAME or NAME=VALUE.

    Raises:
        InputError: for an unknown name, a missing value, or a value of the wrong form.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in KNOWN:
            raise InputError(f"unknown fault {name!r}", remedy=f"use one of {', '.join(sorted(KNOWN))}")
        default = KNOWN[name][1]
        if not value and default is None:
            raise InputError(f"fault {name} lacks a value", remedy=f"write {name}=N")
        values[name] = value or default or ""
        _check(name, values[name])
    return Faults(values)


def _check(name: str, value: str) -> None:
    if KNOWN[name][1] == "" or name in ("changed-backend", "delta-field"):
        return
    parts = value.split(":") if name in ("stall", "jit-in-measurement") else [value]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        raise InputError(f"fault {name}={value} is not a number", remedy=f"write it as {KNOWN[name][1]}") from None
    if len(numbers) != (2 if name in ("stall", "jit-in-measurement") else 1):
        raise InputError(f"fault {name}={value} wants two numbers", remedy="write AFTER_TOKENS:SECONDS")
