"""What an image's tag points to now, asked of its registry: through a Docker daemon, which knows mirrors and logins, or
without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossover.errors import CrossoverError
from crossover.planning.registry_api import tag_digest
from crossover.recipes.canonical import digest_of_file


def digest_of(reference: str, client: Any = None) -> str:
    """Returns `NAME@sha256:...` for a reference such as `vllm/vllm-openai:v0.27.1`, or for an image file (.sif).

    The digest is that of the whole image, over all its platforms, so that one lock serves every machine; of a file it
    is the file's.

    Args:
        client: a Docker client instead of that of the environment.

    Raises:
        CrossoverError: the registry cannot be asked or does not have it, or there is no such file.
    """
    if reference.endswith(".sif"):
        return f"{reference}@sha256:{_digest_of_image_file(Path(reference))}"
    reference = reference.removeprefix("docker://")
    import docker
    from docker.errors import APIError, DockerException

    try:
        found = (client or docker.from_env()).images.get_registry_data(reference).id
    except APIError as error:
        if error.status_code != 404:
            raise CrossoverError(f"{reference}: {_said(error)}") from error
        found = tag_digest(reference)  # Podman has no such request, and answers so to everything
    except DockerException:
        found = tag_digest(reference)
    return f"{_without_tag(reference)}@{found}"


def _digest_of_image_file(path: Path) -> str:
    if not path.is_file():
        raise CrossoverError(f"{path}: there is no such image file")
    return digest_of_file(path)


def _said(error: Any) -> str:
    said = " ".join(str(error.explanation or error).split())
    if error.status_code in (401, 403) or "denied" in said or "unauthorized" in said:
        return f"its registry does not have it, or wants a login (`docker login`): {said}"
    return f"its registry cannot be asked ({said}); check the network"


def _without_tag(reference: str) -> str:
    """Returns the name of an image: what follows the last colon is a tag, unless it holds a slash (a port)."""
    name, colon, tag = reference.rpartition(":")
    return name if colon and "/" not in tag else reference
