"""Images: brought to this machine before any GPU is held, with what they are set down."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from crossover.launchers.base import LaunchError
from crossover.launchers.image_versions import QUESTION, answered, version_facts
from crossover.launchers.pull_failures import pull_failure

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

Say = Callable[[str], None]

_GIB = 2**30


def fetch(reference: str, say: Say) -> Mapping[str, Any]:
    """Makes sure that an image is with the daemon of Docker or Podman.

    Args:
        reference: what the launcher will start: NAME@sha256:DIGEST or NAME:TAG.
        say: called with lines of progress.

    Returns:
        image (the reference), id, digests (as the registry knows it), labels, size_bytes, engine_versions (of the
        packages in it, None for one that is not) and engine_version (of the one that is there, else by its label).

    Raises:
        LaunchError: no daemon answers, it cannot be pulled (see `pull_failure`), or it is not the one of that digest.
    """
    from crossover.launchers.kinds.docker import connect

    client = connect()
    return _facts(client, _image(client, reference, say), reference)


def _image(client: DockerClient, reference: str, say: Say) -> Image:
    from docker.errors import NotFound

    try:
        return client.images.get(reference)
    except NotFound:  # Podman does not say it in the words that the SDK makes an ImageNotFound of
        _pull(client, reference, say)
        return client.images.get(reference)


def _pull(client: DockerClient, reference: str, say: Say) -> None:
    from docker.errors import DockerException

    name, at, digest = reference.partition("@")
    tag = digest if at else (name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else "latest")
    repository = name if at or not name.endswith(f":{tag}") else name.removesuffix(f":{tag}")
    progress = _PullProgress(reference, say)
    try:
        for event in client.api.pull(repository, tag=tag, stream=True, decode=True):
            if "error" in event:
                raise pull_failure(reference, str(event["error"]))
            progress.take(event)
    except DockerException as error:
        raise pull_failure(reference, str(getattr(error, "explanation", None) or error)) from None


class _PullProgress:
    """Adds up the layers of a pull and tells about once a second how far it is."""

    def __init__(self, reference: str, say: Say) -> None:
        self._reference, self._say = reference, say
        self._layers: dict[str, tuple[int, int]] = {}
        self._began = time.monotonic()
        self._told = -1.0

    def take(self, event: Mapping[str, Any]) -> None:
        """Takes one event of the daemon's stream."""
        detail = event.get("progressDetail") or {}
        if event.get("status") == "Downloading" and detail.get("total"):
            self._layers[event["id"]] = (int(detail["current"]), int(detail["total"]))
        elif event.get("status") in ("Download complete", "Pull complete") and event.get("id") in self._layers:
            total = self._layers[event["id"]][1]
            self._layers[event["id"]] = (total, total)
        now = time.monotonic()
        if now - self._told >= 1.0:
            self._told = now
            self._say(self.text(now - self._began))

    def text(self, elapsed_s: float) -> str:
        """Returns the line for people; totals grow while the daemon still discovers layers."""
        done, total = (sum(layer[part] for layer in self._layers.values()) for part in (0, 1))
        if not total:
            return f"pulling {self._reference}"
        rate = done / max(elapsed_s, 1e-9)
        left = f", {(total - done) / rate:.0f} s left" if rate else ""
        return f"pulling {self._reference}: {done / _GIB:.2f} of {total / _GIB:.2f} GiB, {rate / 2**20:.0f} MiB/s{left}"


def _facts(client: DockerClient, image: Image, reference: str) -> Mapping[str, Any]:
    digests = list(image.attrs.get("RepoDigests") or ())
    wanted = reference.partition("@")[2]
    if wanted and digests and not any(digest.endswith(wanted) for digest in digests):
        told = f"the image {reference} on this machine has another digest: {', '.join(digests)}"
        raise LaunchError("digest_mismatch", told)
    return {
        "image": reference,
        "id": image.id,
        "digests": digests,
        "size_bytes": image.attrs.get("Size"),
        **version_facts(dict(image.labels or {}), _ask(client, image)),
    }


def _ask(client: DockerClient, image: Image) -> dict[str, str | None]:
    """Asks the Python within the image for the versions of its engines; nothing is known where it has none."""
    from docker.errors import DockerException

    container = None
    try:
        container = client.containers.create(
            str(image.id),
            entrypoint=["python3"],
            command=["-c", QUESTION],
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            labels={"crossover.question": "version"},
        )
        container.start()
        if container.wait(timeout=120)["StatusCode"] != 0:
            return answered(None)
        return answered(container.logs(stdout=True, stderr=False).decode())
    except (DockerException, LookupError, ValueError, OSError):
        return answered(None)
    finally:
        if container is not None:
            with contextlib.suppress(DockerException):
                container.remove(force=True, v=True)
