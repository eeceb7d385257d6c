"""Prefill time by context: a chunk costs a constant plus a part that grows with the tokens before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class PrefillModel:
    """Seconds of a chunk = new tokens x (`per_token_s` + `per_token_and_context_s` x context before it).

    Attributes:
        per_token_s: seconds a token at an empty context.
        per_token_and_context_s: seconds a token and token of context.
        chunk_tokens: the usual size of a chunk.
        residual_s: root mean square of the chunks' distance from the fit.
        n: chunks fitted.
    """

    per_token_s: float
    per_token_and_context_s: float
    chunk_tokens: int
    residual_s: float
    n: int

    def prompt_s(self, tokens: float) -> float:
        """Returns the seconds that a prompt of this many tokens takes when nothing else runs."""
        starts = np.arange(0, tokens, self.chunk_tokens)
        sizes = np.minimum(self.chunk_tokens, tokens - starts)
        return float((sizes * (self.per_token_s + self.per_token_and_context_s * starts)).sum())

    def to_dict(self) -> dict[str, Any]:
        """Returns the coefficients."""
        return {
            "per_token_s": self.per_token_s,
            "per_token_and_context_s": self.per_token_and_context_s,
            "chunk_tokens": self.chunk_tokens,
            "residual_s": self.residual_s,
            "n": self.n,
        }


def fit_prefill(chunks: Iterable[Mapping[str, Any]]) -> PrefillModel | None:
    """Fits the chunks of an engine log, `{"context_tokens", "new_tokens", "tok_s"}` each.

    Returns:
        The least-squares fit, or None where fewer than two contexts are known.
    """
    known = [c for c in chunks if c.get("context_tokens") is not None and c.get("tok_s") and c.get("new_tokens")]
    if len({c["context_tokens"] for c in known}) < 2:
        return None
    new = np.array([float(c["new_tokens"]) for c in known])
    context = np.array([float(c["context_tokens"]) for c in known])
    seconds = new / np.array([float(c["tok_s"]) for c in known])
    design = np.column_stack([new, new * context])
    solution, *_ = np.linalg.lstsq(design, seconds, rcond=None)
    residual = float(np.sqrt(np.mean((design @ solution - seconds) ** 2)))
    return PrefillModel(float(solution[0]), float(solution[1]), int(new.max()), residual, len(known))
