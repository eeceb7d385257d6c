"""Renders a report of many cells and checks the time and the size of its page.

    python benchmarks/report.py [--cells 1000]

Two engines' worth of variants over contexts, datasets and loads, every cell with a full metrics document.
Fails where a thousand cells take more than 30 s or the page more than 10 MB.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

LIMIT_S, LIMIT_BYTES = 30.0, 10_000_000
FACTORY = Path(__file__).parents[1] / "tests" / "unit" / "report" / "sheet_factory.py"
DATASETS = ("random", "sharegpt-shaped", "documents", "shared-prefix", "jsonl")
CONTEXTS = tuple(8_000 * step for step in range(1, 26))


def main() -> int:
    """Makes the sheet, renders it, prints the figures as JSON and returns 1 where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    cells = parser.parse_args().cells
    from crossover.report.build import assemble, write
    from crossover.report.sheet import read_sheet

    with tempfile.TemporaryDirectory() as folder:
        sheet = make_sheet(load_factory(), Path(folder), cells)
        out = Path(folder) / "report"
        start, busy = time.perf_counter(), time.process_time()
        write(assemble(read_sheet(sheet, Path(folder))), out)
        seconds, cpu_s = time.perf_counter() - start, time.process_time() - busy
        size = (out / "index.html").stat().st_size
    figures = {"cells": cells, "seconds": round(seconds, 2), "cpu_s": round(cpu_s, 2), "page_bytes": size}
    print(json.dumps(figures | {"limit_s": LIMIT_S, "limit_bytes": LIMIT_BYTES}))
    return int(seconds > LIMIT_S or size > LIMIT_BYTES)


def make_sheet(factory: ModuleType, root: Path, cells: int) -> Path:
    """Writes a sheet of `cells` cells below `root`; one in fifty failed, one in ten has a figure withheld."""
    sheet: Any = factory.SheetFactory(root, title="A thousand cells")
    names = {"vllm": "vllm", "sglang": "sglang", "vllm-next": "vllm", "sglang-dcp1": "sglang"}
    for name, engine in names.items():
        sheet.variant(name, engine)
    rows = []
    for number in range(cells):
        name = list(names)[number % 4]
        context = CONTEXTS[number // 4 % len(CONTEXTS)]
        dataset = DATASETS[number // (4 * len(CONTEXTS)) % len(DATASETS)]
        document = factory.metrics(names[name], context, factor=1 + 0.01 * (number % 7))
        if number % 50 == 49:
            document = factory.failed_metrics()
        elif number % 10 == 9:
            document["metrics"]["output_tok_s"]["withheld"] = "impossible: more than wall time allows"
        load = 10 * (1 + number // (4 * len(CONTEXTS) * len(DATASETS)))
        rows.append(sheet.cell(name, context, document, dataset=dataset, concurrency=load))
    sheet.sheet["cells"] = rows
    for name in names:
        sheet.deployment(name, [row for row in rows if row["variant"] == name])
    return Path(sheet.write())


def load_factory() -> ModuleType:
    """Returns the sheet factory of the tests."""
    spec = importlib.util.spec_from_file_location("sheet_factory", FACTORY)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{FACTORY}: cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules["sheet_factory"] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
