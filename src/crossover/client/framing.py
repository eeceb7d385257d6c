"""HTTP/1.1 response framing: where a response ends (under load) and what its body is (afterwards)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Mode = Literal["chunked", "length", "close"]


@dataclass(frozen=True)
class Head:
    """A response's status line and header fields (names in lower case); `size` counts all bytes before the
    body.
    """

    status: int
    size: int
    fields: dict[str, str] = field(default_factory=dict)
    version: str = "HTTP/1.1"

    @property
    def mode(self) -> Mode:
        """How the body's end is told."""
        if "chunked" in self.fields.get("transfer-encoding", "").lower():
            return "chunked"
        if self.status in (204, 304) or self.length is not None:
            return "length"
        return "close"

    @property
    def length(self) -> int | None:
        """The body's length in bytes where the server names it."""
        text = self.fields.get("content-length", "")
        return int(text) if text.isdigit() else None

    @property
    def encoding(self) -> str | None:
        """The body's compression; None where it is as it is."""
        name = self.fields.get("content-encoding", "").lower()
        return None if name in ("", "identity") else name

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection may carry another request."""
        connection = self.fields.get("connection", "").lower()
        return self.version != "HTTP/1.0" and "close" not in connection and self.mode != "close"


def parse_head(raw: bytes) -> Head | None:
    """Returns the head at the start of `raw`, or None while it is not all there. Interim (1xx) heads are
    skipped.

    Raises:
        ValueError: this is not HTTP/1.x.
    """
    skipped = 0
    while True:
        end = raw.find(b"\r\n\r\n", skipped)
        if not raw[skipped : skipped + 5] == b"HTTP/"[: len(raw) - skipped]:
            raise ValueError("the response does not start with HTTP/")
        if end < 0:
            return None
        lines = raw[skipped:end].decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        status = int(rest[:3])
        if status >= 200:
            pairs = (line.partition(":") for line in lines[1:])
            return Head(status, end + 4, {name.strip().lower(): value.strip() for name, _, value in pairs}, version)
        skipped = end + 4


class Chunks:
    """Follows chunked framing through arbitrary splits, cheaply enough for use under load."""

    def __init__(self) -> None:
        self._rest = b""
        self._skip = 0
        self._in_trailer = False
        self.ended = False

    def feed(self, data: bytes) -> bool:
        """Takes the next bytes of the body; returns whether the last chunk has ended.

        Raises:
            ValueError: a chunk's size is no hexadecimal number.
        """
        data = self._rest + data
        self._rest = b""
        position = 0
        while not self.ended:
            if self._skip:
                step = min(self._skip, len(data) - position)
                position += step
                self._skip -= step
                if self._skip:
                    return False
            end = data.find(b"\r\n", position)
            if end < 0:
                self._rest = data[position:]
                return False
            if self._in_trailer:
                self.ended = end == position
            else:
                size = int(data[position:end].partition(b";")[0], 16)
                if size < 0:
                    raise ValueError("a chunk's size is negative")
                self._in_trailer = size == 0
                self._skip = size + 2 if size else 0
            position = end + 2
        return True


@dataclass(frozen=True)
class Body:
    """A response's body without framing.

    `starts` and `raw_starts` have one entry a chunk: where it begins in `data` and in the raw bytes.
    """

    data: bytes
    starts: npt.NDArray[np.int64]
    raw_starts: npt.NDArray[np.int64]
    complete: bool

    def raw_positions(self, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Maps positions after a byte of the body to the position of that byte in the raw bytes."""
        last = ends - 1
        chunk = np.searchsorted(self.starts, last, side="right") - 1
        return self.raw_starts[chunk] + (last - self.starts[chunk])


def unframe(raw: bytes, head: Head) -> Body:
    """Returns the body that follows `head` in `raw`; it is incomplete where the framing says that more
    should come.
    """
    if head.mode == "chunked":
        return _unframe_chunked(raw, head.size)
    data = raw[head.size :]
    complete = head.mode == "close" or len(data) >= (head.length or 0)
    if head.mode == "length":
        data = data[: head.length or 0]
    return Body(data, np.zeros(1, np.int64), np.full(1, head.size, np.int64), complete)


_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")


def _unframe_chunked(raw: bytes, position: int) -> Body:
    """Splits at every line end, and walks from chunk to chunk where that does not add up.

    The split is right for event streams, whose JSON holds no carriage return, and many times faster.
    """
    lines = raw[position:].split(b"\r\n")
    digits, parts = lines[0:-3:2], lines[1:-3:2]
    known = {text: int(text, 16) for text in set(digits) if _CHUNK_SIZE.fullmatch(text)}
    sizes = [known.get(text) for text in digits]
    if not parts or lines[-3:] != [b"0", b"", b""] or sizes != list(map(len, parts)):
        return _walk_chunks(raw, position)
    lengths = np.array(sizes, np.int64)
    heads = np.array(list(map(len, digits)), np.int64) + 4
    starts = np.cumsum(lengths) - lengths
    # The line end after a chunk counts as part of the next one's head, which the first one lacks.
    return Body(b"".join(parts), starts, position - 2 + starts + np.cumsum(heads), True)


def _walk_chunks(raw: bytes, position: int) -> Body:
    parts: list[bytes] = []
    starts: list[int] = []
    raw_starts: list[int] = []
    length, complete, total = 0, False, len(raw)
    while position < total:
        end = raw.find(b"\r\n", position)
        if end < 0:
            break
        try:
            size = int(raw[position:end].partition(b";")[0], 16)
        except ValueError:
            break
        if size < 0:
            break
        if size == 0:
            complete = True
            break
        position = end + 2
        part = raw[position : position + size]
        parts.append(part)
        starts.append(length)
        raw_starts.append(position)
        length += len(part)
        position += size + 2
    if not starts:
        starts, raw_starts = [0], [position]
    return Body(b"".join(parts), np.array(starts, np.int64), np.array(raw_starts, np.int64), complete)
