"""The plan: which entries an experiment wants, which the store lacks, and the jobs that make them.

A job's identity is the set of entries that it makes. Its receipt is what Snakemake sees; the entries are in the
store, which Snakemake does not own. A receipt counts only while all its entries are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.experiment.expand import Cell, Expansion
from crossover.experiment.model import Experiment, Variant
from crossover.planning import intent
from crossover.planning.locks import Locks, read_locks
from crossover.recipes import EntryState, Store, canonical_json, key_of, source_digest
from crossover.recipes.canonical import digest_of_file

PARSE_SOURCE = (
    "crossover.analysis", "crossover.logs", "crossover.configuration", "crossover.confounds.names",
    "crossover.redaction",
)  # fmt: skip
METRICS_SOURCE = (
    "crossover.analysis", "crossover.metrics", "crossover.audits", "crossover.confounds.names",
    "crossover.client.interpretation", "crossover.client.stream", "crossover.client.fields",
    "crossover.client.tokens", "crossover.client.findings", "crossover.client.fitness", "crossover.client.outcome",
    "crossover.client.tables", "crossover.client.reads", "crossover.client.framing", "crossover.client.spool",
    "crossover.logs.phases", "crossover.logs.lines",
)  # fmt: skip
REPORT_SOURCE = (
    "crossover.report", "crossover.attribution", "crossover.statistics", "crossover.confounds"
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One entry that needs no GPU: weights, image, client or prompts.

    Attributes:
        detail: what the step needs besides its recipe and may differ between machines (paths).
        needs: entries that must be there first, as (kind, key).
    """

    kind: str
    key: str
    recipe: Mapping[str, Any]
    detail: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PlannedCell:
    """A cell with the recipe of its run entry and the keys of what is made from it."""

    cell: Cell
    recipe: Mapping[str, Any]
    run_key: str
    report_recipe: Mapping[str, Any]
    metrics_recipe: Mapping[str, Any]

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """What measuring takes besides the server: prompts, and the environments of other clients."""
        clients = self.recipe.get("clients", {}).values()
        return (
            ("prompts", str(self.recipe["prompts"])),
            *((kind, keys[kind]) for keys in clients for kind in ("client", "prompts")),
        )

    @cached_property
    def engine_report_key(self) -> str:
        return key_of(self.report_recipe)

    @cached_property
    def metrics_key(self) -> str:
        return key_of(self.metrics_recipe)


@dataclass(frozen=True)
class Deployment:
    """All cells that want the same server, brought up once.

    Attributes:
        server_key: digest of `server`, which is part of each cell's run recipe.
        variants: the names under which the server is known; the first gives the launch details.
        needs: what the server itself needs: image, weights, warm-up prompts.
        warmup: keys of the warm-up prompts, in order.
    """

    server_key: str
    server: Mapping[str, Any]
    variants: tuple[Variant, ...]
    cells: tuple[PlannedCell, ...]
    needs: tuple[tuple[str, str], ...]
    warmup: tuple[str, ...]

    @property
    def label(self) -> str:
        return "+".join(variant.name for variant in self.variants)

    @cached_property
    def key(self) -> str:
        """Digest over the server and the cells wanted of it: another set of cells is another job."""
        return key_of({"server": self.server_key, "cells": sorted(cell.run_key for cell in self.cells)})

    @cached_property
    def parse_key(self) -> str:
        return key_of({"job": "parse", "entries": sorted(cell.engine_report_key for cell in self.cells)})

    @cached_property
    def metrics_key(self) -> str:
        return key_of({"job": "metrics", "entries": sorted(cell.metrics_key for cell in self.cells)})


