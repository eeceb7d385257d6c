"""The recipes of the expensive steps: what determines weights, images, prompts and runs.

Each function returns plain data for `crossover.recipes.key_of`. Nothing observed, no path, no host and no label
may enter.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.experiment.expand import Cell
from crossover.experiment.model import Experiment, Variant, Workload
from crossover.planning.locks import Locks
from crossover.recipes import canonical_json, key_of

# Hand-kept: raised only when what the step measures or makes changes.
RUN_VERSION = 1
WEIGHTS_VERSION = 1
IMAGE_VERSION = 1
CLIENT_VERSION = 1
# Policies under which a cell's prompts may be sent again: the cache is emptied first, or nobody minds.
SENT_AGAIN = frozenset({"reset", "none"})
# Launcher options that change where or how long, but not what is measured.
OPERATIONAL_OPTIONS = frozenset(
    {"url", "api_key_env", "server", "token_env", "host", "startup_timeout_s", "stop_grace_s", "mounts"}
    | {"telemetry_interval_s", "cluster"}
)


def weights_recipe(model: Mapping[str, Any], experiment_file: Path, locks: Locks) -> dict[str, Any] | None:
    """Returns the recipe of a model's weights, or None where the server brings them itself."""
    hub = model["hub"]
    if hub == "none":
        return None
    recipe: dict[str, Any] = {"step": "weights", "version": WEIGHTS_VERSION, "hub": hub}
    if hub == "generated":
        from crossover import models

        return recipe | models.recipe(models.TinyModel(**model.get("generator", {})))
    if hub == "local":
        return recipe | {"fingerprint": folder_fingerprint(local_folder(model, experiment_file))}
    return recipe | {"repo": model.get("repo"), "commit": locks.commit(model)}


def tokenizer_recipe(model: Mapping[str, Any], experiment_file: Path, locks: Locks) -> dict[str, Any] | None:
    """Returns the recipe of the weights entry that counts a model's prompts: of a hub the tokenizer's files alone,
    so that prompts are built before 600 GB have come."""
    recipe = weights_recipe(model, experiment_file, locks)
    return recipe | {"part": "tokenizer"} if recipe and "commit" in recipe else recipe


def local_folder(model: Mapping[str, Any], experiment_file: Path) -> Path:
    """Returns the folder of a local model, relative paths being relative to the experiment file."""
    return (experiment_file.parent / str(model.get("path", "."))).resolve()


def folder_fingerprint(folder: Path) -> str:
    """Returns a digest of the content of a local folder. The first time all of it is read; afterwards a look at each
    file is enough, so that planning stays quick.

    Raises:
        InputError: there is no such folder, or it is empty.
    """
    from crossover import hubs

    return hubs.fingerprint(folder, lambda line: print(line, file=sys.stderr))


def image_recipe(variant: Variant, locks: Locks) -> dict[str, Any]:
    """Returns the recipe of what a variant's server is started from: image, environment or simulator."""
    kind = variant.launcher["kind"]
    recipe = {"step": "image", "version": IMAGE_VERSION, "engine": variant.engine, "launcher": kind}
    recipe |= {"engine_version": variant.fields["version"]} if "version" in variant.fields else {}
    return recipe | _IMAGE_IDENTITIES[kind](variant, locks)


def _simulator(variant: Variant, locks: Locks) -> dict[str, Any]:
    from crossover.simulator import SIMULATOR_VERSION

    return {"simulator": SIMULATOR_VERSION}


def _environment(variant: Variant, locks: Locks) -> dict[str, Any]:
    from crossover.environments import find_definition

    if "environment" in variant.launcher:
        return {"environment": find_definition(str(variant.launcher["environment"])).digest}
    return {}


def _container(variant: Variant, locks: Locks) -> dict[str, Any]:
    return {"image": locks.image(variant)}


def _declared(variant: Variant, locks: Locks) -> dict[str, Any]:
    return {"image": variant.fields.get("image")}


_IMAGE_IDENTITIES = {
    "simulated": _simulator,
    "process": _environment,
    "docker": _container,
    "apptainer": _container,
    "gpustack": _container,
    "external": _declared,
}


def clients(cell: Cell, experiment: Experiment) -> tuple[str, ...]:
    """Returns the other clients that measure a cell: those of its workload, else the experiment's.

    Raises:
        InputError: a load that other clients cannot give.
    """
    workload = cell.workload
    names = workload.clients if workload.clients is not None else tuple(experiment.settings["clients"])
    if names:
        _check_load(workload, experiment)
    return names


def _check_load(workload: Workload, experiment: Experiment) -> None:
    faults = {
        "`duration_s`": workload.duration_s is not None,
        "`arrivals: fixed`": workload.rate_per_s is not None and workload.arrivals != "poisson",
        "`form: token_ids`": workload.form != "text",
    }
    for what, given in faults.items():
        if given:
            raise InputError(
                f"{what} of {workload.label} is nothing that other clients can do",
                file=experiment.file,
                place="clients",
                remedy="take it away, or give that workload `clients: []`",
            )


def client_recipe(name: str) -> dict[str, Any]:
    """Returns the recipe of a client's environment."""
    from crossover.environments import find_definition
    from crossover.peers import TOOLS

    environment = find_definition(str(TOOLS[name].environment)).digest
    return {"step": "client", "version": CLIENT_VERSION, "client": name, "environment": environment}


