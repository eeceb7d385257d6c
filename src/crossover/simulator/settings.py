"""Turns an engine's arguments into what the simulated engine does: budgets, limits, memory pools, "
"coefficients, phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crossover.simulator import settings_sglang, settings_vllm
from crossover.simulator.calibration import DIALECTS, interpolate, load_calibration
from crossover.simulator.shape import Jit, Memory, StepCost

__all__ = ["Settings", "derive"]

_READERS = {"vllm": settings_vllm.read, "sglang": settings_sglang.read}


@dataclass(frozen=True)
class Settings:
    """The effective configuration of one simulated engine. Times in seconds, memory in GiB a GPU, lengths in tokens."""

    dialect: str
    model: str
    version: str
    tensor_parallel: int
    dcp: int
    prefill_budget_tokens: int
    chunk_limit_tokens: int | None  # the most that one prompt gets in one step
    max_running: int
    requested_running: int | None
    context_tokens: int
    mixed: bool  # prefill and decode share a step
    draft_tokens: int
    draft_method: str | None
    prefix_caching: bool
    prefix_block_tokens: int
    kv_dtype: str
    kv_scales: bool  # scaling factors are there for an FP8 cache
    reasoning_parser: str | None
    memory: Memory
    cost: StepCost
    jit: tuple[Jit, ...]
    oom_retries: int
    oom_retry_cost_s: float
    phases: tuple[tuple[str, float], ...]
    log_every_steps: int
    custom_all_reduce: bool
    autotune: bool
    acceptance_random: tuple[tuple[float, float], ...]
    acceptance_natural: tuple[tuple[float, float], ...]
    arguments: Mapping[str, Any]
    not_modelled: tuple[str, ...] = ()
    refusal: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def acceptance_mean(self, context_tokens: int, natural: bool) -> float:
        """Returns the mean tokens a step (bonus token included) at this context length; 1 without a draft model."""
        if not self.draft_tokens:
            return 1.0
        points = self.acceptance_natural if natural else self.acceptance_random
        return interpolate([list(point) for point in points], context_tokens / 1000)

    @property
    def refusal_phase(self) -> str:
        """The phase of the start-up in which `refusal` shows."""
        return "kv_cache" if (self.refusal or "").startswith(("ValueError", "RuntimeError: Not enough")) else "weights"

    def start_s(self) -> float:
        """Returns the seconds from the container's start to ready."""
        return sum(seconds for _, seconds in self.phases)


def derive(
    dialect: str,
    arguments: Mapping[str, Any],
    model: str | None = None,
    calibration: Mapping[str, Any] | None = None,
) -> Settings:
    """Returns the settings for arguments from `flags.parse_arguments` or `flags.arguments_from_mapping`.

    A configuration that the engine would refuse at start has `refusal` set to the engine's own error text.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"no dialect {dialect!r}")
    calibration = calibration or load_calibration()
    values = _READERS[dialect](arguments, calibration, model)
    modelled = values.pop("modelled")
    not_modelled = tuple(f"--{name}" for name in arguments if name not in modelled)
    acceptance = calibration[dialect]["acceptance"]
    return Settings(
        dialect=dialect,
        version=calibration[dialect]["version"],
        acceptance_random=tuple(map(tuple, acceptance["random"])),
        acceptance_natural=tuple(map(tuple, acceptance["natural"])),
        jit=tuple(Jit(**rule) for rule in calibration[dialect]["jit"]),
        arguments=dict(arguments),
        not_modelled=not_modelled,
        **values,
    )
