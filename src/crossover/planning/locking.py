"""Resolves the names of an experiment that can move, branches and image tags, and writes them down."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import yaml

from crossover.errors import CrossoverError
from crossover.experiment import Experiment, expand
from crossover.experiment.model import Variant
from crossover.planning.locks import COMMIT, DIGEST, Locks

CONTAINERS = frozenset({"docker", "apptainer", "gpustack"})
_HEADER = "# Written by `crossover lock`: what branches and tags pointed to. `crossover lock --update` looks again.\n"

CommitOf = Callable[[str, str, str], str]
DigestOf = Callable[[str], str]


@dataclass(frozen=True)
class Outcome:
    """What locking came to.

    Attributes:
        locks: everything that is resolved now, names that nothing asks for any more left out.
        news: one line for each name that was resolved or has moved.
        failures: one line for each name that could not be resolved.
    """

    locks: Locks
    news: tuple[str, ...]
    failures: tuple[str, ...]


def resolve(experiment: Experiment, known: Locks, commit_of: CommitOf, digest_of: DigestOf, update: bool) -> Outcome:
    """Returns the locks of an experiment, its retest items included.

    Args:
        known: resolutions so far, which stand unless `update`.
        commit_of: gives the commit for (hub, repository, revision).
        digest_of: gives `NAME@sha256:...` for an image's reference.
    """
    models = {name: (lambda wanted=wanted: commit_of(*wanted)) for name, wanted in _models(experiment)}
    images = {name: (lambda name=name: digest_of(name)) for name in _images(experiment)}
    news: list[str] = []
    failures: list[str] = []
    locked = [
        _each(asked, before, update, news, failures)
        for asked, before in ((models, known.models), (images, known.images))
    ]
    return Outcome(replace(known, models=locked[0], images=locked[1]), tuple(news), tuple(failures))


def _each(
    asked: Mapping[str, Callable[[], str]],
    before: Mapping[str, str],
    update: bool,
    news: list[str],
    failures: list[str],
) -> dict[str, str]:
    locked = {name: before[name] for name in asked if name in before}
    for name, ask in asked.items():
        if name in before and not update:
            continue
        try:
            found = ask()
        except CrossoverError as error:
            failures.append(str(error))
            continue
        if found != before.get(name):
            news.append(f"{name} -> {found}" + (f" (was {before[name]})" if name in before else ""))
        locked[name] = found
    return locked


def _models(experiment: Experiment) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yields the models of hubs whose commit is a name: the lock's name, and (hub, repository, revision)."""
    from crossover.hubs import hub_names

    for model in experiment.models.values():
        if model["hub"] in hub_names():
            name, revision = Locks.name_of(model)
            if not COMMIT.fullmatch(revision):
                yield name, (model["hub"], str(model.get("repo")), revision)


def _images(experiment: Experiment) -> Iterator[str]:
    """Yields the image references without a digest, each once."""
    variants: dict[str, Variant] = dict(expand(experiment, list(experiment.retest)).variants)
    seen = set()
    for variant in variants.values():
        image = variant.fields.get("image")
        if variant.launcher["kind"] in CONTAINERS and image and not DIGEST.fullmatch(image) and image not in seen:
            seen.add(image)
            yield str(image)


def write_locks(locks: Locks) -> None:
    """Writes a lock file in one step."""
    data = {"models": dict(sorted(locks.models.items())), "images": dict(sorted(locks.images.items()))}
    locks.file.parent.mkdir(parents=True, exist_ok=True)
    part = locks.file.with_name(f".{locks.file.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        part.write_text(_HEADER + yaml.safe_dump(data, sort_keys=False))
        part.replace(locks.file)
    finally:
        part.unlink(missing_ok=True)
