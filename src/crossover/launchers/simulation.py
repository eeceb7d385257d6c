"""What the simulated engine is told besides the real engine's arguments: on its command line, or through a variable
where an image holds it (envs/images/simulated)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.errors import InputError

VARIABLE = "SIMULATED_OPTIONS"


def simulation_words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns options of `crossover sim`.

    Args:
        options: `time_scale` (how much faster than real time, 1), `gpus`, `seed`, and `faults`, one or a list.
    """
    words = ["--time-scale", str(options.get("time_scale", 1))]
    for name in ("gpus", "seed"):
        if options.get(name) is not None:
            words += [f"--{name}", str(options[name])]
    faults = options.get("faults") or ()
    for fault in [faults] if isinstance(faults, str) else faults:
        words += ["--fault", str(fault)]
    return tuple(words)


def simulation_variables(options: Mapping[str, Any]) -> dict[str, str]:
    """Returns the variable for an image with the simulated engine, none where a launcher's option `simulated` is not
    given.

    Raises:
        InputError: a word with a blank in it, which the image would take for two.
    """
    if options.get("simulated") is None:
        return {}
    words = simulation_words(options["simulated"])
    for word in words:
        if len(word.split()) != 1:
            raise InputError(f"{word!r} has a blank in it", place="launcher.faults", remedy="give faults as NAME=VALUE")
    return {VARIABLE: " ".join(words)}
