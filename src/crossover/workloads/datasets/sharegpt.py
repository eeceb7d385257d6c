"""ShareGPT: first prompts of the user's own ShareGPT file, filtered and sampled once for every engine.

The benchmarks of vLLM and SGLang filter the same file differently and so draw different prompts; the presets
reproduce both filters, and one prompts file then feeds both engines.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.workloads.datasets.base import Dataset, Job, Prompt, Source
from crossover.workloads.datasets.purposes import opening_of, same_purpose
from crossover.workloads.specification import Option

_BETWEEN = re.compile(r"[\s,\[\]]*")
_SPEAKERS = {
    "human": "User",
    "user": "User",
    "gpt": "Assistant",
    "assistant": "Assistant",
    "system": "System",
}


@dataclass(frozen=True)
class Limits:
    """Which prompts pass: lengths in tokens, both ends included; None for no limit."""

    min_prompt_tokens: int = 1
    min_output_tokens: int = 1
    max_prompt_tokens: int | None = None
    max_total_tokens: int | None = None

    def pass_(self, prompt: int, output: int, *, output_is_given: bool) -> bool:
        """Says whether a prompt and its output pass; a given output length has no minimum."""
        return (
            prompt >= self.min_prompt_tokens
            and (output_is_given or output >= self.min_output_tokens)
            and (self.max_prompt_tokens is None or prompt <= self.max_prompt_tokens)
            and (self.max_total_tokens is None or prompt + output <= self.max_total_tokens)
        )


# vllm: `is_valid_sequence` of vllm.benchmarks.datasets; sglang: `sample_sharegpt_requests` of its benchmark,
# which has no upper limit unless one is asked for.
PRESETS = {
    "vllm": Limits(4, 4, 1024, 2048),
    "sglang": Limits(2, 2),
    "none": Limits(),
}


@dataclass(frozen=True)
class Conversation:
    """The turns of one conversation as (speaker, text)."""

    turns: tuple[tuple[str, str], ...]

    @property
    def opening(self) -> str:
        return opening_of(self.turns[0][1])


def open_sharegpt(job: Job) -> Source:
    mine = [found for found in _read(job) if same_purpose(found.opening, job.spec.purpose)]
    if job.option("distinct"):
        mine = list({found.opening: found for found in reversed(mine)}.values())[::-1]
    order = job.stream("order").permutation(len(mine))
    if job.spec.input_tokens is not None:
        return _open_joined([mine[number] for number in order], job)
    sample = _sample([mine[number] for number in order], limits_of(job), job)

    def first_prompt(index: int) -> Prompt:
        return job.as_is(*sample[index])

    return first_prompt


def limits_of(job: Job) -> Limits:
    """Returns the preset's limits with the spec's own in place of them."""
    preset = PRESETS[job.option("preset")]
    own = {name: job.option(name) for name in Limits.__dataclass_fields__ if job.option(name) is not None}
    return Limits(**{**vars(preset), **own})


def _sample(conversations: list[Conversation], limits: Limits, job: Job) -> list[tuple[str, int]]:
    """Returns the first prompts that pass, with the output length of each."""
    found: list[tuple[str, int]] = []
    given = job.spec.output_tokens
    for conversation in conversations:
        if len(found) == job.spec.requests:
            break
        (_, prompt), (_, answer) = conversation.turns[:2]
        output = job.tokenizer.count(answer) if given is None else given
        if limits.pass_(job.tokenizer.count(prompt), output, output_is_given=given is not None):
            found.append((prompt, output))
    if len(found) < job.spec.requests:
        raise InputError(
            f"only {len(found)} of the {job.spec.requests} prompts wanted pass the filter, of {len(conversations)} "
            f"conversations for {job.spec.purpose} (an eighth of a file is kept for warm-up)",
            place="options.file",
            remedy="ask for fewer requests, widen the limits, or give a larger file",
        )
    return found


def _open_joined(conversations: list[Conversation], job: Job) -> Source:
    """Prompts of an exact length: whole conversations in a row, each prompt beginning with another."""
    if len(conversations) < job.spec.requests:
        raise InputError(
            f"{len(conversations)} conversations cannot begin {job.spec.requests} prompts",
            place="options.file",
            remedy="ask for fewer requests, or give a larger file",
        )

    def joined(index: int) -> Prompt:
        rest = job.stream("prompt", index).permutation(len(conversations))
        numbers = itertools.chain([index], (number for number in rest if number != index))
        return job.exact(_turns(conversations[number] for number in numbers))

    return joined


def _turns(conversations: Iterator[Conversation]) -> Iterator[str]:
    for conversation in conversations:
        for speaker, text in conversation.turns:
            yield f"{_SPEAKERS.get(speaker, speaker)}: {text}\n\n"


def _read(job: Job) -> list[Conversation]:
    """Returns the conversations with two turns or more; two turns only where no more are needed."""
    file = Path(job.option("file"))
    whole = job.spec.input_tokens is not None
    found = [_conversation(raw, whole) for raw in _objects(file, job.option("truncated"))]
    usable = [conversation for conversation in found if conversation is not None]
    if not usable:
        raise InputError(
            "holds no conversation of two turns",
            file=file,
            remedy='give a list of {"conversations": [{"from": "human", "value": "..."}, ...]}',
        )
    return usable


def _conversation(raw: Any, whole: bool) -> Conversation | None:
    turns = raw.get("conversations") or raw.get("conversation") or [] if isinstance(raw, dict) else []
    pairs = tuple(
        (str(turn.get("from", "")), turn["value"])
        for turn in (turns if whole else turns[:2])
        if isinstance(turn, dict) and isinstance(turn.get("value"), str)
    )
    return Conversation(pairs) if len(pairs) >= 2 else None


def _objects(file: Path, truncated: bool) -> Iterator[Any]:
    """Yields the objects of a JSON list (or of JSON lines) one by one: what is not needed is not kept."""
    text = file.read_text("utf-8")
    decoder = json.JSONDecoder()
    at = 0
    while True:
        at = _end_of(_BETWEEN.match(text, at), at)
        if at >= len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError as error:
            if truncated:
                return
            raise InputError(
                f"not JSON from character {at} on: {error}",
                file=file,
                remedy="get the whole file, or set options.truncated to true to use what stands before that",
            ) from error
        yield value


def _end_of(match: re.Match[str] | None, otherwise: int) -> int:
    return match.end() if match else otherwise


def _limit(name: str, help_: str) -> Option:
    return Option(name, "whole", help_, least=1)


DATASET = Dataset(
    "sharegpt",
    "First prompts of a ShareGPT file, or with input_tokens its conversations joined to that length.",
    open_sharegpt,
    options=(
        Option("file", "file", "the ShareGPT JSON file", required=True),
        Option("preset", "choice", "whose filter", default="none", choices=tuple(PRESETS)),
        Option("distinct", "flag", "whether prompts that begin like an earlier one are left out", default=True),
        _limit("min_prompt_tokens", "shortest prompt, in place of the preset's"),
        _limit("min_output_tokens", "shortest answer, in place of the preset's; not used with output_tokens"),
        _limit("max_prompt_tokens", "longest prompt, in place of the preset's"),
        _limit("max_total_tokens", "longest prompt and answer together, in place of the preset's"),
        Option("truncated", "flag", "whether a file that ends too early is used as far as it goes", default=False),
    ),
    free_lengths=frozenset({"input_tokens", "output_tokens"}),
)
