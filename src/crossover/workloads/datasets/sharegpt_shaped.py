"""Natural-looking conversations of any length, made up, with the turn lengths of ShareGPT.

ShareGPT cannot fill long contexts (one conversation of 17,671 exceeds 64K tokens) and may not be shipped.
These are sentences from a small grammar of English about everyday and technical topics; a conversation stays
with its topic, so that words return as they do in real text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from crossover.workloads.datasets.base import Dataset, Job, Prompt, Source
from crossover.workloads.english import Writer
from crossover.workloads.streams import Stream

# Quantiles of the first prompts of ShareGPT V3 (17,671 conversations): p50, p90, p99 as counted, the others
# read off the log-normal curve through them. Between two of them lengths are uniform.
_TURN_TOKENS = (
    (0.0, 4),
    (0.10, 28),
    (0.25, 62),
    (0.50, 149),
    (0.75, 358),
    (0.90, 795),
    (0.97, 1592),
    (0.99, 2680),
    (1.0, 6660),
)
_TURNS_A_CONVERSATION = 4


def turn_tokens(stream: Stream) -> int:
    """Returns the length of one turn in tokens, drawn from the quantiles above."""
    at = stream.unit()
    for (low, few), (high, many) in itertools.pairwise(_TURN_TOKENS):
        if at < high:
            return int(few + (many - few) * (at - low) / (high - low))
    return _TURN_TOKENS[-1][1]


def conversations(stream: Stream) -> Iterator[str]:
    """Yields turns of conversations without end, each with its speaker."""
    while True:
        writer = Writer(stream)
        for turn in range(2 * (1 + stream.integer(_TURNS_A_CONVERSATION))):
            asks = turn % 2 == 0
            speaker = "User:" if asks else "Assistant:"
            introduction = f" {writer.introduction()}" if turn == 0 else ""
            yield f"{speaker}{introduction} {writer.turn(turn_tokens(stream), asks=asks)}\n\n"


def open_sharegpt_shaped(job: Job) -> Source:
    def conversation(index: int) -> Prompt:
        stream = job.stream("prompt", index)
        if job.spec.input_tokens is not None:
            return job.exact(conversations(stream))
        writer = Writer(stream)
        text = f"{writer.introduction()} {writer.turn(turn_tokens(stream), asks=True)}"
        return job.as_is(text, output_tokens=turn_tokens(stream))

    return conversation


DATASET = Dataset(
    "sharegpt-shaped",
    "Made-up natural-looking conversations with the turn lengths of ShareGPT; needs no file, any length.",
    open_sharegpt_shaped,
    free_lengths=frozenset({"input_tokens", "output_tokens"}),
)
