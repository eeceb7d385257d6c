"""Arrow columns from and to arrays, by their buffers.

Pyarrow's own conversions import pandas as soon as they meet an array, and its compute functions take their time too:
together that is longer than a short measurement's whole interpretation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


def from_ints(values: npt.NDArray[np.integer], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Returns whole numbers as a column of the same width."""
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [_validity(missing), pa.py_buffer(values)])


def from_optional_ints(values: Sequence[int | None], width: npt.DTypeLike = np.int64) -> pa.Array:
    """Returns whole numbers, None where there is none, as a column."""
    known = np.array([0 if value is None else value for value in values], width)
    return from_ints(known, np.array([value is None for value in values], np.bool_))


def from_texts(values: Sequence[str | None]) -> pa.Array:
    """Returns texts, None where there is none, as a column."""
    encoded = [b"" if value is None else value.encode(errors="replace") for value in values]
    missing = np.array([value is None for value in values], np.bool_)
    return from_bytes(b"".join(encoded), np.array([len(text) for text in encoded], np.int32), pa.string(), missing)


def from_bytes(
    joined: bytes, sizes: npt.NDArray[np.int32], kind: pa.DataType, missing: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Returns pieces of bytes that lie one after the other, less than 2 GiB of them, as a column."""
    offsets = np.array([0, *accumulate(sizes.tolist())], np.int32)
    return pa.Array.from_buffers(kind, len(sizes), [_validity(missing), pa.py_buffer(offsets), pa.py_buffer(joined)])


def to_ints(column: pa.Array | pa.ChunkedArray, missing: int = -1) -> Ints:
    """Returns a column of whole numbers as an array, with `missing` where there is none."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_ints_of(chunk, missing) for chunk in chunks]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def to_bytes(column: pa.BinaryArray) -> tuple[memoryview, Ints]:
    """Returns the bytes of a column and where each piece begins, with the end of the last one."""
    _, offsets, joined = column.buffers()
    places = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    return memoryview(joined or b""), places


def _validity(missing: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    if missing is None or not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little"))


def _ints_of(chunk: pa.Array, missing: int) -> Ints:
    validity, data = chunk.buffers()
    first, count = chunk.offset, len(chunk)
    if not count:
        return np.zeros(0, np.int64)
    kind = np.dtype(f"i{chunk.type.bit_width // 8}")
    values = np.frombuffer(data, kind, count, first * kind.itemsize).astype(np.int64)
    if validity is not None and chunk.null_count:
        known = np.unpackbits(np.frombuffer(validity, np.uint8), count=first + count, bitorder="little")[first:]
        values[known == 0] = missing
    return values
