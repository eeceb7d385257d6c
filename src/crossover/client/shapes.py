"""Recognises events by their shape, so that nearly all events of a stream need no JSON parser.

An engine writes its output events from one template: the same keys in the same order, and only texts and numbers
change. A shape is learned from an event that was parsed, as a pattern which only valid JSON of the same meaning
matches; an event that fits no shape is parsed. A parser takes about five times as long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crossover.client.fields import OUTPUT_FIELDS

NO_COUNT = -1
Ints = npt.NDArray[np.int64]
_MOST_SHAPES, _MOST_TRIES, _MOST_SWEEPS, _LOOK_AHEAD, _DEEPEST = 8, 32, 4, 4, 12

PREFIX = b"data: "
_OUTPUT_KEYS = frozenset({*OUTPUT_FIELDS, "arguments"})
_TOKEN_IDS = frozenset({("choices", 0, "token_ids"), ("choices", 0, "delta", "token_ids")})
_FIXED_NUMBERS = frozenset({("choices", 0, "index"), ("choices", 0, "finish_reason"), ("usage",)})

_HEX = rb"[0-9a-fA-F]"
_ESCAPE = (
    rb'\\(?:["\\/bfnrt]|u(?:[0-9a-cA-CefEF]' + _HEX + rb"{3}|[dD][0-7]" + _HEX + rb"{2}"
    rb"|[dD][89abAB]" + _HEX + rb"{2}\\u[dD][c-fC-F]" + _HEX + rb"{2}))"
)  # fmt: skip
_TEXT = rb'(?:[^"\\\x00-\x1f]++|' + _ESCAPE + rb")++"
_WHOLE = rb"(?:0|[1-9][0-9]{0,14}+)"
_NUMBER = rb"-?" + _WHOLE + rb"(?:\.[0-9]{1,17}+)?"
_IDS = rb"\[" + _WHOLE + rb"(?:, ?" + _WHOLE + rb")*+\]"
_TOKEN = re.compile(
    rb'(?:(?P<text>"' + _TEXT + rb'")|(?P<number>' + _NUMBER + rb")(?![0-9.eE])"
    rb'|(?P<fixed>""|true|false|null|[{}\[\],:]))[ \t]*'
)


@dataclass(frozen=True)
class Shape:
    """What all events that match it have in common.

    Args:
        whole: matches the event; its group is the first text of output and all that follows.
        rest: matches that group, one event a line. Its group `mark` is the number of completion tokens so far (or
            something, where none is stated), its group `ids` the list of token ids, where there is one. Lines of
            another shape give empty groups.
        kind: of the event, see `fields`.
        choice: its index.
        counts: whether events state the completion tokens so far.
    """

    whole: re.Pattern[bytes]
    rest: re.Pattern[bytes]
    kind: int
    choice: int
    counts: bool

    def beginning_of(self, block: bytes) -> bytes | None:
        """Returns an event up to its first text of output; None if the event has another shape."""
        match = self.whole.fullmatch(block)
        return block[: match.start(1)] if match is not None else None

    def apply(self, beginning: bytes, blocks: list[bytes]) -> tuple[npt.NDArray[np.bool_], Ints, Ints]:
        """Returns which blocks begin so and go on in this shape, and of those the counts and the numbers of ids."""
        size = len(beginning)
        lines = b"\n".join([block[size:] if block.startswith(beginning) else b"" for block in blocks])
        found = self.rest.findall(lines)
        marks, ids = found, []
        if "ids" in self.rest.groupindex:
            at = self.rest.groupindex["ids"] - 1
            marks, ids = [groups[1 - at] for groups in found], [groups[at] for groups in found if groups[at]]
        matched = np.array([mark != b"" for mark in marks])
        none = np.full(int(matched.sum()), NO_COUNT)
        counts = np.array([mark for mark in marks if mark]).astype(np.int64) if self.counts else none
        return matched, counts, np.array([text.count(b",") + 1 for text in ids]) if ids else none


@dataclass(frozen=True)
class Sweep:
    """What was found without parsing: one row an event in each array, in the order of `events` (positions in the list
    of blocks); -1 where a shape states no completion tokens or carries no token ids.
    """

    events: Ints
    kinds: Ints
    choices: Ints
    cumulative: Ints
    ids: Ints


class Shapes:
    """The shapes of a recording, learned as they are met."""

    def __init__(self) -> None:
        self._shapes: list[Shape] = []
        self._tries = _MOST_TRIES

    def learn(self, data: bytes, row: tuple[int, int, int, int]) -> None:
        """Takes an event with one choice, output and no finish reason, that was parsed without a fault.

        Args:
            data: its JSON.
            row: its kind, choice, completion tokens so far and number of token ids.
        """
        block = PREFIX + data
        if not self._tries or any(shape.beginning_of(block) for shape in self._shapes):
            return
        self._tries -= 1
        shape = _Reader(data).shape(row[0], row[1])
        if shape is None or len(self._shapes) == _MOST_SHAPES:
            return
        _, counts, ids = shape.apply(shape.beginning_of(block) or b"", [block])
        if (counts.tolist(), ids.tolist()) == ([row[2]], [row[3]]):
            self._shapes.append(shape)

    def sweep(self, blocks: Sequence[bytes]) -> Sweep | None:
        """Returns what can be said of a stream's events without parsing them; None if that is nothing.

        The last event of those that fit is left out, so that the parser meets the last usage.

        Args:
            blocks: the events in order, valid UTF-8, without line breaks.
        """
        table = np.full((4, len(blocks)), NO_COUNT, np.int64)
        left, found = np.arange(len(blocks)), np.zeros(len(blocks), np.bool_)
        for _ in range(_MOST_SWEEPS):
            shape, beginning = self._first_fit([blocks[number] for number in left[:_LOOK_AHEAD].tolist()])
            if shape is None:
                break
            matched, counts, ids = shape.apply(beginning, [blocks[number] for number in left.tolist()])
            rows = left[matched]
            found[rows] = True
            table[0, rows], table[1, rows], table[2, rows], table[3, rows] = shape.kind, shape.choice, counts, ids
            left = left[~matched & (left > rows[0])]
        events = np.flatnonzero(found)[:-1]
        return Sweep(events, *table[:, events]) if len(events) else None

    def _first_fit(self, blocks: Sequence[bytes]) -> tuple[Shape | None, bytes]:
        """Returns a shape that one of the blocks has, and what that block has before its first text."""
        for block in blocks:
            for shape in self._shapes:
                beginning = shape.beginning_of(block)
                if beginning is not None:
                    return shape, beginning
        return None, b""


class _UnusualError(Exception):
    """The event has a part that a shape cannot hold."""


class _Reader:
    """Reads an event's JSON once more, token by token, and writes the pattern of its shape.

    Texts and numbers may change, but a text stays one that is not empty, and what decides about an event's meaning
    stays as it is: keys, null, empty texts, true and false, and the choice's index.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._parts: list[bytes] = [PREFIX]
        self._output_at = 0
        self._groups: list[str] = []

    def shape(self, kind: int, choice: int) -> Shape | None:
        """Returns the shape; None for an event that is better parsed."""
        try:
            self._value(())
        except _UnusualError:
            return None
        if self._position != len(self._data) or not self._output_at or not self._data.endswith(b"}"):
            return None
        parts, counts = self._parts, "mark" in self._groups
        before, after = b"".join(parts[: self._output_at]), b"".join(parts[self._output_at :])
        if not counts:
            # The brace that ends the event marks a line that matches.
            after = after.removesuffix(rb"\}") + rb"(?P<mark>\})"
        whole = re.sub(rb"\(\?P<\w+>", b"(?:", after)
        line = re.compile(b"^(?:" + after + b"|.*)$", re.MULTILINE)
        return Shape(re.compile(before + b"(" + whole + b")"), line, kind, choice, counts)

    def _next(self) -> tuple[str, bytes, bytes]:
        """Returns the next token's kind, the token, and the blanks after it."""
        match = _TOKEN.match(self._data, self._position)
        if match is None or match.lastgroup is None:
            raise _UnusualError
        self._position = match.end()
        return match.lastgroup, match[match.lastgroup], self._data[match.end(match.lastgroup) : match.end()]

    def _value(self, path: tuple[str | int, ...]) -> None:
        kind, token, blanks = self._next()
        if len(path) > _DEEPEST:
            raise _UnusualError
        if kind == "text":
            self._text(path)
        elif kind == "number":
            self._parts.append(self._number(path, token))
        elif token == b"[" and path in _TOKEN_IDS:
            self._token_ids()
            return
        else:
            self._parts.append(re.escape(token))
        self._parts.append(blanks)
        if token == b"{":
            self._members(path)
        elif token == b"[":
            self._items(path)
        elif token in (b"}", b"]", b",", b":"):
            raise _UnusualError

    def _text(self, path: tuple[str | int, ...]) -> None:
        if path[:4] == ("choices", 0, "delta", "content") and len(path) > 4:
            # A content part's type decides whether it is reasoning.
            raise _UnusualError
        self._parts.append(b'"')
        if not self._output_at and path[:2] == ("choices", 0) and path[-1] in _OUTPUT_KEYS:
            self._output_at = len(self._parts)
        self._parts += [_TEXT, b'"']

    def _number(self, path: tuple[str | int, ...], token: bytes) -> bytes:
        if path in _FIXED_NUMBERS:
            return re.escape(token)
        if path == ("usage", "completion_tokens"):
            if not token.isdigit():
                raise _UnusualError
            return self._group("mark", _WHOLE)
        return _NUMBER

    def _group(self, name: str, pattern: bytes) -> bytes:
        """Returns a pattern as a group, which only what follows the first text can have, and once."""
        if not self._output_at or name in self._groups:
            raise _UnusualError
        self._groups.append(name)
        return b"(?P<" + name.encode() + b">" + pattern + b")"

    def _token_ids(self) -> None:
        """Takes a list of whole numbers, whose opening bracket was read."""
        match = re.compile(_IDS + rb"[ \t]*").match(self._data, self._position - 1)
        if match is None:
            raise _UnusualError
        self._position = match.end()
        self._parts += [self._group("ids", _IDS), match[0][match[0].index(b"]") + 1 :]]

    def _members(self, path: tuple[str | int, ...]) -> None:
        keys: set[bytes] = set()
        end = b"," if self._take(b"}") is False else b"}"
        while end == b",":
            kind, key, blanks = self._next()
            if kind != "text" or key in keys or b"\\" in key:
                raise _UnusualError
            keys.add(key)
            self._parts += [re.escape(key), blanks]
            self._expect(b":")
            self._value((*path, key[1:-1].decode()))
            end = self._expect(b",", b"}")

    def _items(self, path: tuple[str | int, ...]) -> None:
        number = 0
        end = b"," if self._take(b"]") is False else b"]"
        while end == b",":
            self._value((*path, number))
            number += 1
            end = self._expect(b",", b"]")

    def _take(self, token: bytes) -> bool:
        """Takes the token if it is the next one."""
        if not self._data.startswith(token, self._position):
            return False
        self._expect(token)
        return True

    def _expect(self, *tokens: bytes) -> bytes:
        """Takes one of these tokens."""
        _, token, blanks = self._next()
        if token not in tokens:
            raise _UnusualError
        self._parts += [re.escape(token), blanks]
        return token
