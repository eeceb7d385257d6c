"""Prompts were as long as was asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed

IDENTITY = "mean prompt tokens from usage = input tokens of the workload"
TOLERANCE = "1 % is named, 5 % is an error; a chat template of up to 64 tokens is allowed for"
REASON = (
    "random tokens that are decoded and encoded again change in number, by up to five times with the wrong tokenizer"
)
_WARN, _ERROR, _TEMPLATE_TOKENS = 0.01, 0.05, 64


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Compares the mean of usage with the plan."""
    asked = evidence.workload.get("input_tokens")
    tokens = evidence.observations.prompt_tokens
    if not asked or not len(tokens) or np.isnan(tokens).any():
        yield not_applicable("prompt_tokens", "the workload has no fixed length, or usage is missing")
        return
    mean = float(tokens.mean())
    drift = mean / float(asked) - 1
    words = f"{mean:.1f} prompt tokens on average where {asked} were asked for ({drift:+.2%})"
    above = mean - float(asked)
    template = 0 <= above <= _TEMPLATE_TOKENS
    if abs(drift) <= _WARN or template:
        yield passed("prompt_tokens", words, mean, asked)
        return
    size = "an error" if abs(drift) > _ERROR else "a warning"
    yield Finding(
        "inconsistent",
        "prompt_tokens",
        f"{words}: {size}",
        mean,
        asked,
        "send token ids, or adjust the text until the server's count holds",
    )
