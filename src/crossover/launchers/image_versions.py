"""Which engine an image holds, asked of the Python in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_PACKAGES = ("vllm", "sglang")
_VERSION_LABEL = "org.opencontainers.image.version"
# Looks for the very things that start each engine: `vllm`, and the module that `python3 -m` is given.
QUESTION = (
    "import importlib.metadata as m, importlib.util as u, json, shutil\n"
    "def v(n):\n"
    "    try: return m.version(n)\n"
    "    except m.PackageNotFoundError: return None\n"
    "there = {'vllm': bool(shutil.which('vllm')), 'sglang': u.find_spec('sglang') is not None}\n"
    f"print(json.dumps({{'versions': {{n: v(n) for n in {_PACKAGES!r}}}, 'there': there}}))"
)
"""Program whose last line of output is what `version_facts` reads."""


def version_facts(labels: Mapping[str, str], output: str | None) -> dict[str, Any]:
    """Returns what an image says of its engine.

    Args:
        labels: of the image.
        output: what the question printed; None where it failed.

    Returns:
        labels; engine_versions, of each package, None for one that is not there; engine_version, of the engine that is
        there, else as a label tells it; engines, those that can be started, None where nothing was answered.
    """
    answer = _answer(output)
    versions = {name: answer.get("versions", {}).get(name) for name in _PACKAGES}
    known = [version for version in versions.values() if version]
    there = answer.get("there")
    return {
        "labels": dict(labels),
        "engine_versions": versions,
        "engine_version": known[0] if known else labels.get(_VERSION_LABEL),
        "engines": None if there is None else sorted(name for name in _PACKAGES if there.get(name)),
    }


def _answer(output: str | None) -> dict[str, dict[str, Any]]:
    try:
        answer = json.loads((output or "").splitlines()[-1])
    except (ValueError, LookupError):
        return {}
    found = answer if isinstance(answer, dict) else {}
    return {name: part for name, part in found.items() if isinstance(part, dict)}
