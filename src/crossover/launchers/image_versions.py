"""Which engine an image holds, asked of the Python in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_PACKAGES = ("vllm", "sglang")
_VERSION_LABEL = "org.opencontainers.image.version"
QUESTION = (
    "import importlib.metadata as m, json\n"
    "def v(n):\n"
    "    try: return m.version(n)\n"
    "    except m.PackageNotFoundError: return None\n"
    f"print(json.dumps({{n: v(n) for n in {_PACKAGES!r}}}))"
)
"""Program whose last line of output is what `answered` reads."""


def answered(output: str | None) -> dict[str, str | None]:
    """Returns the version of each engine by package, None for one that is not there or where nothing was answered.

    Args:
        output: what the question printed; None where it failed.
    """
    nothing: dict[str, str | None] = dict.fromkeys(_PACKAGES)
    try:
        found = json.loads((output or "").splitlines()[-1])
    except (ValueError, LookupError):
        return nothing
    return {name: found.get(name) for name in _PACKAGES} if isinstance(found, dict) else nothing


def version_facts(labels: Mapping[str, str], versions: Mapping[str, str | None]) -> dict[str, Any]:
    """Returns labels, engine_versions, and engine_version: of the engine that is there, else as a label tells it."""
    known = [version for version in versions.values() if version]
    return {
        "labels": dict(labels),
        "engine_versions": dict(versions),
        "engine_version": known[0] if known else labels.get(_VERSION_LABEL),
    }
