"""What was asked for and what ran: which settings are shown, in which order, with which source."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from crossover.report.context import Context
from crossover.report.sheet import read_sheet
from crossover.report.tables.configuration import build


def setting(name: str, value: Any, stated: dict[str, Any], asked: tuple[str, Any] | None = None) -> dict[str, Any]:
    known = [one for one in stated.values() if one != "auto"]
    flag, requested = asked or (None, None)
    verdict = None if asked is None else "as asked" if requested == value else "changed"
    return {
        "setting": name, "value": value, "source": next(iter(stated)), "stated": stated, "flag": flag,
        "disagree": len(set(known)) > 1, "requested": requested, "verdict": verdict,
    }  # fmt: skip


def rows(sheets: ModuleType, root: Path, report: dict[str, Any]) -> list[dict[str, Any]] | None:
    factory = sheets.SheetFactory(root)
    document = sheets.metrics("vllm", 64_000)
    factory.sheet["cells"] = [factory.cell("vllm", 64_000, document, engine_report=report)]
    table = build(Context(read_sheet(factory.write(), root)))
    return None if table is None else table.records()


def test_changed_settings_come_first_then_disagreements_then_the_important(sheets: ModuleType, tmp_path: Path) -> None:
    settings = [
        setting("async_scheduling", True, {"log": True}),  # nobody asked, sources agree: not shown
        setting("enforce_eager", True, {"log": True}, ("enforce-eager", True)),
        setting("kv_cache_dtype", "bfloat16", {"log": "bfloat16", "/server_info": "auto"}),
        setting("max_running_requests", 128, {"/server_info": 128}, ("max-num-seqs", 256)),
        setting("mamba_block", 1600, {"/metrics": 1600, "log": 16}),
    ]
    found = rows(sheets, tmp_path, {"configuration": {"sources": [], "settings": settings}}) or []
    assert [row["setting"] for row in found] == [
        "max_running_requests", "mamba_block", "enforce_eager", "kv_cache_dtype",
    ]  # fmt: skip
    changed, disagreeing, asked, chosen = found
    assert (changed["requested"], changed["effective"], changed["verdict"]) == ("256", "128", "changed")
    assert changed["source"] == "/server_info"
    assert (disagreeing["effective"], disagreeing["stated"]) == ("1600", "log: 16")
    assert (asked["requested"], asked["effective"], asked["verdict"]) == ("yes", "yes", "as asked")
    assert (chosen["requested"], chosen["verdict"], chosen["stated"]) == (
        "–",
        "the engine's choice",
        "/server_info: auto",
    )


def test_changes_of_every_variant_stand_above_the_rest(sheets: ModuleType, tmp_path: Path) -> None:
    factory = sheets.SheetFactory(tmp_path)
    settings = [
        setting("VLLM_INTERVAL", 1.0, {"/server_info vllm_env": 1.0}, ("VLLM_INTERVAL", 1.0)),
        setting("max_running_requests", 128, {"/server_info": 128}, ("max-num-seqs", 256)),
    ]
    report = {"configuration": {"sources": [], "settings": settings}}
    factory.sheet["cells"] = [
        factory.cell(variant, 64_000, sheets.metrics(variant, 64_000), engine_report=report)
        for variant in ("vllm", "sglang")
    ]
    table = build(Context(read_sheet(factory.write(), tmp_path)))
    assert table is not None
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        ("vllm", "max running requests"),
        ("sglang", "max running requests"),
        ("vllm", "VLLM_INTERVAL"),
        ("sglang", "VLLM_INTERVAL"),
    ]
    assert table.rows[2][3].text == "1"


def test_no_table_where_no_report_has_a_merged_configuration(sheets: ModuleType, tmp_path: Path) -> None:
    assert rows(sheets, tmp_path, {"effective_config": {"block_size": 16}}) is None
