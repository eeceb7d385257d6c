"""Brings text to an exact number of tokens."""

from __future__ import annotations

from collections.abc import Iterable

from crossover.errors import CrossoverError
from crossover.workloads.tokenizers import Tokenizer

_ATTEMPTS = 12
_SAMPLE_CHARACTERS = 20_000
_FILLERS = (" and", " the", " of", " a", " it", " x", " .", "x", "!")


def assemble(pieces: Iterable[str], tokens: int, tokenizer: Tokenizer) -> str:
    """Joins pieces until they hold `tokens` tokens, and cuts to exactly that many.

    Args:
        pieces: text in order, read only as far as needed; must hold enough.
        tokens: the wanted number of tokens of the text alone.
        tokenizer: what counts.

    Raises:
        CrossoverError: the pieces end too early, or this tokenizer cannot reach the number.
    """
    text, counted = gather(pieces, tokens, tokenizer)
    return exactly(text, tokens, tokenizer, counted)


def gather(pieces: Iterable[str], tokens: int, tokenizer: Tokenizer) -> tuple[str, int]:
    """Returns a run of pieces with at least `tokens` tokens, little more if the pieces are short, and its
    count.

    Only the first characters are counted piece by piece; then their density does, and the whole is counted at
    the end: a million tokens are tokenized once or twice, not as they grow.
    """
    taken: list[str] = []
    estimate, density = 0.0, 0.0
    characters = 0
    for piece in pieces:
        taken.append(piece)
        characters += len(piece)
        if density:
            estimate += len(piece) * density
        else:
            sample = piece[:_SAMPLE_CHARACTERS]
            estimate += tokenizer.count(sample) * len(piece) / max(1, len(sample))
            density = estimate / characters if characters >= _SAMPLE_CHARACTERS else 0.0
        if estimate >= tokens:
            text = "".join(taken)
            counted = tokenizer.count(text)
            if counted >= tokens:
                return text, counted
            estimate, density = float(counted), counted / len(text)
    raise CrossoverError(f"the dataset ends after about {int(estimate)} of {tokens} tokens")


def exactly(text: str, tokens: int, tokenizer: Tokenizer, counted: int | None = None) -> str:
    """Returns the text cut, and where a cut inside a word would be needed filled up, to exactly `tokens`
    tokens.

    The text must hold at least `tokens` tokens. Each round counts the whole text again, since tokens near a
    cut merge in ways that only the tokenizer knows; two or three rounds do.

    Raises:
        CrossoverError: the count does not settle on the wanted number.
    """
    filler: str | None = None
    for _ in range(_ATTEMPTS):
        counted = tokenizer.count(text) if counted is None else counted
        if counted == tokens and not text[-1].isspace():
            return text
        if counted > tokens:
            text = _drop(text, counted - tokens, tokenizer)
        elif text[-1].isspace():
            text = text.rstrip()  # chat templates strip the end, and the tokens of the spaces with it
        else:
            filler = filler or _find_filler(text[-400:], tokenizer)
            text += filler * (tokens - counted)
        counted = None
    raise CrossoverError(
        f"cannot bring a text to exactly {tokens} tokens with this tokenizer; "
        'use form "token_ids" where the endpoint takes ids'
    )


def _drop(text: str, excess: int, tokenizer: Tokenizer) -> str:
    """Returns the text without its last `excess` tokens or a few more; only the tail is tokenized."""
    start = max(0, len(text) - 16 * excess - 400)
    while start > 0 and not text[start].isspace():
        start -= 1
    tail = text[start:]
    return (text[:start] + tokenizer.cut(tail, max(0, tokenizer.count(tail) - excess))).rstrip()


def _find_filler(tail: str, tokenizer: Tokenizer) -> str:
    base = tokenizer.count(tail)
    for filler in _FILLERS:
        if tokenizer.count(tail + filler) == base + 1 and tokenizer.count(tail + 3 * filler) == base + 3:
            return filler
    return _FILLERS[0]
