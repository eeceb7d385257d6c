"""Random: uniform draws from a large vocabulary, as every engine's own benchmark has them.

With a tokenizer file the words are those that are one token each, so that the count holds; as token ids, all
ids but the special ones are drawn. No real text looks like this: speculative decoding accepts little of it.
"""

from __future__ import annotations

from crossover.workloads.datasets.base import Dataset, Job, Prompt, Source
from crossover.workloads.words import invented_words

_FEWEST_WORDS = 64


def random_pieces(words: list[str], job: Job, *key: object, tokens: int) -> list[str]:
    """Returns words drawn by the stream of `key`, with spaces, a little more than `tokens` tokens of them."""
    spare = 8 + tokens // 50
    return [f"{words[number]} " for number in job.stream(*key).below(len(words), tokens + spare)]


def vocabulary(job: Job) -> list[str]:
    """Returns the words to draw from: the tokenizer's own one-token words, or invented ones."""
    own = job.tokenizer.words()
    return own if len(own) >= _FEWEST_WORDS else invented_words()


def open_random(job: Job) -> Source:
    if job.spec.form == "token_ids":
        ids = job.tokenizer.ids()

        def random_ids(index: int) -> Prompt:
            drawn = job.stream("prompt", index).below(len(ids), job.own_tokens)
            return Prompt(job.output_tokens(), job.own_tokens, token_ids=[ids[number] for number in drawn])

        return random_ids
    words = vocabulary(job)

    def random_text(index: int) -> Prompt:
        return job.exact(["".join(random_pieces(words, job, "prompt", index, tokens=job.own_tokens))])

    return random_text


DATASET = Dataset("random", "Words or token ids drawn uniformly from a large vocabulary.", open_random)
