"""HTTP framing: whatever the splits, the end is found once and the body is what was sent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossover.client.framing import Chunks, parse_head, unframe

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(parts: list[bytes], trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n" + trailer + b"\r\n"


# Parts that look like framing themselves.
PARTS = st.lists(
    st.sampled_from([b"0\r\n\r\n", b"\r\n", b"a", b"data: x\n\n", b"5\r\nhello\r\n", b"z" * 300]), min_size=1
)


@given(PARTS, st.lists(st.integers(1, 400)), st.sampled_from([b"", b"Checksum: 1\r\n"]))
def test_the_end_of_a_chunked_body_is_found_under_any_split(
    parts: list[bytes], sizes: list[int], trailer: bytes
) -> None:
    raw = chunked(parts, trailer)
    chunks, position, ends = Chunks(), 0, []
    for size in [*sizes, len(raw)]:
        piece = raw[position : position + size]
        position += size
        if piece and not chunks.ended:
            ends.append(chunks.feed(piece))
    # Only the piece that holds the last byte ends the body.
    assert ends.count(True) == 1
    assert ends[-1]
    consumed = sum(sizes[: len(ends) - 1])
    assert consumed < len(raw)


@given(PARTS)
def test_a_body_without_its_framing_and_back(parts: list[bytes]) -> None:
    raw = HEAD + chunked(parts)
    head = parse_head(raw)
    assert head is not None
    body = unframe(raw, head)
    assert body.complete
    assert body.data == b"".join(parts)
    # Each position in the body points to the same byte in the raw bytes.
    ends = np.arange(1, len(body.data) + 1)
    positions = body.raw_positions(ends)
    assert bytes(raw[p] for p in positions) == body.data


@pytest.mark.parametrize("missing", [1, 2, 5, 9])
def test_a_cut_body_is_incomplete(missing: int) -> None:
    raw = (HEAD + chunked([b"data: x\n\n"]))[:-missing]
    head = parse_head(raw)
    assert head is not None
    # The last chunk's own line break may be lost: the zero that ends the body was there.
    assert unframe(raw, head).complete is (missing <= 2)


def test_interim_heads_are_skipped() -> None:
    head = parse_head(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nX: y\r\n\r\n")
    assert head is not None
    assert (head.status, head.fields, head.mode) == (204, {"x": "y"}, "length")
    assert parse_head(b"HTTP/1.1 100 Continue\r\n\r\n") is None
    assert parse_head(b"HT") is None


def test_a_negative_chunk_size_is_no_http() -> None:
    with pytest.raises(ValueError, match="negative"):
        Chunks().feed(b"-5\r\nhello\r\n")
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n-5\r\nhello\r\n"
    head = parse_head(raw)
    assert head is not None
    body = unframe(raw, head)
    assert (body.data, body.complete) == (b"ab", False)


def test_what_is_no_http_is_refused() -> None:
    with pytest.raises(ValueError, match="HTTP/"):
        parse_head(b"\x16\x03\x01 tls")


@pytest.mark.parametrize(
    ("fields", "keeps"),
    [
        (b"Content-Length: 3\r\n", True),
        (b"Content-Length: 3\r\nConnection: close\r\n", False),
        (b"Transfer-Encoding: chunked\r\n", True),
        (b"", False),
    ],
)
def test_which_connections_may_carry_another_request(fields: bytes, keeps: bool) -> None:
    head = parse_head(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n")
    assert head is not None
    assert head.keeps_alive is keeps
