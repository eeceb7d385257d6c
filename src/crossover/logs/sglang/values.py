"""Small readings shared by the rows."""

from __future__ import annotations

_DTYPES = {"float8_e4m3fn": "fp8_e4m3", "float8_e4m3fnuz": "fp8_e4m3", "float8_e5m2": "fp8_e5m2"}


def cache_dtype(name: str) -> str:
    """Returns a torch data type under its common name: `torch.float8_e4m3fn` is `fp8_e4m3`."""
    short = name.removeprefix("torch.").strip("'\"")
    return _DTYPES.get(short, short)
