"""The samples as a table: lines while they are taken, Parquet once the server has stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

LINES, TABLE = "telemetry.jsonl", "telemetry.parquet"
METADATA = b"crossover"


def read_lines(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Returns header and samples of a file that may still be growing, or whose last line a kill has torn.

    A file that is not there, or has no whole line, gives an empty header and an empty table.
    """
    try:
        text = path.read_text()
    except OSError:
        return {}, pd.DataFrame()
    whole = text.splitlines()[: text.count("\n")]
    if not whole:
        return {}, pd.DataFrame()
    return json.loads(whole[0]), pd.DataFrame([json.loads(line) for line in whole[1:]])


def to_parquet(folder: Path, target: Path) -> bool:
    """Writes the samples in a live folder as Parquet, the header as JSON in its metadata.

    Returns:
        whether there were any.
    """
    header, samples = read_lines(folder / LINES)
    if samples.empty:
        return False
    table = pa.Table.from_pandas(samples, preserve_index=False)
    pq.write_table(table.replace_schema_metadata({METADATA: json.dumps(header).encode()}), target)
    return True


def read_parquet(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Returns header and samples of a deployment entry's telemetry.parquet."""
    table = pq.read_table(path)
    metadata = table.schema.metadata or {}
    return json.loads(metadata.get(METADATA, b"{}")), table.to_pandas()
