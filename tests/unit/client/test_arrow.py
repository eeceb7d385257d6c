"""Columns by their buffers are the columns that pyarrow's own conversions make."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from crossover.client import arrow


@pytest.mark.parametrize("width", [np.int8, np.int32, np.int64])
def test_whole_numbers(width: type[np.integer]) -> None:
    values = [3, None, -5, *range(20), None]
    column = arrow.from_optional_ints(values, width)
    assert column.to_pylist() == values
    assert column.type == pa.from_numpy_dtype(width)
    assert column.null_count == 2
    assert arrow.to_ints(column, -1).tolist() == [-1 if value is None else value for value in values]


def test_a_part_of_a_column_is_read_from_its_own_place() -> None:
    column = pa.array([1, None, 3, None, 5, 6, 7, 8, None, 10])
    assert arrow.to_ints(column.slice(3, 6)).tolist() == [-1, 5, 6, 7, 8, -1]
    assert arrow.to_ints(pa.chunked_array([column.slice(8), column.slice(0, 2)])).tolist() == [-1, 10, 1, -1]
    assert arrow.to_ints(pa.chunked_array([], pa.int64())).tolist() == []
    data, places = arrow.to_bytes(pa.array([b"ab", b"", b"cde", b"f"]).slice(1, 2))
    assert [bytes(data[a:b]) for a, b in pairwise(places)] == [b"", b"cde"]


def test_texts_and_bytes() -> None:
    texts = ["", None, "é", "😀 b", None]
    assert arrow.from_texts(texts).to_pylist() == texts
    assert arrow.from_texts([]).to_pylist() == []
    column = arrow.from_bytes(b"abcde", np.array([2, 0, 3], np.int32), pa.binary())
    column.validate(full=True)
    assert column.to_pylist() == [b"ab", b"", b"cde"]