@dataclass(frozen=True)
class Plan:
    """Everything wanted, and how it stands in one store."""

    experiment: Experiment
    expansion: Expansion
    steps: Mapping[tuple[str, str], Step]
    deployments: tuple[Deployment, ...]
    locks: Locks
    store: Store

    @cached_property
    def _states(self) -> dict[tuple[str, str], EntryState]:
        return {}

    def state(self, kind: str, key: str) -> EntryState:
        """Returns the state of an entry, looked at once a plan."""
        if (kind, key) not in self._states:
            self._states[kind, key] = self.store.state(kind, key)
        return self._states[kind, key]

    def has(self, kind: str, key: str) -> bool:
        return self.state(kind, key) is EntryState.PRESENT

    def missing(self, deployment: Deployment) -> tuple[PlannedCell, ...]:
        """Returns the cells of a deployment that the store lacks."""
        return tuple(cell for cell in deployment.cells if not self.has("run", cell.run_key))

    def needs(self, deployment: Deployment) -> tuple[tuple[str, str], ...]:
        """Returns what must be there before a deployment can measure what it lacks; nothing where it lacks nothing."""
        missing = self.missing(deployment)
        wanted = {need for cell in missing for need in cell.needs}
        # Other clients read the tokenizer that their prompts were counted by.
        measured_by_others = [cell for cell in missing if "clients" in cell.recipe]
        wanted |= {more for cell in measured_by_others for need in cell.needs for more in self.steps[need].needs}
        return (*deployment.needs, *sorted(wanted)) if missing else ()

    @cached_property
    def wanted_steps(self) -> frozenset[tuple[str, str]]:
        """The steps that a deployment with missing cells needs, directly or not."""
        wanted: set[tuple[str, str]] = set()
        pending = [need for deployment in self.deployments for need in self.needs(deployment)]
        while pending:
            need = pending.pop()
            if need not in wanted:
                wanted.add(need)
                pending += self.steps[need].needs
        return frozenset(wanted)

    @cached_property
    def prompts_key(self) -> str:
        """Digest over all prompts of the plan: one job builds those that are missing."""
        return key_of({"job": "prompts", "entries": sorted(key for kind, key in self.steps if kind == "prompts")})

    @cached_property
    def missing_steps(self) -> tuple[Step, ...]:
        """The wanted steps that the store lacks."""
        return tuple(self.steps[need] for need in sorted(self.wanted_steps) if not self.has(*need))

    @cached_property
    def report_key(self) -> str:
        """Digest of all that the report shows, labels left out: renaming a variant reruns nothing."""
        published = self.published_file
        return key_of(
            {
                "step": "report",
                "source": source_digest(*REPORT_SOURCE),
                "cells": [
                    [cell.metrics_key, list(cell.cell.items)]
                    for deployment in sorted(self.deployments, key=lambda one: one.server_key)
                    for cell in sorted(deployment.cells, key=lambda one: one.run_key)
                ],
                "published": digest_of_file(published) if published else None,
                "items": [[item.id, item.hypothesis, dict(item.decision)] for item in self.expansion.items],
                "diagnoses": list(self.expansion.diagnoses),
            }
        )

    @property
    def published_file(self) -> Path | None:
        name = self.experiment.settings.get("published")
        return (self.experiment.file.parent / name).resolve() if name else None


def build_plan(experiment: Experiment, expansion: Expansion, store: Store) -> Plan:
    """Returns the plan of an expanded experiment against a store.

    Raises:
        InputError: a workload that its dataset refuses, or weights that are not where the experiment says.
    """
    locks = read_locks(experiment)
    builder = _Builder(experiment, expansion, locks)
    deployments = builder.deployments()
    return Plan(experiment, expansion, builder.steps, deployments, locks, store)


