"""Loads an experiment: finds the file, validates it, resolves inheritance, and applies retest items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.experiment.model import Experiment, RetestItem, Variant, Workload
from crossover.experiment.schemas import SCHEMA_DIR, check, suggestion
from crossover.experiment.secrets import refuse_secrets
from crossover.experiment.yaml_files import read_yaml

# The configuration of the working folder, else that of the checkout this package was installed from.
CONFIG_DIR = Path("config") if Path("config").is_dir() else SCHEMA_DIR.parents[1] / "config"
DEFAULTS: Mapping[str, Any] = {
    "models": {},
    "metrics": {"percentiles": [50, 90]},
    "diagnoses": [],
    "warmup": {"shapes": [{"input_tokens": 64, "output_tokens": 8, "concurrency": 1}]},
    "isolation": "disjoint",
    "clients": [],
    "repeats": 1,
    "seed": 0,
    "api": "chat",
    "sampling": {},
    "server_adds_tokens": 0,
}


def find_experiment(name: str | Path, config_dir: Path = CONFIG_DIR) -> Path:
    """Returns the file of an experiment given by path or by its name in config/experiments/."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return path
    file = config_dir / "experiments" / f"{name}.yaml"
    if not file.exists():
        known = [other.stem for other in sorted(file.parent.glob("*.yaml"))]
        raise InputError(f"no experiment `{name}`", file=file.parent, remedy=suggestion(str(name), known))
    return file


def load_experiment(name: str | Path, config_dir: Path = CONFIG_DIR) -> Experiment:
    """Returns the experiment of a file path or a name in config/experiments/.

    Raises:
        InputError: the file is wrong; the one line names file, place, fault and remedy.
    """
    file = find_experiment(name, config_dir)
    data = read_experiment(file)
    settings = {**DEFAULTS, **{key: value for key, value in data.items() if key not in _OWN_FIELDS}}
    settings["metrics"] = {**DEFAULTS["metrics"], **settings["metrics"]}
    variants = resolve_variants(data["variants"], file, config_dir)
    settings.setdefault("tokenizer", "words" if all(variant.simulated for variant in variants.values()) else "model")
    check_models(variants, settings["models"], file)
    _check_published(settings.get("published"), file)
    retest = load_retest(settings["retest_plan"], file, config_dir) if "retest_plan" in settings else {}
    workloads = tuple(parse_workloads(data["workloads"], variants, file, "workloads"))
    return Experiment(file.stem, file, data["title"], variants, workloads, settings, retest)


def _check_published(name: str | None, file: Path) -> None:
    if name is not None and not (file.parent / name).is_file():
        raise InputError(
            f"no file {name}",
            file=file,
            place="published",
            remedy="give a file of published figures, relative to the experiment file",
        )


_OWN_FIELDS = ("title", "variants", "workloads")


