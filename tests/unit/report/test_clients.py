"""Other clients beside ours: each figure with its ratio, its definition and what an audit said of it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from crossover.report.context import Context
from crossover.report.sheet import read_sheet
from crossover.report.tables.clients import build


def figure(metric: str, statistic: str, value: float, same: bool, audited_as: str) -> dict[str, Any]:
    return {
        "metric": metric, "statistic": statistic, "value": value, "unit": "s", "column": f"their {metric}",
        "same_as_ours": same, "definition": f"how they make {metric}", "audited_as": audited_as,
    }  # fmt: skip


def finding(subject: str, verdict: str) -> dict[str, Any]:
    return {"audit": "bound", "verdict": verdict, "subject": subject, "why": "wall time", "withholds": []}


def table(factory: Any) -> list[dict[str, Any]] | None:
    found = build(Context(read_sheet(factory.write(), factory.root)))
    return None if found is None else found.records()


def test_each_figure_stands_beside_ours(sheets: ModuleType, tmp_path: Path) -> None:
    factory = sheets.SheetFactory(tmp_path)
    factory.variant("vllm")
    document = sheets.metrics("vllm", 64_000)
    document["clients"] = {
        "guidellm": {
            "status": "ok",
            "reason": None,
            "version": "0.8.1",
            "figures": [
                figure("ttft_s", "mean", 69.6, False, "ttft_mean_s"),
                figure("ttft_s", "p50", 70.0, False, "ttft_p50_s"),
                figure("output_tok_s", "value", 9999.0, True, "output_tokens_per_s"),
            ],
        },
        "aiperf": {"status": "failed", "reason": "aiperf ended with status 3", "version": None, "figures": []},
    }
    document["audits"] += [
        finding("client.guidellm.output_tokens_per_s", "passed"),
        finding("client.guidellm.output_tokens_per_s", "impossible"),
    ]
    factory.sheet["cells"] = [factory.cell("vllm", 64_000, document)]
    rate, ttft, failed = table(factory) or []
    # Ours is 34.8 s (the factory's), theirs 69.6 s.
    assert (ttft["client"], ttft["metric"], ttft["theirs"], ttft["ours"]) == ("guidellm", "ttft_s", 69.6, 34.8)
    assert (ttft["ratio"], ttft["definition"], ttft["verdict"]) == (2.0, "not ours: how they make ttft_s", "no finding")
    assert (rate["definition"], rate["verdict"]) == ("how they make output_tok_s", "impossible")
    assert (failed["client"], failed["definition"], failed["verdict"]) == (
        "aiperf",
        "aiperf ended with status 3",
        "failed",
    )
    assert failed["theirs"] is None


def test_without_other_clients_there_is_no_table(sheets: ModuleType, tmp_path: Path) -> None:
    assert table(sheets.full(tmp_path)) is None
