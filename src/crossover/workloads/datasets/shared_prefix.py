"""Shared prefix: groups of requests that begin alike, for measuring prefix caches.

Request i belongs to group i modulo the number of groups, so that neighbours in time are of different groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from crossover.errors import InputError
from crossover.workloads.datasets.base import Dataset, Job, Prompt, Source
from crossover.workloads.datasets.random import random_pieces, vocabulary
from crossover.workloads.datasets.sharegpt_shaped import conversations
from crossover.workloads.lengths import assemble
from crossover.workloads.specification import Option


def open_shared_prefix(job: Job) -> Source:
    tokens, groups = job.option("prefix_tokens"), job.option("groups")
    if tokens >= job.own_tokens:
        raise InputError(
            f"a prefix of {tokens} tokens leaves none of {job.own_tokens} for what differs",
            place="options.prefix_tokens",
            remedy="make it shorter than input_tokens",
        )
    if job.spec.form == "token_ids" and job.option("content") == "random":
        return _open_ids(job, tokens, groups)
    words = vocabulary(job) if job.option("content") == "random" else []

    def pieces(*key: object) -> Iterator[str]:
        if words:
            yield "".join(random_pieces(words, job, *key, tokens=job.own_tokens))
        else:
            yield from conversations(job.stream(*key))

    prefixes = [
        assemble(pieces("prefix", group), tokens, job.tokenizer) for group in range(min(groups, job.spec.requests))
    ]

    def with_prefix(index: int) -> Prompt:
        def whole() -> Iterator[str]:
            yield prefixes[index % groups] + "\n\n"
            yield from pieces("suffix", index)

        return job.exact(whole())

    return with_prefix


def _open_ids(job: Job, tokens: int, groups: int) -> Source:
    ids = job.tokenizer.ids()

    def with_prefix(index: int) -> Prompt:
        prefix = job.stream("prefix", index % groups).below(len(ids), tokens)
        suffix = job.stream("suffix", index).below(len(ids), job.own_tokens - tokens)
        drawn = [ids[number] for part in (prefix, suffix) for number in part]
        return Prompt(job.output_tokens(), len(drawn), token_ids=drawn)

    return with_prefix


DATASET = Dataset(
    "shared-prefix",
    "Groups of requests that share the first tokens, for prefix caches.",
    open_shared_prefix,
    options=(
        Option("prefix_tokens", "whole", "how many tokens a group shares", required=True, least=1),
        Option("groups", "whole", "how many groups there are", default=1, least=1),
        Option("content", "choice", "what the text is like", default="natural", choices=("natural", "random")),
    ),
)
