"""End-to-end time of a request as queue, prefill and decode, and where two cells differ in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crossover.attribution.prefill import fit_prefill


@dataclass(frozen=True)
class Phases:
    """Mean seconds of a request's phases; they add up to the mean end-to-end time.

    Attributes:
        queue_s: from the send until its own prefill would have to begin.
        prefill_s: its own prefill, from the engine log's chunk rates; None where the log has none, and
            `queue_s` then holds both.
        decode_s: from first to last output.
    """

    queue_s: float
    prefill_s: float | None
    decode_s: float

    @property
    def e2e_s(self) -> float:
        """The sum."""
        return self.queue_s + (self.prefill_s or 0.0) + self.decode_s

    def to_dict(self) -> dict[str, float | None]:
        """Returns the phases and their sum."""
        return {
            "queue_s": self.queue_s,
            "prefill_s": self.prefill_s,
            "decode_s": self.decode_s,
            "e2e_s": self.e2e_s,
        }


def phases_of_cell(metrics: Mapping[str, Any]) -> Phases | None:
    """Returns the phases of a cell from its metrics.json; None where TTFT or E2E is withheld.

    The prefill is what the engine's own rates give for one prompt of this cell's mean length. With chunked
    prefill several prompts share the engine, so the rest of TTFT counts as queue.
    """
    entries = metrics.get("metrics") or {}
    ttft, e2e = (entries.get(name, {}).get("mean") for name in ("ttft_s", "e2e_s"))
    if ttft is None or e2e is None:
        return None
    own = _own_prefill(metrics)
    own = None if own is None else min(own, ttft)
    return Phases(ttft - (own or 0.0), own, e2e - ttft)


def _own_prefill(metrics: Mapping[str, Any]) -> float | None:
    engine = metrics.get("engine") or {}
    prompt, requests = (metrics.get("tokens") or {}).get("prompt"), (metrics.get("requests") or {}).get("ok")
    if not prompt or not requests:
        return None
    model = fit_prefill(engine.get("prefill_chunks") or [])
    if model is not None:
        return model.prompt_s(prompt / requests)
    rate = (engine.get("prefill_tok_s") or {}).get("max")
    return prompt / requests / rate if rate else None


def explain_latency(first: Phases, second: Phases) -> dict[str, float | None]:
    """Returns what each phase adds to the second cell's mean latency over the first's, in seconds.

    Where only one of the two logs shows prefill rates, queue and prefill are given together as `queue_s`.
    """
    if first.prefill_s is None or second.prefill_s is None:
        before = [phases.queue_s + (phases.prefill_s or 0.0) for phases in (first, second)]
        queue, prefill = before[1] - before[0], None
    else:
        queue, prefill = second.queue_s - first.queue_s, second.prefill_s - first.prefill_s
    return {
        "queue_s": queue,
        "prefill_s": prefill,
        "decode_s": second.decode_s - first.decode_s,
        "total_s": second.e2e_s - first.e2e_s,
    }