class _Builder:
    """Collects steps while cells are turned into deployments; each recipe is worked out once."""

    def __init__(self, experiment: Experiment, expansion: Expansion, locks: Locks) -> None:
        self.experiment, self.expansion, self.locks = experiment, expansion, locks
        self.steps: dict[tuple[str, str], Step] = {}
        self._prompts: dict[Any, str] = {}
        self._models: dict[str, str | None] = {}

    def deployments(self) -> tuple[Deployment, ...]:
        by_server: dict[str, list[tuple[Cell, Mapping[str, Any], tuple[tuple[str, str], ...]]]] = {}
        servers: dict[str, tuple[str, Mapping[str, Any], tuple[tuple[str, str], ...]]] = {}
        for cell in self.expansion.cells:
            if cell.variant.name not in servers:
                servers[cell.variant.name] = self._server(cell.variant)
            key, recipe, needs = servers[cell.variant.name]
            by_server.setdefault(key, []).append((cell, recipe, needs))
        for group in by_server.values():
            self._refuse_two_servers([cell.variant for cell, _, _ in group])
        return tuple(self._deployment(key, group) for key, group in by_server.items())

    def _refuse_two_servers(self, variants: list[Variant]) -> None:
        """Refuses running servers that differ in their address alone: one would answer for the other."""
        first = variants[0]
        for other in variants:
            if other.launcher.get("url") != first.launcher.get("url"):
                raise InputError(
                    f"it differs from `{first.name}` in nothing but its `url`, which is part of no key",
                    file=self.experiment.file,
                    place=f"variants.{other.name}",
                    remedy="give what differs: `version`, `image`, `arguments` or `environment`",
                )

    def _deployment(
        self, server_key: str, group: list[tuple[Cell, Mapping[str, Any], tuple[tuple[str, str], ...]]]
    ) -> Deployment:
        first, server, needs = group[0]
        cells = {planned.run_key: planned for planned in (self._cell(cell, server_key) for cell, _, _ in group)}
        warmup = tuple(self._prompt_key(spec, first) for spec in intent.warmup_specs(first, self.experiment))
        variants = {cell.variant.name: cell.variant for cell, _, _ in group}
        return Deployment(
            server_key,
            server,
            tuple(variants.values()),
            tuple(cells.values()),
            tuple(dict.fromkeys([*needs, *(("prompts", key) for key in warmup)])),
            warmup,
        )

    def _server(self, variant: Variant) -> tuple[str, Mapping[str, Any], tuple[tuple[str, str], ...]]:
        image = intent.image_recipe(variant, self.locks)
        needs = [self._add("image", image, {"variant": dict(variant.fields)})]
        keys = {}
        for role in ("model", "draft"):
            keys[role] = self._model(variant.fields.get(role))
            if keys[role]:
                needs.append(("weights", str(keys[role])))
        recipe = intent.server_recipe(variant, self.experiment, image, keys["model"], keys["draft"])
        return key_of(recipe), recipe, tuple(needs)

    def _model(self, name: str | None) -> str | None:
        if name is None:
            return None
        if name not in self._models:
            model = self.experiment.models[name]
            recipe = intent.weights_recipe(model, self.experiment.file, self.locks)
            detail = dict(model)
            if model["hub"] == "local":
                detail["path"] = str(intent.local_folder(model, self.experiment.file))
            self._models[name] = self._add("weights", recipe, detail)[1] if recipe else None
        return self._models[name]

    def _tokenizer(self, name: str | None) -> str | None:
        """Returns the key of the weights entry whose tokenizer counts the prompts of a model."""
        key = self._model(name)
        if name is None or key is None:
            return None
        model = self.experiment.models[name]
        recipe = intent.tokenizer_recipe(model, self.experiment.file, self.locks)
        assert recipe is not None  # as the model has weights
        return self._add("weights", recipe, self.steps["weights", key].detail)[1]

    def _cell(self, cell: Cell, server_key: str) -> PlannedCell:
        prompts_key = self._prompt_key(intent.prompts_spec(cell, self.experiment), cell)
        clients = {name: self._client(name, cell) for name in intent.clients(cell, self.experiment)}
        recipe = intent.run_recipe(cell, self.experiment, server_key, prompts_key, clients)
        run_key = key_of(recipe)
        report = {"step": "parse", "source": source_digest(*PARSE_SOURCE), "run": run_key}
        goodput = cell.workload.goodput
        metrics = {
            "step": "metrics",
            "source": source_digest(*METRICS_SOURCE),
            "run": run_key,
            "engine_report": key_of(report),
            "metrics": dict(self.expansion.metrics),
            "goodput": dict(goodput) if goodput else None,
        }
        return PlannedCell(cell, recipe, run_key, report, metrics)

    def _client(self, name: str, cell: Cell) -> dict[str, str]:
        """Returns the keys of what another client needs for a cell."""
        prompts = self._prompt_key(intent.prompts_spec(cell, self.experiment, name), cell)
        return {"client": self._add("client", intent.client_recipe(name), {})[1], "prompts": prompts}

    def _prompt_key(self, spec: Mapping[str, Any], cell: Cell) -> str:
        words = self.experiment.settings["tokenizer"] == "words"
        counts = None if words else self._tokenizer(cell.variant.fields.get("model"))
        identity = (canonical_json(spec), counts)
        if identity not in self._prompts:
            tokenizer: dict[str, Any] = {"kind": "weights", "key": counts} if counts else {"kind": "words"}
            if self.experiment.settings["server_adds_tokens"]:
                tokenizer["server_adds"] = self.experiment.settings["server_adds_tokens"]
            recipe = intent.prompts_recipe(spec, tokenizer, self.experiment.file)
            needs = (("weights", counts),) if counts else ()
            base_dir = str(self.experiment.file.parent.resolve())
            detail = {"spec": dict(spec), "base_dir": base_dir}
            self._prompts[identity] = self._add("prompts", recipe, detail, needs)[1]
        return self._prompts[identity]

    def _add(
        self,
        kind: str,
        recipe: Mapping[str, Any],
        detail: Mapping[str, Any],
        needs: Iterable[tuple[str, str]] = (),
    ) -> tuple[str, str]:
        key = key_of(recipe)
        self.steps.setdefault((kind, key), Step(kind, key, recipe, detail, tuple(needs)))
        return kind, key
