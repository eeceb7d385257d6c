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
        kind: the named tuple, rebuilt from plain rows when they are read back.
        chunk: rows per chunk; at most two chunks are in memory at any time.
    """

    def __init__(self, kind: type[T], chunk: int = 20_000) -> None:
        self._kind, self._chunk = kind, chunk
        self._recent: list[T] = []
        self._offsets: list[int] = []
        self._file: IO[bytes] | None = None
        self._cached: tuple[int, list[T]] = (-1, [])

    def append(self, row: T) -> None:
        if len(self._recent) >= self._chunk:
            self._spill()
        self._recent.append(row)

    def replace_last(self, **fields: Any) -> bool:
        """Completes the newest row by a statement that came on a line of its own; False if there is none."""
        if not self._recent:
            return False
        self._recent[-1] = self._recent[-1]._replace(**fields)  # type: ignore[attr-defined]
        return True

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the report)
        self._offsets.append(self._file.seek(0, 2))
        marshal.dump([tuple(row) for row in self._recent], self._file)
        self._recent = []

    def _load(self, number: int) -> list[T]:
        if self._cached[0] != number:
            assert self._file is not None
            self._file.seek(self._offsets[number])
            make = self._kind._make  # type: ignore[attr-defined]
            self._cached = (number, [make(row) for row in marshal.load(self._file)])
        return self._cached[1]

    def __len__(self) -> int:
        return len(self._offsets) * self._chunk + len(self._recent)

    def __iter__(self) -> Iterator[T]:
        for number in range(len(self._offsets)):
            yield from self._load(number)
        yield from self._recent

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        number, within = divmod(place, self._chunk)
        return (self._load(number) if number < len(self._offsets) else self._recent)[within]

    def __repr__(self) -> str:
        return f"Spool({self._kind.__name__}, {len(self)} rows)"
