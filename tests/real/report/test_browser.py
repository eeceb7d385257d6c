"""The page in a real browser: no console message, no request to any network, sorting works, entries open."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FACTORY = Path(__file__).parents[2] / "unit" / "report" / "sheet_factory.py"
pytestmark = [pytest.mark.real, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")]

# Appended to a copy of the page: uses it as a reader does and leaves the outcome in the document.
PROBE = """
<script>
addEventListener("load", () => {
  const table = document.querySelector("#cells table");
  const head = [...table.tHead.rows[0].cells].find((cell) => cell.textContent.includes("Total time"));
  const read = () => [...table.tBodies[0].rows].map((row) => row.cells[head.cellIndex].dataset.v ?? "none");
  head.querySelector("button").click();
  const up = read();
  head.querySelector("button").click();
  const down = read();
  location.hash = document.querySelector("#provenance tbody a").getAttribute("href");
  setTimeout(() => {
    const open = document.querySelector(location.hash).open;
    const requests = performance.getEntriesByType("resource").map((one) => one.name);
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    const box = document.createElement("script");
    box.type = "application/json";
    box.id = "outcome";
    box.textContent = JSON.stringify({ up, down, sort: head.getAttribute("aria-sort"), open, requests, wide });
    document.body.append(box);
  }, 100);
});
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the full sheet, with the probe at its end."""
    from crossover.report.build import assemble, write
    from crossover.report.sheet import read_sheet

    root = tmp_path_factory.mktemp("browser")
    spec = importlib.util.spec_from_file_location("browser_sheet_factory", FACTORY)
    assert spec is not None
    assert spec.loader is not None
    factory = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = factory
    spec.loader.exec_module(factory)
    write(assemble(read_sheet(factory.full(root).write(), root)), root / "out")
    probed = root / "out" / "probed.html"
    probed.write_text((root / "out" / "index.html").read_text().replace("</body>", f"{PROBE}</body>"))
    return probed


def browse(page: Path, width: int, profile: Path) -> tuple[dict[str, object], str]:
    """Opens the page; returns the probe's outcome and what the browser wrote to its console."""
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--enable-logging=stderr", "--v=0", f"--user-data-dir={profile}", f"--window-size={width},2000",
        "--virtual-time-budget=4000", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'id="outcome">(.*?)</script>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    return json.loads(found[1]), "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.parametrize("width", [1280, 500])
def test_page_is_quiet_stands_alone_and_works(page: Path, tmp_path: Path, width: int) -> None:
    outcome, console = browse(page, width, tmp_path / "profile")
    assert console == ""
    assert outcome["requests"] == []
    up = [float(value) for value in outcome["up"] if value != "none"]  # type: ignore[attr-defined]
    down = [float(value) for value in outcome["down"] if value != "none"]  # type: ignore[attr-defined]
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)
    # The failed cell has no figure and stays last either way.
    assert (outcome["up"][-1], outcome["down"][-1]) == ("none", "none")  # type: ignore[index]
    assert outcome["sort"] == "descending"
    assert outcome["open"] is True
    # Wide tables scroll inside themselves; the page does not.
    assert outcome["wide"] == 0
