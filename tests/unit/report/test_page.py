"""The page as a whole: hostile text stays text, it stands alone, it is stamped, and nothing missing breaks it."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crossover.report.build import assemble, write
from crossover.report.sheet import read_sheet

HOSTILE = "$x_$<script>alert(1)</script><img src=x onerror=alert(2)>\"'`|*"


class Page(HTMLParser):
    """Collects what the tests ask of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def values(self, name: str) -> list[str]:
        return [value for _, attrs in self.tags if (value := attrs.get(name))]


def render(factory: Any, out: Path) -> str:
    """Writes the report of a factory's sheet and returns the page."""
    write(assemble(read_sheet(factory.write(), factory.root)), out)
    return (out / "index.html").read_text()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, sheets: ModuleType) -> Path:
    """The report of the full sheet of eight cells, made once."""
    root = tmp_path_factory.mktemp("whole")
    factory = sheets.full(root)
    published = Path(__file__).parents[3] / "config" / "published" / "kimi-k3-b300.yaml"
    factory.sheet["published"] = factory.put("published.yaml", published.read_text())
    render(factory, root / "out")
    return root / "out"


def test_all_parts_are_written(whole: Path) -> None:
    for name in ("index.html", "report.md", "report.json", "tables/cells.csv", "tables/audits.csv", "tables/retest.csv",
                 "tables/published.csv", "tables/confounds.csv", "tables/gpu_time.csv", "tables/predicted.csv",
                 "tables/contamination.csv", "tables/failed.csv", "tables/provenance.csv",
                 "figures/end-to-end.csv", "figures/stable-decode.csv", "figures/ttft.csv", "figures/tpot.csv",
                 "figures/prefill.csv", "figures/acceptance.csv", "figures/cold-start.csv", "figures/running.csv",
                 "figures/attribution.csv", "figures/latency.csv"):  # fmt: skip
        assert (whole / name).stat().st_size > 0, name
    assert len(list((whole / "figures").glob("*.svg"))) > 10


