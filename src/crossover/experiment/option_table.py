"""The table of every option of the configuration files, made from their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossover.experiment.schemas import schema

HEAD = """# Configuration

- `experiments/`: one file an experiment
- `engines/`: variants that several experiments share (`inherits: NAME`)
- `retest/`: named changes to an experiment, with hypothesis and decision rule
- `locks/`: what tags and branches were resolved to, written by `crossover lock`
- `published/`: published figures that a report is set beside

A key that is not listed below is an error, which names the nearest one. The tables are made from `workflow/schemas/` by
`crossover options --write config/README.md`; editors that know JSON Schema can use the schemas directly.
"""

TABLES = (
    ("Experiment", "experiment", ""),
    ("Variant", "variant", ""),
    ("Workload", "experiment", "workload"),
    ("Retest item", "retest", ""),
)


def option_page() -> str:
    """Returns config/README.md."""
    parts = [HEAD]
    for title, name, definition in TABLES:
        root = schema(name)
        start = root["$defs"][definition] if definition else root
        parts.append(f"\n## {title}\n\n| option | type | meaning |\n| --- | --- | --- |\n")
        parts += [f"| `{path}` | {kind} | {_cell(text)} |\n" for path, kind, text in _options(start, root, "")]
    return "".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


OWN_TABLES = ("variant.schema.json", "experiment.schema.json#/$defs/workload", "#/$defs/workload")


def _options(node: Mapping[str, Any], root: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    """Yields (path, type, meaning) for each option below a schema node; `root` is the schema it stands in."""
    for name, raw in node.get("properties", {}).items():
        option, home = _resolved(raw, root)
        here = f"{path}{name}"
        yield here, _type(option), option.get("description", "")
        yield from _options(option, home, f"{here}.")
        for key, suffix in (("items", "[]."), ("additionalProperties", ".NAME.")):
            more = option.get(key)
            if isinstance(more, Mapping) and more.get("$ref") not in OWN_TABLES:
                yield from _options(*_resolved(more, home), f"{here}{suffix}")


def _resolved(node: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the node that a reference means, and the schema it stands in."""
    reference = node.get("$ref")
    if reference is None:
        return node, root
    file, _, place = reference.partition("#/$defs/")
    home = schema(file.removesuffix(".schema.json")) if file else root
    target: Mapping[str, Any] = home["$defs"][place] if place else home
    # What stands beside the reference, such as a description of its own, wins.
    return {**target, **{key: value for key, value in node.items() if key != "$ref"}}, home


def _type(option: Mapping[str, Any]) -> str:
    if "enum" in option:
        return ", ".join(f"`{value}`" for value in option["enum"])
    if "oneOf" in option:
        return " or ".join(_type(branch) for branch in option["oneOf"])
    kind = option.get("type", "object" if "$ref" in option else "any")
    if kind == "array":
        return f"list of {_type(option.get('items', {}))}"
    return kind if isinstance(kind, str) else " or ".join(kind)
