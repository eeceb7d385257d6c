"""What the simulated tokenizer and the draft model see in a prompt: its length in words, and whether it reads "
"like language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from crossover.simulator.calibration import load_calibration

_OTHER_SPACES = "\n\t\r\v\f\x1c\x1d\x1e\x1f"
_PIECE = 4096  # characters, or token ids, that the prefix cache compares at once


def count_words(text: str) -> int:
    """Returns the number of whitespace-separated words: one word is one token of the simulated engine."""
    # Counting spaces is ten times quicker than splitting, and a prompt of 200,000 words must not hold up the schedule.
    plain = text.isascii() and "  " not in text and not any(character in text for character in _OTHER_SPACES)
    if plain and text and text[0] != " " and text[-1] != " ":
        data = text.encode()
        return len(data) - len(data.translate(None, b" ")) + 1  # twice as quick as counting the spaces
    return len(text.split())


@cache
def _common_words() -> frozenset[str]:
    return frozenset(load_calibration()["text"]["common_words"].split())


def is_natural(text: str) -> bool:
    """Tells whether the words of `text` are those of English prose rather than drawn at random."""
    rules: Mapping[str, float] = load_calibration()["text"]
    middle = max(0, len(text) // 2 - 6000)
    sample = (text[:6000] + " " + text[middle : middle + 6000]).lower().split()[: int(rules["sample_words"])]
    if not sample:
        return False
    common = sum(word.strip(".,;:!?\"'()") in _common_words() for word in sample)
    return common / len(sample) >= rules["natural_share"]


def are_natural_ids(token_ids: Sequence[int]) -> bool:
    """Tells whether token ids repeat as those of a language do: a few of them make up a large part."""
    rules: Mapping[str, float] = load_calibration()["text"]
    sample = token_ids[: int(rules["sample_words"])]
    if len(sample) < 100:
        return False
    top = sum(count for _, count in Counter(sample).most_common(10))
    return top / len(sample) >= rules["natural_top_ids_share"]


def fingerprint(prompt: str | Sequence[int]) -> tuple[int, ...]:
    """Returns chained hashes of the prompt's pieces, so that equal prefixes have equal leading hashes."""
    chain, hashes = 0, []
    for start in range(0, len(prompt), _PIECE):
        piece = prompt[start : start + _PIECE]
        chain = hash((chain, piece if isinstance(piece, str) else tuple(piece)))
        hashes.append(chain)
    return tuple(hashes)


def prefix_tokens(prompt: str | Sequence[int], pieces: int) -> int:
    """Returns how many tokens the first `pieces` pieces of the prompt hold."""
    head = prompt[: pieces * _PIECE]
    return count_words(head) if isinstance(head, str) else len(head)