def test_page_stands_alone(whole: Path) -> None:
    page = Page((whole / "index.html").read_text())
    names = {tag for tag, _ in page.tags}
    assert not names & {"iframe", "object", "embed", "img", "base"}
    assert [attrs for tag, attrs in page.tags if tag == "link"] == [{"rel": "icon", "href": "data:,"}]
    assert [attrs for tag, attrs in page.tags if tag == "script"] == [{}]
    assert not page.values("src")
    text = (whole / "index.html").read_text()
    assert not re.search(r"url\((?!#)|@import", text)
    # Namespaces are names, not addresses; nothing else may look like one.
    addresses = set(re.findall(r"https?://[^\"'\s<)]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_anchors_lead_somewhere_and_identifiers_are_unique(whole: Path) -> None:
    page = Page((whole / "index.html").read_text())
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    inside = {href[1:] for href in page.values("href") if href.startswith("#")}
    assert inside <= set(ids)
    for href in page.values("href"):
        if not href.startswith(("#", "data:")):
            assert (whole / href).exists(), href


def test_simulated_is_stamped_on_page_figures_and_tables(whole: Path) -> None:
    text = (whole / "index.html").read_text()
    assert "<title>[SIMULATED]" in text
    assert 'class="banner"' in text
    captions = re.findall(r"<caption>(.*?)</caption>", text, re.DOTALL)
    assert captions
    assert all(caption.startswith("Simulated.") for caption in captions)
    for drawing in (whole / "figures").glob("*.svg"):
        content = drawing.read_text()
        assert content.count("SIMULATED") == 2, drawing.name
        assert "Simulated." in content
    assert (whole / "report.md").read_text().startswith("# SIMULATED:")
    assert json.loads((whole / "report.json").read_text())["simulated"] is True


def test_real_measurements_are_not_stamped(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path, simulated=False)
    for engine in ("vllm", "sglang"):
        document = sheets.metrics(engine, 64_000, simulated=False)
        factory.sheet["cells"].append(factory.cell(engine, 64_000, document))
    assert "imulated" not in re.sub(r"<style>.*?</style>", "", render(factory, tmp_path / "out"), flags=re.DOTALL)


def test_withheld_figure_is_nowhere_and_its_reason_is(whole: Path) -> None:
    with (whole / "tables" / "cells.csv").open() as file:
        rows = {row["cell"]: row for row in csv.DictReader(file)}
    row = rows["vllm/sharegpt-shaped/200000/c10/r0"]
    assert row["output_tok_s"] == ""
    assert float(row["e2e_s"]) == pytest.approx(284.6 * 0.9)
    text = (whole / "index.html").read_text()
    assert "10.9 times what wall time allows" in text
    assert "withheld<sup>" in text
    verdicts = (whole / "tables" / "verdicts.csv").read_text().splitlines()
    assert not any('200000,"sharegpt-shaped' in line and "Output" in line for line in verdicts)


def test_failed_cell_is_there_with_reason_and_log(whole: Path) -> None:
    text = (whole / "index.html").read_text()
    assert "the server ended with exit status 137" in text
    assert "ERROR EngineCore died: CUDA out of memory" in text
    assert "ERROR EngineCore died" in (whole / "report.md").read_text()


def test_published_figures_stand_beside_the_measured(whole: Path) -> None:
    with (whole / "tables" / "published.csv").open() as file:
        rows = {(row["published_cell"], row["quantity"]): row for row in csv.DictReader(file)}
    total = rows["vllm-64k", "Total time, s"]
    assert float(total["published"]) == 100.5
    assert float(total["ratio"]) == pytest.approx(84.4 * 1.05 / 100.5)
    # The published 1,111.61 tok/s is beyond what wall time allows.
    assert rows["vllm-200k", "Output, tok/s"]["published_verdict"] == "impossible"


def test_retest_page_decides_by_the_rule_and_prices_what_is_open(whole: Path) -> None:
    with (whole / "tables" / "retest.csv").open() as file:
        first, second = list(csv.DictReader(file))
    assert "End-to-end × 0.930" in first["effect"]
    assert first["decision"] == "holds (one run each)"
    assert (second["effect"], second["decision"], second["gpu_hours"]) == ("not run", "open", "3.1")


def test_markup_in_any_text_comes_out_as_text(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path, title=f"title{HOSTILE}")
    name = f"variant{HOSTILE}"
    factory.variant(name, "vllm")
    document = sheets.metrics("vllm", 64_000)
    document["engine"]["incidents"][0]["message"] = f"incident{HOSTILE}"
    document["audits"][0].update(verdict="impossible", why=f"audit{HOSTILE}", withholds=["e2e_s"])
    failed = sheets.failed_metrics(f"reason{HOSTILE}", [f"log{HOSTILE}"])
    factory.sheet["cells"] = [factory.cell(name, 64_000, document), factory.cell(name, 200_000, failed)]
    text = render(factory, tmp_path / "out")
    page = Page(text)
    assert [attrs for tag, attrs in page.tags if tag == "script"] == [{}]
    assert "img" not in {tag for tag, _ in page.tags}
    for word in ("title", "variant", "incident", "audit", "reason", "log"):
        assert f"{word}$x_$&lt;script&gt;alert(1)" in text, word
    markdown = (tmp_path / "out" / "report.md").read_text()
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside
    for drawing in (tmp_path / "out" / "figures").glob("*.svg"):
        assert "<script" not in drawing.read_text()


def test_a_log_cannot_leave_its_block_in_markdown(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path)
    factory.sheet["cells"] = [factory.cell("vllm", 64_000, sheets.failed_metrics("died", ["```", "# heading"]))]
    render(factory, tmp_path / "out")
    markdown = (tmp_path / "out" / "report.md").read_text()
    assert "````text\n```\n# heading\n````" in markdown


@pytest.mark.parametrize("missing", ["nothing", "metrics", "engine", "series", "statistics", "audits", "one context"])
def test_missing_parts_do_not_break_the_page(tmp_path: Path, sheets: ModuleType, missing: str) -> None:
    factory = sheets.SheetFactory(tmp_path)
    if missing != "nothing":
        document = sheets.metrics("vllm", 64_000)
        if missing == "metrics":
            document["metrics"] = {}
        elif missing == "engine":
            document["engine"] = None
        elif missing == "series":
            document["series"] = {"t_s": [], "running": [], "output_tok_s": []}
        elif missing == "statistics":
            document["metrics"] = {
                name: {"unit": "s", "n": 0, "mean": None, "withheld": {}} for name in document["metrics"]
            }
            document["contamination"] = {"requests": [], "metrics_without": None}
            document["duration_s"] = None
        elif missing == "audits":
            document["audits"] = None
        factory.sheet["cells"] = [factory.cell("vllm", 64_000, document)]
    text = render(factory, tmp_path / "out")
    assert "there is nothing to compare yet" in text


def test_rendering_is_deterministic(tmp_path: Path, sheets: ModuleType) -> None:
    factory = sheets.SheetFactory(tmp_path)
    factory.sheet["cells"] = [factory.cell("vllm", 64_000, sheets.metrics("vllm", 64_000))]
    for name in ("one", "two"):
        render(factory, tmp_path / name)
    for file in (tmp_path / "one").rglob("*"):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / "two" / file.relative_to(tmp_path / "one")).read_bytes(), file.name
