"""The spec of a prompts file: reading, defaults and the errors a user sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossover.errors import InputError

FORMS = ("text", "token_ids")
PURPOSES = ("measure", "warmup")
TOKENIZER_FILES = ("tokenizer.json", "tiktoken.model")
_TOKENIZER_KEYS = {
    "words": frozenset({"server_adds"}),
    "file": frozenset({"path", "server_adds"}),
    "ids": frozenset({"vocabulary_size", "first_id", "server_adds"}),
}


@dataclass(frozen=True)
class Option:
    """An option of a dataset.

    Args:
        name: the key under `options`.
        kind: "file", "files", "whole" (an integer of at least `least`), "flag", "choice" or "mapping".
        default: what holds where it is not given; None for a required one with `required`.
        help: one sentence.
    """

    name: str
    kind: str
    help: str
    default: Any = None
    required: bool = False
    least: int = 0
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spec:
    """A checked spec. Lengths are in tokens; None means that the dataset decides them."""

    dataset: str
    requests: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    seed: int = 0
    purpose: str = "measure"
    form: str = "text"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: {"kind": "words"})
    options: Mapping[str, Any] = field(default_factory=dict)

    def stream_key(self) -> tuple[object, ...]:
        """Returns what separates the random streams of two specs.

        The length is in it, so that a prompt of 64K tokens is not the beginning of the one of 200K with the
        same seed.
        """
        return (self.dataset, self.seed, self.purpose, self.input_tokens)


_KEYS = frozenset(Spec.__dataclass_fields__)


def parse_spec(spec: Mapping[str, Any], base_dir: Path | None = None, file: Path | None = None) -> Spec:
    """Returns the checked spec, with every default filled in and paths made absolute.

    Args:
        spec: the mapping as the user wrote it.
        base_dir: what relative paths are relative to; the working folder by default.
        file: the file the spec was read from, for errors.

    Raises:
        InputError: unknown keys, wrong types, missing files.
    """
    from crossover.workloads.datasets import DATASETS

    base = Path.cwd() if base_dir is None else base_dir
    _only(spec, _KEYS, "", file)
    name = spec.get("dataset")
    if name not in DATASETS:
        raise InputError(
            f"unknown dataset {name!r}",
            file=file,
            place="dataset",
            remedy=f"use one of {', '.join(sorted(DATASETS))}",
        )
    dataset = DATASETS[name]
    parsed = Spec(
        dataset=name,
        requests=_whole(spec, "requests", file, least=1),
        input_tokens=_maybe_whole(spec, "input_tokens", file, least=1),
        output_tokens=_maybe_whole(spec, "output_tokens", file, least=1),
        seed=_whole(spec, "seed", file, default=0),
        purpose=_choice(spec, "purpose", PURPOSES, "measure", file),
        form=_choice(spec, "form", FORMS, "text", file),
        tokenizer=_tokenizer(spec.get("tokenizer", {"kind": "words"}), base, file),
        options=_options(spec.get("options") or {}, dataset.options, base, file),
    )
    for key in ("input_tokens", "output_tokens"):
        if getattr(parsed, key) is None and key not in dataset.free_lengths:
            raise InputError(
                f"dataset {name} needs {key}",
                file=file,
                place=key,
                remedy="give a number of tokens, such as 64000",
            )
    return parsed


def _only(given: Mapping[str, Any], known: frozenset[str] | set[str], place: str, file: Path | None) -> None:
    if not isinstance(given, Mapping):
        raise InputError(
            "must be a mapping", file=file, place=place or None, remedy=f"keys: {', '.join(sorted(known))}"
        )
    unknown = sorted(set(given) - known)
    if unknown:
        at = f"{place}.{unknown[0]}" if place else unknown[0]
        listed = ", ".join(sorted(known)) or "none"
        raise InputError("unknown key", file=file, place=at, remedy=f"known keys: {listed}")


def _whole(
    given: Mapping[str, Any],
    key: str,
    file: Path | None,
    *,
    default: int | None = None,
    least: int = 0,
    place: str = "",
) -> int:
    value = given.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(
            f"{value!r} is not a whole number of at least {least}" if key in given else "is missing",
            file=file,
            place=f"{place}.{key}" if place else key,
            remedy=f"give a whole number of at least {least}",
        )
    return value


def _maybe_whole(given: Mapping[str, Any], key: str, file: Path | None, *, least: int) -> int | None:
    return None if given.get(key) is None else _whole(given, key, file, least=least)


def _choice(
    given: Mapping[str, Any],
    key: str,
    choices: tuple[str, ...],
    default: str | None,
    file: Path | None,
    place: str = "",
) -> str:
    value = given.get(key, default)
    if value not in choices:
        at = f"{place}.{key}" if place else key
        raise InputError(f"{value!r} is not known", file=file, place=at, remedy=f"use one of {', '.join(choices)}")
    return str(value)


def _file(value: object, base: Path, place: str, file: Path | None) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{value!r} is not a path", file=file, place=place, remedy="give the path of a file")
    path = (base / Path(value).expanduser()).resolve()
    if not path.is_file():
        raise InputError(f"no such file: {value}", file=file, place=place, remedy=f"paths are relative to {base}")
    return str(path)


def _files(value: object, base: Path, place: str, file: Path | None) -> list[str]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not items:
        raise InputError(f"{value!r} is not a list of paths", file=file, place=place, remedy="give at least one file")
    return [_file(item, base, f"{place}[{number}]", file) for number, item in enumerate(items)]


def _tokenizer(given: Mapping[str, Any], base: Path, file: Path | None) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError("must be a mapping", file=file, place="tokenizer", remedy='for example {"kind": "words"}')
    kind = _choice(given, "kind", tuple(_TOKENIZER_KEYS), None, file, "tokenizer")
    _only(given, _TOKENIZER_KEYS[kind] | {"kind"}, "tokenizer", file)
    checked: dict[str, Any] = {
        "kind": kind,
        "server_adds": _whole(given, "server_adds", file, default=0, place="tokenizer"),
    }
    if kind == "file":
        checked["path"] = _tokenizer_file(given.get("path"), base, file)
    if kind == "ids":
        checked["first_id"] = _whole(given, "first_id", file, default=0, place="tokenizer")
        least = checked["first_id"] + 2
        checked["vocabulary_size"] = _whole(given, "vocabulary_size", file, least=least, place="tokenizer")
    return checked


def _tokenizer_file(value: object, base: Path, file: Path | None) -> str:
    """A model's folder is taken for the tokenizer in it."""
    if isinstance(value, str) and (folder := base / Path(value).expanduser()).is_dir():
        name = next((name for name in TOKENIZER_FILES if (folder / name).is_file()), TOKENIZER_FILES[0])
        value = str(Path(value) / name)
    return _file(value, base, "tokenizer.path", file)


def _options(given: Mapping[str, Any], known: tuple[Option, ...], base: Path, file: Path | None) -> dict[str, Any]:
    _only(given, {option.name for option in known}, "options", file)
    return {option.name: _option(given, option, base, file) for option in known}


def _option(given: Mapping[str, Any], option: Option, base: Path, file: Path | None) -> Any:
    place = f"options.{option.name}"
    value = given.get(option.name, option.default)
    if value is None:
        if option.required:
            raise InputError("is missing", file=file, place=place, remedy=option.help)
        return None
    if option.kind == "file":
        return _file(value, base, place, file)
    if option.kind == "files":
        return _files(value, base, place, file)
    if option.kind == "whole":
        return _whole({option.name: value}, option.name, file, least=option.least, place="options")
    if option.kind == "choice":
        return _choice({option.name: value}, option.name, option.choices, None, file, "options")
    if option.kind == "flag":
        if not isinstance(value, bool):
            raise InputError(f"{value!r} is not true or false", file=file, place=place, remedy=option.help)
        return value
    if not isinstance(value, Mapping):
        raise InputError("must be a mapping", file=file, place=place, remedy=option.help)
    return dict(value)
