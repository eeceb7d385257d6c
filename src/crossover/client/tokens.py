"""How many tokens each output event carries, and from what that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crossover.client.shapes import NO_COUNT, Ints
from crossover.client.stream import Stream
from crossover.errors import InputError

Counter = Callable[[str], Sequence[int]]
"""Takes a text, returns the position in it (in characters) at which each of its tokens ends."""


def load_counter(path: Path) -> Counter:
    """Returns a counter that uses a `tokenizer.json`."""
    from tokenizers import Tokenizer

    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare exceptions
        raise InputError(f"no tokenizer: {error}", file=file, remedy="give a tokenizer.json") from error
    return lambda text: [end for _, end in tokenizer.encode(text, add_special_tokens=False).offsets]


def tokens_of_events(stream: Stream, completion_tokens: int | None, counter: Counter | None) -> tuple[Ints, str | None]:
    """Returns (tokens of each event, source); tokens are 0 for events without output and -1 where they are
    not known.

    Sources, best first: `continuous_usage` (each event states the tokens so far), `token_ids` (each event
    carries its ids), `events` (usage counts as many tokens as there are output events, so each carries one),
    `tokenizer` (the output text is tokenized again: an estimate, since another split of the same text has
    other tokens). Tokens of events that show no output (held-back characters) go to the next event that does;
    those after the last output event (the stop token) belong to no event.
    """
    columns = stream.columns
    output = columns.output
    tokens = np.where(output, NO_COUNT, 0).astype(np.int64)
    count = int(output.sum())
    if not count:
        return tokens, None
    choices = columns.choices
    if _is_running_total(columns.cumulative[output], choices[output]):
        return _from_running_total(tokens, output, choices, columns.cumulative), "continuous_usage"
    if (columns.ids[output] != NO_COUNT).all():
        return _from_running_total(tokens, output, choices, _totals(columns.ids, choices)), "token_ids"
    if completion_tokens == count:
        tokens[output] = 1
        return tokens, "events"
    if counter is not None:
        return _from_running_total(tokens, output, choices, _tokenized(stream, counter)), "tokenizer"
    return tokens, None


def _is_running_total(counts: Ints, choices: Ints) -> bool:
    """Whether usage in each event counts the tokens so far: some servers put zeros, or the same number, into each."""
    if (counts < 1).any():
        return False
    for choice in numbers_of(choices):
        steps = np.diff(counts[choices == choice])
        if (steps < 0).any() or (len(steps) and not steps.any()):
            return False
    return True


def _from_running_total(tokens: Ints, output: npt.NDArray[np.bool_], choices: Ints, total: Ints) -> Ints:
    """Shares a running total (of each choice) out over that choice's output events."""
    for choice in numbers_of(choices[output]):
        rows = output & (choices == choice)
        tokens[rows] = np.diff(total[rows], prepend=0)
    return tokens


def numbers_of(choices: Ints) -> list[int]:
    """Returns the choices that occur."""
    # Nearly always there is one.
    return [0] if len(choices) and not choices.any() else np.unique(choices).tolist()


def _totals(ids: Ints, choices: Ints) -> Ints:
    total = np.zeros_like(ids)
    for choice in numbers_of(choices):
        rows = choices == choice
        total[rows] = np.cumsum(np.maximum(ids[rows], 0))
    return total


def _tokenized(stream: Stream, counter: Counter) -> Ints:
    choices = stream.columns.choices
    total = np.zeros(len(choices), np.int64)
    for choice in np.unique(choices):
        rows = np.flatnonzero(choices == choice)
        parts = [stream.texts[row] for row in rows]
        ends = np.cumsum([len(part) for part in parts])
        total[rows] = np.searchsorted(
            np.asarray(counter("".join(parts).encode(errors="replace").decode()), np.int64), ends, side="right"
        )
    return total
