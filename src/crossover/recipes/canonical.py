"""Canonical JSON and digests: the same intent has the same key on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

KEY_DIGITS = 24
SOURCE_ROOT = Path(__file__).resolve().parents[2]


def normalise(value: Any) -> Any:
    """Returns `value` with tuples as lists and integral floats as integers, so that 8 and 8.0 are one recipe.

    Raises:
        TypeError: for anything that JSON does not have.
    """
    if isinstance(value, Mapping):
        return {str(name): normalise(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [normalise(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"{type(value).__name__} cannot stand in a recipe")


def canonical_json(value: Any) -> str:
    """Returns the one text of a recipe: sorted names, no spaces, no NaN."""
    text = _dumps(value)
    # Walking every value costs more than writing it: only where an integral float may stand in the text.
    return _dumps(normalise(value)) if ".0" in text or "e+" in text else text


def _dumps(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def key_of(recipe: Mapping[str, Any]) -> str:
    """Returns the first 24 hexadecimal digits of the SHA-256 of the canonical recipe."""
    return hashlib.sha256(canonical_json(recipe).encode()).hexdigest()[:KEY_DIGITS]


def digest_of_file(path: Path) -> str:
    """Returns the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digest_of_files(paths: Iterable[Path], base: Path) -> str:
    """Returns one SHA-256 over the names relative to `base` and the bytes of the files, in sorted order."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(base).as_posix()}\0{digest_of_file(path)}\0".encode())
    return total.hexdigest()


@cache
def source_digest(*modules: str) -> str:
    """Returns the digest of the source and data files of packages or modules such as `crossover.metrics`.

    Cheap steps carry it in their recipe, so that an edit of their code reruns them and only them. Files are found
    by name and nothing is imported, since planning must be quick.
    """
    total = hashlib.sha256()
    for module in modules:
        path = SOURCE_ROOT.joinpath(*module.split("."))
        files = _package_files(path) if path.is_dir() else [path.with_suffix(".py")]
        total.update(f"{module}\0{digest_of_files(files, SOURCE_ROOT)}\0".encode())
    return total.hexdigest()[:KEY_DIGITS]


def _package_files(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    ]