def prompts_spec(cell: Cell, experiment: Experiment, client: str | None = None) -> dict[str, Any]:
    """Returns the specification that `crossover.workloads` builds a cell's prompts from, without its tokenizer.

    The seed is derived from the point of load and the repeat, not from the variant: variants get the same prompts,
    and no two cells of one server share any. Another client gets the same too where they may be sent again
    (`SENT_AGAIN`), else prompts of its own, of the same kind and lengths.
    """
    workload = cell.workload
    point = [
        experiment.settings["seed"], workload.dataset, workload.input_tokens, workload.concurrency,
        workload.rate_per_s, workload.requests, workload.options, cell.repeat,
    ]  # fmt: skip
    if client is not None and experiment.settings["isolation"] not in SENT_AGAIN:
        point.append(client)
    return {
        "dataset": workload.dataset,
        "input_tokens": workload.input_tokens,
        "output_tokens": workload.output_tokens,
        "requests": workload.requests,
        "seed": _seed(point),
        "form": workload.form,
        "options": dict(workload.options),
        "purpose": "measure",
    }


def warmup_specs(cell: Cell, experiment: Experiment) -> list[dict[str, Any]]:
    """Returns one prompts specification for each warm-up shape of a cell's variant."""
    shapes = warmup(cell.variant, experiment)["shapes"]
    return [
        {
            "dataset": "random",
            "input_tokens": shape["input_tokens"],
            "output_tokens": shape["output_tokens"],
            "requests": shape.get("concurrency", 1),
            "seed": _seed([experiment.settings["seed"], "warmup", number, shape]),
            "form": "text",
            "options": {},
            "purpose": "warmup",
        }
        for number, shape in enumerate(shapes)
    ]


def warmup(variant: Variant, experiment: Experiment) -> Mapping[str, Any]:
    """Returns the warm-up of a variant: its own, else the experiment's."""
    chosen: Mapping[str, Any] = {"shapes": [], **variant.fields.get("warmup", experiment.settings["warmup"])}
    return chosen


def _seed(parts: list[Any]) -> int:
    return int.from_bytes(hashlib.sha256(canonical_json(parts).encode()).digest()[:6])


def prompts_recipe(spec: Mapping[str, Any], tokenizer: Mapping[str, Any], experiment_file: Path) -> dict[str, Any]:
    """Returns the recipe of a prompts entry: the specification with files replaced by their digests.

    Args:
        spec: what `prompts_spec` or `warmup_specs` gives.
        tokenizer: `{"kind": "words"}`, or `{"kind": "weights", "key": KEY}` for the tokenizer among a model's files.

    Raises:
        InputError: what the dataset refuses, with the experiment's file where the fault is in no other.
    """
    from crossover import workloads

    try:
        recipe = workloads.recipe({**spec, "tokenizer": {"kind": "words"}}, experiment_file.parent)
    except InputError as error:
        if error.file is not None:
            raise
        place = ".".join(part for part in ("workloads", error.place) if part)
        raise InputError(error.problem, file=experiment_file, place=place, remedy=error.remedy) from None
    return {"step": "prompts", **recipe, "tokenizer": dict(tokenizer)}


def server_recipe(
    variant: Variant,
    experiment: Experiment,
    image: Mapping[str, Any],
    model_key: str | None,
    draft_key: str | None,
) -> dict[str, Any]:
    """Returns the recipe of a running server, warm-up included: cells that share it share a deployment."""
    launcher = {name: value for name, value in variant.launcher.items() if name not in OPERATIONAL_OPTIONS}
    hardware = experiment.hardware
    recipe = {
        "engine": variant.engine,
        "image": key_of(image),
        "launcher": launcher,
        "model": model_key,
        "draft": draft_key,
        "served_model_name": served_model_name(variant, experiment),
        "arguments": dict(variant.arguments),
        "environment": dict(variant.environment),
        "warmup": dict(warmup(variant, experiment)),
        "hardware": {name: hardware.get(name) for name in ("gpu", "gpus", "visible_memory_gib_per_gpu")},
    }
    if experiment.settings["isolation"] == "restart":
        recipe["isolation"] = "restart"
    return recipe


def served_model_name(variant: Variant, experiment: Experiment) -> str:
    """Returns the name by which requests ask for the model."""
    model = variant.fields.get("model")
    declared = experiment.models.get(model, {}) if model else {}
    return str(variant.fields.get("served_model_name") or declared.get("repo") or model or variant.engine)


def run_recipe(
    cell: Cell,
    experiment: Experiment,
    server_key: str,
    prompts_key: str,
    clients: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """Returns the recipe of a run entry: one cell on one server.

    The server stands in it by its key; its recipe is in the entry's server.json.

    Args:
        clients: of each other client that measures the cell too, the keys of its `client` and `prompts` entries.
    """
    workload = cell.workload
    recipe = {
        "step": "run",
        "version": RUN_VERSION,
        "server": server_key,
        "prompts": prompts_key,
        "workload": {
            "dataset": workload.dataset,
            "input_tokens": workload.input_tokens,
            "output_tokens": workload.output_tokens,
            "concurrency": workload.concurrency,
            "rate_per_s": workload.rate_per_s,
            "arrivals": workload.arrivals if workload.rate_per_s is not None else None,
            "requests": workload.requests,
            "duration_s": workload.duration_s,
            "request_timeout_s": workload.request_timeout_s,
        },
        "api": experiment.settings["api"],
        "sampling": dict(experiment.settings["sampling"]),
        "isolation": experiment.settings["isolation"],
        "repeat": cell.repeat,
    }
    return recipe | {"clients": {name: dict(keys) for name, keys in clients.items()}} if clients else recipe
