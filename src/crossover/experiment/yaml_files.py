"""Reads YAML as people mean it: a key that stands twice is an error, and faults name their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from crossover.errors import InputError


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a mapping with two equal keys, which YAML forbids and PyYAML accepts."""


def _unique_mapping(loader: _Loader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in mapping:
            raise InputError(
                f"`{key}` stands twice",
                file=loader.name,
                place=f"line {key_node.start_mark.line + 1}",
                remedy="give one of them another name or merge them",
            )
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def read_yaml(file: Path) -> Any:
    """Returns the content of a YAML file.

    Raises:
        InputError: the file is missing, is no YAML, or names a key twice.
    """
    try:
        text = file.read_text()
    except FileNotFoundError:
        raise InputError("no such file", file=file) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error})", file=file) from None
    loader = _Loader(text)
    loader.name = str(file)
    try:
        return loader.get_single_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else None
        raise InputError(f"not valid YAML: {getattr(error, 'problem', error)}", file=file, place=place) from None
    finally:
        loader.dispose()