def read_experiment(file: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Returns the checked content of an experiment file, laid over that of the experiment it inherits from.

    The other experiment stands in the same folder, so that its relative paths hold. Mappings are merged, anything else
    is replaced; a null removes a top-level field or a variant.
    """
    data = read_yaml(file)
    parent = data.get("inherits") if isinstance(data, Mapping) else None
    if not isinstance(parent, str):
        check(data, "experiment", file)
        return dict(data)
    base_file = file.with_name(f"{parent}.yaml")
    if base_file in (file, *seen):
        raise InputError(
            "inheritance goes in a circle", file=file, place="inherits", remedy="let one of them stand alone"
        )
    if not base_file.exists():
        known = [other.stem for other in file.parent.glob("*.yaml") if other != file]
        raise InputError(
            f"no experiment `{parent}` in the same folder",
            file=file,
            place="inherits",
            remedy=suggestion(parent, known),
        )
    base = read_experiment(base_file, (*seen, file))
    merged = _overlay(base, {key: value for key, value in data.items() if key != "inherits"})
    merged = {key: value for key, value in merged.items() if value is not None}
    if isinstance(merged.get("variants"), Mapping):
        merged["variants"] = {name: fields for name, fields in merged["variants"].items() if fields is not None}
    check(merged, "experiment", file)
    return merged


def _overlay(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Merges mappings deeply and keeps nulls, which in a variant remove what it inherits itself."""
    merged = dict(base)
    for key, value in change.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _overlay(merged[key], value) if both else value
    return merged


def load_retest(name: str, experiment_file: Path, config_dir: Path = CONFIG_DIR) -> dict[int, RetestItem]:
    """Returns the items of a retest plan by their number."""
    candidates = [
        experiment_file.parent / f"{name}.yaml",
        experiment_file.parent.parent / "retest" / f"{name}.yaml",
        config_dir / "retest" / f"{name}.yaml",
    ]
    file = next((path for path in candidates if path.exists()), None)
    if file is None:
        known = [other.stem for folder in candidates[1:] for other in sorted(folder.parent.glob("*.yaml"))]
        raise InputError(
            f"no retest plan `{name}` in config/retest/",
            file=experiment_file,
            place="retest_plan",
            remedy=suggestion(name, list(dict.fromkeys(known))),
        )
    data = read_yaml(file)
    check(data, "retest", file)
    items: dict[int, RetestItem] = {}
    for item in data["items"]:
        if item["id"] in items:
            raise InputError(f"item {item['id']} stands twice", file=file, remedy="give each item its own number")
        items[item["id"]] = RetestItem(**item)
    return items


def resolve_variants(
    raw: Mapping[str, Mapping[str, Any]],
    file: Path,
    config_dir: Path,
    known: Mapping[str, Variant] | None = None,
    place: str = "variants",
) -> dict[str, Variant]:
    """Returns the variants with inheritance resolved.

    Args:
        raw: variants as written.
        known: resolved variants that may be inherited from besides those in `raw` and in config/engines/.
    """
    resolved = {}
    for name in raw:
        fields = _resolve(name, raw, file, config_dir, known or {}, (), place)
        for needed in ("engine", "launcher"):
            if needed not in fields:
                raise InputError(
                    f"`{needed}` is missing",
                    file=file,
                    place=f"{place}.{name}",
                    remedy="add it or inherit from a variant that has it",
                )
        if "kind" not in fields["launcher"]:
            raise InputError(
                "`kind` is missing",
                file=file,
                place=f"{place}.{name}.launcher",
                remedy="name a launcher: process, simulated, external, docker, apptainer or gpustack",
            )
        _check_launcher(fields, file, f"{place}.{name}")
        refuse_secrets(fields, file, f"{place}.{name}")
        resolved[name] = Variant(name, fields)
    return resolved


def _check_launcher(fields: Mapping[str, Any], file: Path, place: str) -> None:
    """Refuses what the launcher would only miss when the server is to be started."""
    kind = fields["launcher"]["kind"]
    if kind == "external" and not str(fields["launcher"].get("url")).startswith(("http://", "https://")):
        given = fields["launcher"].get("url")
        raise InputError(
            "`url` is missing" if given is None else f"{given!r} is no URL",
            file=file,
            place=f"{place}.launcher" + ("" if given is None else ".url"),
            remedy="give the address of the server, such as http://127.0.0.1:8000",
        )
    if kind in ("docker", "apptainer") and "image" not in fields:
        raise InputError(
            "`image` is missing",
            file=file,
            place=place,
            remedy=f"the launcher {kind} starts a container; name its image, such as vllm/vllm-openai:v0.32.0",
        )


def _resolve(
    name: str,
    raw: Mapping[str, Mapping[str, Any]],
    file: Path,
    config_dir: Path,
    known: Mapping[str, Variant],
    seen: tuple[str, ...],
    place: str,
) -> dict[str, Any]:
    if name in seen:
        raise InputError(
            f"inheritance goes in a circle: {' -> '.join([*seen, name])}",
            file=file,
            place=f"{place}.{seen[0]}.inherits",
            remedy="let one of them stand alone",
        )
    own = dict(raw[name])
    parent = own.pop("inherits", None)
    if parent is None:
        return _merge({}, own)
    if parent in raw and (parent != name or parent not in known):
        start = _resolve(parent, raw, file, config_dir, known, (*seen, name), place)
    elif parent in known:
        start = dict(known[parent].fields)
    else:
        start = _engine_file(parent, file, config_dir, list({*raw, *known}), (), f"{place}.{name}.inherits")
    return _merge(start, own)


def _engine_file(
    name: str, file: Path, config_dir: Path, variants: list[str], seen: tuple[str, ...], place: str
) -> dict[str, Any]:
    folders = [file.parent, file.parent.parent / "engines", config_dir / "engines"]
    path = next((folder / f"{name}.yaml" for folder in folders if (folder / f"{name}.yaml").exists()), None)
    if path is None:
        known = sorted({other.stem for folder in folders[1:] for other in folder.glob("*.yaml")} | {*variants})
        raise InputError(
            f"`{name}` is neither a variant nor a file in config/engines/",
            file=file,
            place=place,
            remedy=suggestion(name, known),
        )
    if name in seen:
        raise InputError(
            f"inheritance goes in a circle: {' -> '.join([*seen, name])}",
            file=path,
            place="inherits",
            remedy="let one of them stand alone",
        )
    data = read_yaml(path)
    check(data, "variant", path)
    parent = data.pop("inherits", None)
    if parent is None:
        return _merge({}, data)
    return _merge(_engine_file(parent, path, config_dir, [], (*seen, name), "inherits"), data)


def _merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Merges mappings deeply; a null in `change` removes the field, anything else replaces it."""
    merged = dict(base)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merge(merged[key], value)
        elif isinstance(value, Mapping):
            merged[key] = _merge({}, value)
        else:
            merged[key] = value
    return merged


def check_models(
    variants: Mapping[str, Variant], models: Mapping[str, Any], file: Path, place: str = "variants"
) -> None:
    for variant in variants.values():
        for role in ("model", "draft"):
            wanted = variant.fields.get(role)
            if wanted is not None and wanted not in models:
                raise InputError(
                    f"unknown model `{wanted}`",
                    file=file,
                    place=f"{place}.{variant.name}.{role}",
                    remedy=suggestion(wanted, list(models)),
                )


def parse_workloads(
    raw: Iterable[Mapping[str, Any]], variants: Mapping[str, Variant], file: Path, place: str
) -> Iterable[Workload]:
    """Yields the workloads with their lists multiplied out, in the order of the file."""
    for number, entry in enumerate(raw):
        where = f"{place}.{number}"
        if ("concurrency" in entry) == ("rate_per_s" in entry):
            raise InputError(
                "a workload needs either `concurrency` or `rate_per_s`",
                file=file,
                place=where,
                remedy="give one of the two",
            )
        if "rate_per_s" in entry and "requests" not in entry and "duration_s" not in entry:
            raise InputError("an open loop has no end", file=file, place=where, remedy="add `requests` or `duration_s`")
        if "concurrency" in entry and "duration_s" in entry and "requests" not in entry:
            raise InputError(
                "nothing says how many prompts `duration_s` may need",
                file=file,
                place=where,
                remedy="add `requests`, the most that may be sent in that time",
            )
        for name in entry.get("variants", ()):
            if name not in variants:
                raise InputError(
                    f"unknown variant `{name}`",
                    file=file,
                    place=f"{where}.variants",
                    remedy=suggestion(name, list(variants)),
                )
        for input_tokens in _each(entry.get("input_tokens")):
            for concurrency in _each(entry.get("concurrency")):
                yield _workload(entry, input_tokens, concurrency)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _workload(entry: Mapping[str, Any], input_tokens: int | None, concurrency: int | None) -> Workload:
    wanted = entry.get("variants")
    requests = entry.get("requests")
    if requests is None and "rate_per_s" in entry:
        requests = math.ceil(entry["rate_per_s"] * entry["duration_s"])
    return Workload(
        dataset=entry["dataset"],
        input_tokens=input_tokens,
        output_tokens=entry.get("output_tokens"),
        concurrency=concurrency,
        rate_per_s=entry.get("rate_per_s"),
        arrivals=entry.get("arrivals", "poisson"),
        requests=max(requests, concurrency or 0) if requests else concurrency,
        duration_s=entry.get("duration_s"),
        request_timeout_s=entry.get("request_timeout_s"),
        form=entry.get("form", "text"),
        options=entry.get("options", {}),
        goodput=entry.get("goodput"),
        clients=tuple(entry["clients"]) if "clients" in entry else None,
        variants=tuple(wanted) if wanted else None,
    )
