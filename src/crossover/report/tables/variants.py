"""What was compared: engine, version, image, launcher, arguments."""

from __future__ import annotations

import json
import shlex

from crossover.report.context import Context
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns one row a variant."""
    if not context.sheet.variants:
        return None
    columns = (
        Column("variant", "Variant"),
        Column("engine", "Engine"),
        Column("version", "Version"),
        Column("image", "Image"),
        Column("launcher", "Launcher"),
        Column("arguments", "Arguments"),
        Column("environment", "Environment"),
    )
    rows = [
        [
            Datum(name),
            *(Datum(str(variant.get(field) or "–")) for field in ("engine", "version", "image")),
            Datum(_launcher(variant.get("launcher"))),
            Datum(_flags(variant.get("arguments"))),
            Datum(" ".join(f"{key}={value}" for key, value in (variant.get("environment") or {}).items()) or "–"),
        ]
        for name, variant in context.sheet.variants.items()
    ]
    return Table(
        "variants",
        "Variants",
        "As declared; the effective configurations are in the ledger.",
        columns,
        rows,
        folded=True,
    )


def _launcher(launcher: object) -> str:
    if isinstance(launcher, dict):
        return str(launcher.get("kind") or "–")
    return str(launcher or "–")


def _flags(arguments: object) -> str:
    if not isinstance(arguments, dict):
        return str(arguments) if arguments else "–"
    flags = []
    for name, value in arguments.items():
        if value is True:
            flags.append(f"--{name}")
        elif value is not False and value is not None:
            text = json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else str(value)
            flags.append(f"--{name} {shlex.quote(text)}")
    return " ".join(flags) or "–"
