"""A list of records that goes to a temporary file once it is long, so that memory stays constant."""

from __future__ import annotations

import marshal
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any, Generic, TypeVar, overload

T = TypeVar("T", bound=tuple[Any, ...])


class Spool(Sequence[T], Generic[T]):
    """An append-only sequence of named tuples: the last rows in memory, the earlier ones on disk.

    Args:
        kind: the named tuple; rows become one when they are read.
        chunk: rows per chunk on disk.

    Attributes:
        rows: the rows in memory. A plain tuple may be appended to it directly, which is the fastest way; `settle`
            has to be called from time to time then.
    """

    def __init__(self, kind: type[T], chunk: int = 20_000) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._make: Any = kind._make  # type: ignore[attr-defined]
        self._name, self._chunk = kind.__name__, chunk
        self._offsets: list[int] = []
        self._file: IO[bytes] | None = None
        self._cached: tuple[int, list[T]] = (-1, [])

    def append(self, row: T) -> None:
        self.rows.append(row)
        if len(self.rows) > self._chunk:
            self.settle()

    def settle(self) -> None:
        """Writes whole chunks to disk; the newest row stays in memory."""
        while len(self.rows) > self._chunk:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the report)
            self._offsets.append(self._file.seek(0, 2))
            marshal.dump([tuple(row) for row in self.rows[: self._chunk]], self._file)
            del self.rows[: self._chunk]

    def replace_last(self, **fields: Any) -> bool:
        """Completes the newest row by a statement that came on a line of its own; False if there is none."""
        if not self.rows:
            return False
        self.rows[-1] = self._make(self.rows[-1])._replace(**fields)
        return True

    def _load(self, number: int) -> list[T]:
        if self._cached[0] != number:
            assert self._file is not None
            self._file.seek(self._offsets[number])
            self._cached = (number, [self._make(row) for row in marshal.load(self._file)])
        return self._cached[1]

    def __len__(self) -> int:
        return len(self._offsets) * self._chunk + len(self.rows)

    def __iter__(self) -> Iterator[T]:
        for number in range(len(self._offsets)):
            yield from self._load(number)
        yield from map(self._make, self.rows)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        number, within = divmod(place, self._chunk)
        if number < len(self._offsets):
            return self._load(number)[within]
        row: T = self._make(self.rows[place - len(self._offsets) * self._chunk])
        return row

    def __repr__(self) -> str:
        return f"Spool({self._name}, {len(self)} rows)"
