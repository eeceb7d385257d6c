"""What mutable names (tags, branches) were resolved to: config/locks/EXPERIMENT.lock.yaml.

The file is written by `crossover lock`; planning only reads it. A name that is not resolved yet gets a provisional
key, which is enough to price a plan, and an error when the step itself runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossover.experiment.model import Experiment, Variant
from crossover.experiment.yaml_files import read_yaml

COMMIT = re.compile(r"[0-9a-f]{40}")
DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Locks:
    """Resolved names: `models` maps `HUB:REPO@REVISION` to a commit, `images` a reference to `NAME@sha256:...`."""

    file: Path
    models: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def name_of(model: Mapping[str, Any]) -> tuple[str, str]:
        """Returns `HUB:REPO@REVISION` of a hub model, and the revision: the hub's default where none is given."""
        revision = str(model.get("commit", "main" if model["hub"] == "huggingface" else "master"))
        return f"{model['hub']}:{model.get('repo')}@{revision}", revision

    def commit(self, model: Mapping[str, Any]) -> str | dict[str, str]:
        """Returns the commit of a hub model, or `{"unresolved": name}`."""
        name, wanted = self.name_of(model)
        if COMMIT.fullmatch(wanted):
            return wanted
        return self.models.get(name) or {"unresolved": name}

    def image(self, variant: Variant) -> str | dict[str, str]:
        """Returns the image of a variant by digest, or `{"unresolved": name}`."""
        wanted = str(variant.fields.get("image", ""))
        if DIGEST.fullmatch(wanted):
            return wanted
        return self.images.get(wanted) or {"unresolved": wanted}


def lock_file(experiment: Experiment) -> Path:
    """Returns the place of an experiment's lock: config/locks/ beside its folder, else beside the file."""
    beside = experiment.file.parent.parent / "locks"
    folder = beside if beside.is_dir() else experiment.file.parent
    return folder / f"{experiment.name}.lock.yaml"


def read_locks(experiment: Experiment) -> Locks:
    """Returns the locks of an experiment; empty where no file is there."""
    file = lock_file(experiment)
    data = read_yaml(file) if file.exists() else None
    data = data or {}
    return Locks(file, data.get("models", {}), data.get("images", {}))
