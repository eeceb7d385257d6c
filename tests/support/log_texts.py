"""Lines of failing engines, and the incidents of a vLLM log, for the tests of the log reader."""

from __future__ import annotations

from typing import Any

from crossover.logs import read_log

CORE = "(EngineCore_DP0 pid=7) ERROR 10-25 13:12:42 [core.py:671] "
DEAD = (
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)


def incidents(*lines: str) -> list[dict[str, Any]]:
    """Returns the incidents of a log of vLLM, as JSON holds them."""
    report = read_log(lines).to_dict()
    assert report["engine"] == "vllm"
    found: list[dict[str, Any]] = report["incidents"]
    return found


def kinds(*lines: str) -> list[str]:
    """Returns the kinds of the incidents of a log of vLLM, in its order."""
    return [found["kind"] for found in incidents(*lines)]
