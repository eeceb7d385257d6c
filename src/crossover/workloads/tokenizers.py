"""Tokenizers: how the tokens of a prompt are counted.

`words` counts whitespace-separated words, as the simulated engine does; `file` is a `tokenizer.json` or a
`tiktoken.model`; `ids` knows only how many ids there are, which is enough for random ids.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from crossover.errors import InputError
from crossover.workloads.tiktoken_file import load_tiktoken

_WORD = re.compile(r"\S+")


class Tokenizer(Protocol):
    """What the datasets need from a tokenizer."""

    @property
    def server_adds(self) -> int:
        """Tokens that the server puts around the text (chat template, begin-of-sequence token)."""

    def count(self, text: str) -> int:
        """Returns the number of tokens of the text."""

    def encode(self, text: str) -> list[int]:
        """Returns the token ids of the text; InputError where this tokenizer has none."""

    def cut(self, text: str, tokens: int) -> str:
        """Returns the beginning of the text that is whole words and about `tokens` tokens."""

    def ids(self) -> list[int]:
        """Returns the ids that a random prompt may hold (no special tokens); InputError where unknown."""

    def words(self) -> list[str]:
        """Returns words that are one token each after a space; empty where there are none."""


@dataclass(frozen=True)
class Words:
    """One whitespace-separated word is one token."""

    server_adds: int = 0

    def count(self, text: str) -> int:
        return len(text.split())

    def encode(self, text: str) -> list[int]:
        raise InputError(
            "the words tokenizer has no token ids",
            place="form",
            remedy='use form "text", or a tokenizer of kind "file"',
        )

    def cut(self, text: str, tokens: int) -> str:
        end = 0
        for number, match in enumerate(_WORD.finditer(text), start=1):
            if number > tokens:
                break
            end = match.end()
        return text[:end]

    def ids(self) -> list[int]:
        raise InputError(
            "the words tokenizer has no token ids",
            place="form",
            remedy='use form "text", or a tokenizer of kind "ids" with the vocabulary_size',
        )

    def words(self) -> list[str]:
        return []


@dataclass(frozen=True)
class Ids:
    """Ids from `first_id` up to the vocabulary size; text cannot be counted."""

    vocabulary_size: int
    first_id: int = 0
    server_adds: int = 0

    def _refuse(self) -> InputError:
        return InputError(
            'a tokenizer of kind "ids" can only make random token ids',
            place="tokenizer",
            remedy='use dataset random with form "token_ids", or a tokenizer of kind "file" or "words"',
        )

    def count(self, text: str) -> int:
        raise self._refuse()

    def encode(self, text: str) -> list[int]:
        raise self._refuse()

    def cut(self, text: str, tokens: int) -> str:
        raise self._refuse()

    def ids(self) -> list[int]:
        return list(range(self.first_id, self.vocabulary_size))

    def words(self) -> list[str]:
        raise self._refuse()


@dataclass(frozen=True)
class FileTokenizer:
    """A tokenizer read from a file, without its special tokens: what the server adds is declared, not guessed."""

    inner: Any = field(repr=False)
    server_adds: int = 0

    def count(self, text: str) -> int:
        # The fast form leaves the offsets out: a tenth of the memory for a prompt of a million tokens.
        return len(self.inner.encode_batch_fast([text], add_special_tokens=False)[0])

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode_batch_fast([text], add_special_tokens=False)[0].ids)

    def cut(self, text: str, tokens: int) -> str:
        encoded = self.inner.encode(text, add_special_tokens=False)
        if len(encoded) <= tokens:
            return text
        return _back_to_word_end(text, encoded.offsets[tokens - 1][1] if tokens > 0 else 0)

    def ids(self) -> list[int]:
        special = set(self.inner.get_added_tokens_decoder())
        return sorted(set(self.inner.get_vocab(with_added_tokens=True).values()) - special)

    def words(self) -> list[str]:
        ids = self.ids()
        texts = self.inner.decode_batch([[token] for token in ids], skip_special_tokens=False)
        candidates = sorted(
            {word for text in texts if (word := text.strip()).isalpha() and word.isascii() and len(word) > 1}
        )
        # Only words that are one token after another word and keep the word before them whole.
        counted = self.inner.encode_batch_fast([f"a {word}" for word in candidates], add_special_tokens=False)
        base = self.count("a")
        return [word for word, found in zip(candidates, counted, strict=True) if len(found) == base + 1]


def _back_to_word_end(text: str, end: int) -> str:
    """Returns text[:end] shortened to the end of a word, unless there is no space nearby (Chinese, code)."""
    if end >= len(text) or text[end].isspace():
        return text[:end].rstrip()
    start = max(0, end - 200)
    spaces = [match.start() for match in re.finditer(r"\s+", text[start:end])]
    return text[: start + spaces[-1]].rstrip() if spaces else text[:end]


def open_tokenizer(declared: Mapping[str, Any]) -> Tokenizer:
    """Returns the tokenizer for the `tokenizer` part of a checked spec (paths are absolute)."""
    added = int(declared.get("server_adds", 0))
    if declared["kind"] == "words":
        return Words(added)
    if declared["kind"] == "ids":
        return Ids(int(declared["vocabulary_size"]), int(declared.get("first_id", 0)), added)
    path = Path(declared["path"])
    return FileTokenizer(_load(path, path.stat().st_mtime_ns), added)


@lru_cache(maxsize=2)
def _load(path: Path, _modified_ns: int) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if path.suffix == ".model":
        return load_tiktoken(path)
    from tokenizers import Tokenizer as Inner

    try:
        inner = Inner.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception
        raise InputError(
            f"not a tokenizer file: {error}", file=path, remedy="give the model's tokenizer.json"
        ) from error
    inner.no_truncation()
    inner.no_padding()
    return inner
