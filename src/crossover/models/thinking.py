"""A tiny model that thinks: it says `<think>`, so many words, `</think>`, and then an answer, always the same.

Attention and feed-forward layers cost what they cost, but their outputs add nothing to the residual stream. So the last
token alone decides the next one, and the output matrix holds, for each word of the script, the direction of the token
before it. Greedy decoding follows the script exactly; sampling at a temperature up to 1 all but never leaves it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from tokenizers import AddedToken, Tokenizer

from crossover.errors import InputError
from crossover.models.tokenizer import EOS, ROLES

THINK, END_THINK = "<think>", "</think>"
_WORD = re.compile(r"\u0120[a-z]{2,}")  # byte-level BPE writes a leading space as U+0120
# Logits of the script's next token: this times the square root of the width, far above what any other token gets.
_GAIN = 12.0

Weights = npt.NDArray[np.float32]


def add_markers(tokenizer: Tokenizer) -> None:
    """Adds the two markers as tokens of their own.

    They are no special tokens, as in the models that have them: an engine that skips special tokens must not lose
    them before its parser has seen them.
    """
    tokenizer.add_tokens([AddedToken(marker, special=False, normalized=False) for marker in (THINK, END_THINK)])


def script(tokenizer: Tokenizer, thinking_tokens: int, answer_tokens: int) -> list[tuple[int, int]]:
    """Returns what the model says, as pairs of a token's id and the id of the token after it.

    The script begins behind the assistant's mark of the chat template and ends with the end-of-sequence token; a
    client that ignores that token gets the answer again.

    Args:
        thinking_tokens: words between the markers.
        answer_tokens: words behind the closing marker.

    Raises:
        InputError: the vocabulary has fewer words than the script needs.
    """
    words = _words(tokenizer, thinking_tokens + answer_tokens)
    thought, answer = words[:thinking_tokens], words[thinking_tokens:]
    names = [ROLES[-1], THINK, *thought, END_THINK, *answer, EOS]
    vocabulary = tokenizer.get_vocab()
    return list(pairwise(vocabulary[name] for name in [*names, answer[0]]))


def _words(tokenizer: Tokenizer, wanted: int) -> list[str]:
    known = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    words = [token for token, _ in known if _WORD.fullmatch(token)]
    if len(words) < wanted:
        raise InputError(
            f"{wanted} different words are wanted, the vocabulary has {len(words)}",
            place="generator.thinking_tokens",
            remedy=f"thinking_tokens and answer_tokens may be {len(words)} together, or raise `vocabulary`",
        )
    return words[:wanted]


def output_matrix(embedding: Weights, steps: Sequence[tuple[int, int]], rest: Weights) -> Weights:
    """Returns the output matrix that says the script.

    Args:
        embedding: the input embedding, a row a token.
        steps: pairs of a token and its successor; a token may be the successor of two.
        rest: rows of tokens that the script never says, as they would be otherwise.

    Raises:
        InputError: the model is too narrow to tell the tokens apart.
    """
    directions = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
    head = rest.copy()
    said = sorted({after for _, after in steps})
    head[said] = 0.0
    for before, after in steps:
        head[after] += np.float32(_GAIN) * directions[before]
    logits = directions[[before for before, _ in steps]] @ head.T
    second = np.sort(logits, axis=1)[:, -2]
    if (logits.argmax(axis=1) != [after for _, after in steps]).any() or (second > 0.8 * _GAIN).any():
        raise InputError(
            f"{embedding.shape[1]} numbers a token are too few to tell the tokens apart",
            place="generator.hidden",
            remedy="raise `hidden`, or ask for fewer thinking_tokens and answer_tokens",
        )
    return head
