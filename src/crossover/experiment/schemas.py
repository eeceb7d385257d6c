"""Checks a configuration file against its JSON Schema and says in one line what is wrong."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry, Resource

from crossover.errors import InputError

SCHEMA_DIR = Path(__file__).resolve().parents[3] / "workflow" / "schemas"


@cache
def schema(name: str) -> Mapping[str, Any]:
    """Returns the schema `workflow/schemas/NAME.schema.json`."""
    loaded: dict[str, Any] = json.loads((SCHEMA_DIR / f"{name}.schema.json").read_text())
    return loaded


@cache
def validator(name: str) -> Draft202012Validator:
    """Returns a validator that knows the other schemas by their file names."""
    resources = [
        (f"{other}.schema.json", Resource.from_contents(schema(other))) for other in ("variant", "experiment", "retest")
    ]
    return Draft202012Validator(schema(name), registry=Registry().with_resources(resources))


def check(data: Any, name: str, file: Path) -> None:
    """Raises InputError for the first and most telling fault of `data`, with its path and what would be right.

    In a variant a null removes an inherited field, so it fits wherever the field does.
    """
    checked = _without_nulls(data) if name == "variant" else _without_variant_nulls(data)
    error = best_match(validator(name).iter_errors(checked))
    if error is None:
        return
    while error.context:  # of a `oneOf`, the branch that came furthest tells most
        deeper = best_match(error.context)
        if deeper is None or deeper.validator == "type":
            break
        error = deeper
    place = ".".join(str(part) for part in error.absolute_path) or "(top level)"
    problem, remedy = _explain(error)
    raise InputError(problem, file=file, place=place, remedy=remedy)


def _without_variant_nulls(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {
            key: _without_nulls(value) if key == "variants" else _without_variant_nulls(value)
            for key, value in data.items()
        }
    return [_without_variant_nulls(item) for item in data] if isinstance(data, list) else data


def _without_nulls(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _without_nulls(value) for key, value in data.items() if value is not None}
    return data


def nearest(name: str, known: list[str]) -> str | None:
    """Returns the known name that `name` was probably meant to be, if one is near."""
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return matches[0] if matches else None


def suggestion(name: str, known: list[str]) -> str:
    """Returns `did you mean X?` where a known name is near, else the list of known names."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near else f"known: {', '.join(sorted(known)) or 'none'}"


def _explain(error: ValidationError) -> tuple[str, str | None]:
    explain = _EXPLANATIONS.get(str(error.validator))
    if explain:
        return explain(error)
    return error.message, _described(error)


_SHOWN = 60


def _unknown_key(error: ValidationError) -> tuple[str, str]:
    known = list(_schema_of(error).get("properties", {}))
    unknown = [key for key in _mapping(error.instance) if key not in known]
    return f"unknown key `{unknown[0]}`", suggestion(str(unknown[0]), known)


def _missing_key(error: ValidationError) -> tuple[str, str]:
    wanted: Any = error.validator_value
    missing = next(key for key in wanted if key not in _mapping(error.instance))
    given = [str(key) for key in _mapping(error.instance) if key not in _schema_of(error).get("properties", {missing})]
    meant = nearest(missing, given)
    if meant is not None:
        return f"unknown key `{meant}`", f"did you mean `{missing}`?"
    described = _schema_of(error).get("properties", {}).get(missing, {}).get("description", "")
    return f"`{missing}` is missing", f"add it: {described}" if described else "add it"


def _wrong_type(error: ValidationError) -> tuple[str, str]:
    wanted: Any = error.validator_value
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    value = error.instance
    if value is None:
        return "it is empty", f"it must be of type {' or '.join(names)}"
    hint = ""
    if isinstance(value, str) and _number(value) and {"integer", "number"} & set(names):
        hint = ", without quotation marks"
    elif isinstance(value, int | float | bool) and "string" in names:
        hint = ", in quotation marks"
    elif isinstance(value, list) and names == ["object"]:
        hint = ", NAME: ... instead of - ..."
    return f"{_shown(value)} has the wrong type", f"it must be of type {' or '.join(names)}{hint}"


def _number(text: str) -> bool:
    return text.strip().lstrip("-").replace(".", "", 1).isdigit()


def _shown(value: Any) -> str:
    """Returns a value as YAML has it, cut where it is long."""
    text = json.dumps(value, default=str) if isinstance(value, bool | list | dict) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _too_small(error: ValidationError) -> tuple[str, str]:
    bound = "at least" if error.validator == "minimum" else "more than"
    return f"{error.instance!r} is too small", f"it must be {bound} {error.validator_value}"


def _too_large(error: ValidationError) -> tuple[str, str]:
    bound = "at most" if error.validator == "maximum" else "less than"
    return f"{error.instance!r} is too large", f"it must be {bound} {error.validator_value}"


def _twice(error: ValidationError) -> tuple[str, str]:
    return f"{_shown(error.instance)} names something twice", "name each once"


def _not_listed(error: ValidationError) -> tuple[str, str]:
    wanted: Any = error.validator_value
    return f"{_shown(error.instance)} is not known", suggestion(str(error.instance), [str(value) for value in wanted])


def _empty(error: ValidationError) -> tuple[str, str]:
    return "it is empty", "it needs at least one entry"


def _bad_name(error: ValidationError) -> tuple[str, str]:
    return f"{error.instance!r} is not a valid name", f"it must match {error.validator_value}"


def _one_of(error: ValidationError) -> tuple[str, str | None]:
    """Explains a value that fits no branch, by the types that the branches take."""
    branches: Any = error.validator_value
    types = {str(branch.get("type")): None for branch in branches}
    if "array" in types:
        inner = next(branch.get("items", {}).get("type", "value") for branch in branches if "items" in branch)
        types = {**{name: None for name in types if name != "array"}, f"a list of {inner}": None}
    hint = ", without quotation marks" if isinstance(error.instance, str) and _number(error.instance) else ""
    return f"{_shown(error.instance)} has the wrong type", f"it must be of type {' or '.join(types)}{hint}"


def _described(error: ValidationError) -> str | None:
    described = _schema_of(error).get("description")
    return f"it is: {described}" if described else None


def _schema_of(error: ValidationError) -> Mapping[str, Any]:
    return _mapping(error.schema)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_EXPLANATIONS = {
    "additionalProperties": _unknown_key,
    "required": _missing_key,
    "type": _wrong_type,
    "minimum": _too_small,
    "exclusiveMinimum": _too_small,
    "enum": _not_listed,
    "minItems": _empty,
    "minProperties": _empty,
    "pattern": _bad_name,
    "oneOf": _one_of,
    "maximum": _too_large,
    "exclusiveMaximum": _too_large,
    "uniqueItems": _twice,
}
