"""Refuses secrets that are written out in an experiment: its arguments and variables stand in recipes and reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.redaction import is_secret, is_secret_variable


def refuse_secrets(fields: Mapping[str, Any], file: Path, place: str) -> None:
    """Raises InputError where an argument or a variable of a variant holds a secret's value.

    Args:
        fields: of a resolved variant.
        place: of the variant in the file.
    """
    for name, value in fields.get("arguments", {}).items():
        if _is_text(value) and is_secret(name):
            _refuse(f"{place}.arguments.{name}", file, "e.g. VLLM_API_KEY in place of vLLM's `api-key`")
    for name, value in fields.get("environment", {}).items():
        if _is_text(value) and is_secret_variable(name):
            _refuse(f"{place}.environment.{name}", file, name)


def _is_text(value: Any) -> bool:
    return bool(value) and isinstance(value, (str, list))


def _refuse(place: str, file: Path, example: str) -> None:
    raise InputError(
        "a secret is written out, and would stand in the recipe",
        file=file,
        place=place,
        remedy=f"export it as an environment variable and name that under `secrets` ({example})",
    )
