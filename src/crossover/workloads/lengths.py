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
    """Returns the text cut, or filled up where only a cut inside a word would do, to `tokens` tokens.

    The length is changed at the tail alone, then the whole is counted again: what tokens do there depends on
    all before them only in theory; one round nearly always does.

    Args:
        text: with about as many tokens as wanted.
        tokens: the wanted number.
        tokenizer: what counts.
        counted: the tokens of the text, if known already.

    Raises:
        CrossoverError: the count does not settle on the wanted number.
    """
    for _ in range(_ATTEMPTS):
        counted = tokenizer.count(text) if counted is None else counted
        # Chat templates strip the end of a message, and with it the tokens of its spaces.
        if counted == tokens and not text[-1:].isspace():
            return text
        text = _change_tail(text, tokens - counted, tokenizer)
        counted = None
    raise CrossoverError(
        f"cannot bring a text to exactly {tokens} tokens with this tokenizer; "
        'use form "token_ids" where the endpoint takes ids'
    )


def _change_tail(text: str, change: int, tokenizer: Tokenizer) -> str:
    """Returns the text with `change` tokens more or fewer at its end, as far as its tail alone can tell."""
    start = max(0, len(text) - 16 * abs(change) - 400)
    while start > 0 and not text[start].isspace():
        start -= 1
    tail = text[start:]
    wanted = max(0, tokenizer.count(tail) + change)
    tail = tail.rstrip()
    for _ in range(_ATTEMPTS):
        counted = tokenizer.count(tail)
        if counted == wanted:
            break
        if counted > wanted:
            shorter = tokenizer.cut(tail, wanted)
            # A cut can stop at the same place for ever: the end of a word is not always the end of a token.
            tail = shorter if shorter != tail else tail[:-1].rstrip()
        else:
            tail += _find_filler(tail, tokenizer) * (wanted - counted)
    return text[:start] + tail


def _find_filler(tail: str, tokenizer: Tokenizer) -> str:
    base = tokenizer.count(tail)
    for filler in _FILLERS:
        if tokenizer.count(tail + filler) == base + 1 and tokenizer.count(tail + 3 * filler) == base + 3:
            return filler
    return _FILLERS[0]
