"""Python environments for what cannot share the pipeline's own: engines on the CPU and load-test clients of
others.

Each is defined by a folder under `envs/` and installed under `.envs/`, once for each state of its definition.
May import `crossover.errors` alone.
"""

from crossover.environments.definition import EnvironmentDefinition, find_definition, load_definition
from crossover.environments.install import InstalledEnvironment, ensure, installed

__all__ = [
    "EnvironmentDefinition",
    "InstalledEnvironment",
    "ensure",
    "find_definition",
    "installed",
    "load_definition",
]
