"""What a dataset is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crossover.errors import InputError
from crossover.workloads.lengths import assemble, gather
from crossover.workloads.specification import Option, Spec
from crossover.workloads.streams import Stream
from crossover.workloads.tokenizers import Tokenizer, open_tokenizer


@dataclass(frozen=True)
class Prompt:
    """One prompt; exactly one of text, token_ids and messages is set. None: not counted."""

    output_tokens: int
    prompt_tokens: int | None
    text: str | None = None
    token_ids: list[int] | None = None
    messages: list[dict[str, Any]] | None = None

    def leading(self, words: int) -> tuple[str, ...]:
        """Returns the first words (or ids), to compare the beginnings of prompts."""
        if self.token_ids is not None:
            return tuple(str(token) for token in self.token_ids[:words])
        text = self.text if self.text is not None else " ".join(str(m.get("content")) for m in self.messages or ())
        return tuple(text[: 100 * words].split(maxsplit=words)[:words])


Source = Callable[[int], Prompt]
"""From the index of a request to its prompt; equal in every process."""


@dataclass(frozen=True)
class Dataset:
    """A kind of prompts.

    Args:
        name: as a spec names it.
        summary: one sentence.
        options: what the spec may say under `options`.
        open: from a job to its source; loads what all prompts share.
        free_lengths: the lengths that the spec may leave to the dataset.
    """

    name: str
    summary: str
    open: Callable[[Job], Source]
    options: tuple[Option, ...] = ()
    free_lengths: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Job:
    """A spec with its tokenizer opened: what a dataset works from."""

    spec: Spec

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return open_tokenizer(self.spec.tokenizer)

    def stream(self, *key: object) -> Stream:
        """Returns the random stream for a part of this job, such as `("prompt", index)`."""
        return Stream(*self.spec.stream_key(), *key)

    def option(self, name: str) -> Any:
        return self.spec.options[name]

    @property
    def own_tokens(self) -> int:
        """Tokens that the prompt itself must hold: input_tokens less what the server adds."""
        wanted = self.spec.input_tokens
        assert wanted is not None
        own = wanted - (self.tokenizer.server_adds if self.spec.form == "text" else 0)
        if own < 1:
            raise InputError(
                f"{wanted} tokens leave none beside the {self.tokenizer.server_adds} that the server adds",
                place="input_tokens",
                remedy="ask for more tokens, or lower tokenizer.server_adds",
            )
        return own

    def output_tokens(self, natural: int | None = None) -> int:
        """Returns the wanted output length, or the dataset's own where the spec leaves it open."""
        wanted = self.spec.output_tokens if self.spec.output_tokens is not None else natural
        if wanted is None:
            raise InputError("the data hold no output length", place="output_tokens", remedy="give a number of tokens")
        return max(1, wanted)

    def exact(self, pieces: Iterable[str], output_tokens: int | None = None) -> Prompt:
        """Returns a prompt of exactly input_tokens from pieces of text that hold at least as many."""
        tokens = self.own_tokens
        output = self.output_tokens(output_tokens)
        if self.spec.form == "token_ids":
            text, _ = gather(pieces, tokens, self.tokenizer)
            ids = self.tokenizer.encode(text)[:tokens]
            return Prompt(output, len(ids), token_ids=ids)
        return self.as_is(assemble(pieces, tokens, self.tokenizer), output)

    def as_is(self, text: str, output_tokens: int | None = None) -> Prompt:
        """Returns a prompt of just this text, counted."""
        output = self.output_tokens(output_tokens)
        if self.spec.form == "token_ids":
            ids = self.tokenizer.encode(text)
            return Prompt(output, len(ids), token_ids=ids)
        return Prompt(output, self.tokenizer.count(text) + self.tokenizer.server_adds, text=text)
