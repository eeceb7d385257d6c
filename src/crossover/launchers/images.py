"""Images: brought to this machine before any GPU is held, with what they are set down."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from crossover.launchers.base import LaunchError
from crossover.launchers.image_versions import QUESTION, version_facts
from crossover.launchers.pull_failures import pull_failure

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

Say = Callable[[str], None]

_GIB = 2**30
_SILENCE_S = 3600


def fetch(reference: str, say: Say) -> Mapping[str, Any]:
    """Makes sure that an image is with the daemon of Docker or Podman.

    Args:
        reference: what the launcher will start: NAME@sha256:DIGEST or NAME:TAG.
        say: called with lines of progress.

    Returns:
        image (the reference), id, digests (as the registry knows it), labels, size_bytes, engine_versions (of the
        packages in it, None for one that is not), engine_version (of the one that is there, else by its label) and
        engines (whose command is there; None where nothing in it could be asked).

    Raises:
        LaunchError: no daemon answers, it cannot be pulled (see `pull_failure`), is not the one of that digest, or is
            made for another processor.
    """
    from crossover.launchers.docker_api import API_ERRORS, connect, without_tag, words

    # A daemon says nothing for minutes while it checks or unpacks a layer of many GB; Podman says nothing at all.
    client = connect(timeout_s=_SILENCE_S)
    known = without_tag(reference)
    try:
        return {**_facts(client, _image(client, known, say), known), "image": reference}
    except API_ERRORS as error:
        raise LaunchError("not_pulled", f"the image {reference} cannot be had: {words(error)}") from None


def _image(client: DockerClient, reference: str, say: Say) -> Image:
    from docker.errors import NotFound

    try:
        return client.images.get(reference)
    except NotFound:  # Podman does not say it in the words that the SDK makes an ImageNotFound of
        _pull(client, reference, say)
        return client.images.get(reference)


def _pull(client: DockerClient, reference: str, say: Say) -> None:
    from crossover.launchers.docker_api import API_ERRORS

    name, at, digest = reference.partition("@")
    tag = digest if at else (name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else "latest")
    repository = name if at or not name.endswith(f":{tag}") else name.removesuffix(f":{tag}")
    progress = _PullProgress(reference, say)
    try:
        for event in client.api.pull(repository, tag=tag, stream=True, decode=True):
            if "error" in event:
                raise pull_failure(reference, str(event["error"]))
            progress.take(event)
    except API_ERRORS as error:
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
            # A zero is left out.
            self._layers[str(event.get("id"))] = (int(detail.get("current") or 0), int(detail["total"]))
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
    _check_platform(client, image, reference)
    labels = (image.attrs.get("Config") or {}).get("Labels") or {}
    return {
        "image": reference,
        "id": image.id,
        "digests": digests,
        "size_bytes": image.attrs.get("Size"),
        **version_facts(labels, _ask(client, image)),
    }


def _check_platform(client: DockerClient, image: Image, reference: str) -> None:
    """Raises LaunchError for an image of another processor: a digest of one platform is pulled on any."""
    made_for, there = image.attrs.get("Architecture"), client.version().get("Arch")
    if made_for and there and made_for != there:
        told = f"the image {reference} is made for {made_for}, and the daemon's machine is {there}"
        raise LaunchError("wrong_platform", f"{told}; lock the digest over all platforms, or that of {there}")


def _ask(client: DockerClient, image: Image) -> str | None:
    """Asks the Python within the image which engines are there; None where it has none that answers."""
    from crossover.launchers.docker_api import API_ERRORS, READABLE_LOG

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
            log_config=READABLE_LOG,
            use_config_proxy=False,
        )
        container.start()
        if container.wait(timeout=120)["StatusCode"] != 0:
            return None
        return container.logs(stdout=True, stderr=False).decode()
    except (*API_ERRORS, LookupError, ValueError, OSError):
        return None
    finally:
        if container is not None:
            with contextlib.suppress(*API_ERRORS):
                container.remove(force=True, v=True)
