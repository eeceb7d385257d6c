"""What determines a prompts file, for its key in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from crossover.workloads.datasets import DATASETS
from crossover.workloads.specification import Spec, parse_spec
from crossover.workloads.tiktoken_file import read_pattern

VERSION = 1
"""Raised by hand when a change makes other prompts out of the same spec; test_stability.py notices."""


def recipe(spec: Mapping[str, Any], base_dir: Path | None = None) -> dict[str, Any]:
    """Returns the canonical determinants of a prompts file, JSON-ready: defaults filled in, files as SHA-256
    digests.

    Args:
        spec: as for `build`.
        base_dir: what relative paths in the spec are relative to.

    Raises:
        InputError: the spec is wrong or a file is missing.
    """
    return determinants(parse_spec(spec, base_dir))


def determinants(spec: Spec) -> dict[str, Any]:
    """Returns the recipe of a checked spec."""
    tokenizer = dict(spec.tokenizer)
    if "path" in tokenizer:
        path = Path(tokenizer.pop("path"))
        tokenizer["sha256"] = digest(path)
        if path.suffix == ".model":
            tokenizer["pattern"] = read_pattern(path)
    return {
        "step": "prompts",
        "version": VERSION,
        "dataset": spec.dataset,
        "requests": spec.requests,
        "input_tokens": spec.input_tokens,
        "output_tokens": spec.output_tokens,
        "seed": spec.seed,
        "purpose": spec.purpose,
        "form": spec.form,
        "tokenizer": tokenizer,
        "options": _options(spec),
    }


def _options(spec: Spec) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for option in DATASETS[spec.dataset].options:
        value = spec.options[option.name]
        if option.kind == "file" and value is not None:
            value = {"sha256": digest(value)}
        elif option.kind == "files" and value is not None:
            value = [{"sha256": digest(path)} for path in value]
        found[option.name] = value
    return found


def digest(path: str | Path) -> str:
    """Returns the SHA-256 of a file, remembered while its size and time stay the same."""
    status = Path(path).stat()
    return _digest(str(path), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _digest(path: str, _size: int, _modified_ns: int) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
