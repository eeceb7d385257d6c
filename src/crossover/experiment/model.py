"""What an experiment is, as frozen data with every inheritance resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Variant:
    """One engine variant with its inheritance resolved.

    `fields` has the shape of workflow/schemas/variant.schema.json without `inherits`.
    """

    name: str
    fields: Mapping[str, Any]

    @property
    def engine(self) -> str:
        return str(self.fields["engine"])

    @property
    def launcher(self) -> Mapping[str, Any]:
        launcher: Mapping[str, Any] = self.fields["launcher"]
        return launcher

    @property
    def simulated(self) -> bool:
        """Whether the simulated engine answers: started here, or in a container whose image holds it."""
        return bool(self.launcher["kind"] == "simulated" or "time_scale" in self.launcher)

    @property
    def time_scale(self) -> float:
        """Simulated seconds a second; 1 for a real engine."""
        return float(self.launcher.get("time_scale", 1)) if self.simulated else 1.0

    @property
    def arguments(self) -> Mapping[str, Any]:
        arguments: Mapping[str, Any] = self.fields.get("arguments", {})
        return arguments

    @property
    def environment(self) -> Mapping[str, Any]:
        environment: Mapping[str, Any] = self.fields.get("environment", {})
        return environment


@dataclass(frozen=True)
class Workload:
    """One point of load: what is sent, how much of it, and how it arrives.

    Attributes:
        clients: other clients that measure it too; None for those of the experiment.
    """

    dataset: str
    input_tokens: int | None
    output_tokens: int | None
    concurrency: int | None
    rate_per_s: float | None
    arrivals: str
    requests: int | None
    duration_s: float | None
    request_timeout_s: float | None
    form: str
    options: Mapping[str, Any] = field(default_factory=dict)
    goodput: Mapping[str, float] | None = None
    clients: tuple[str, ...] | None = None
    variants: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        """Short name of the point, such as `random/64000+3000/c10`."""
        lengths = "+".join(str(n) for n in (self.input_tokens, self.output_tokens) if n is not None) or "own"
        load = f"c{self.concurrency}" if self.concurrency is not None else f"{self.rate_per_s:g}rps"
        return f"{self.dataset}/{lengths}/{load}"


@dataclass(frozen=True)
class RetestItem:
    """A named change to an experiment, with its hypothesis and decision rule (shape of retest.schema.json)."""

    id: int
    title: str
    hypothesis: str
    change: Mapping[str, Any]
    decision: Mapping[str, Any]
    not_included: str | None = None


@dataclass(frozen=True)
class Experiment:
    """An experiment file, validated and resolved.

    Attributes:
        name: the file's stem.
        file: the file, for messages and for paths relative to it.
        settings: the other top-level fields (hardware, models, metrics, warmup, ...), defaults filled in.
    """

    name: str
    file: Path
    title: str
    variants: Mapping[str, Variant]
    workloads: tuple[Workload, ...]
    settings: Mapping[str, Any]
    retest: Mapping[int, RetestItem]

    @property
    def hardware(self) -> Mapping[str, Any]:
        hardware: Mapping[str, Any] = self.settings["hardware"]
        return hardware

    @property
    def models(self) -> Mapping[str, Mapping[str, Any]]:
        models: Mapping[str, Mapping[str, Any]] = self.settings["models"]
        return models

    @property
    def simulated(self) -> bool:
        """True where any variant is simulated: then the whole report is stamped."""
        return any(variant.simulated for variant in self.variants.values())
