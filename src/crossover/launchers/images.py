"""Images: brought to this machine before any GPU is held, with what they are set down."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.errors import CrossoverError

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

Say = Callable[[str], None]

_ASKED_PACKAGES = ("vllm", "sglang")
_QUESTION = (
    "import importlib.metadata as m, json\n"
    "def v(n):\n"
    "    try: return m.version(n)\n"
    "    except m.PackageNotFoundError: return None\n"
    f"print(json.dumps({{n: v(n) for n in {_ASKED_PACKAGES!r}}}))"
)
_VERSION_LABEL = "org.opencontainers.image.version"
_GIB = 2**30


def fetch(reference: str, say: Say) -> Mapping[str, Any]:
    """Makes sure that an image is on this machine.

    Args:
        reference: what a launcher will start: NAME@sha256:DIGEST or NAME:TAG for Docker and Podman; a .sif file or
            docker://NAME@DIGEST for Apptainer.
        say: called with lines of progress.

    Returns:
        image (the reference), id, digests (as the registry knows it), labels, size_bytes, engine_versions (of the
        packages in it, None for one that is not) and engine_version (of the one that is there, else by its label).

    Raises:
        CrossoverError: it cannot be had, or is not the one of that digest.
    """
    if reference.endswith(".sif"):
        return _file_facts(Path(reference))
    if "://" in reference:
        return _into_apptainers_cache(reference, say)
    from crossover.launchers.kinds.docker import connect

    client = connect()
    return _facts(client, _image(client, reference, say), reference)


def _image(client: DockerClient, reference: str, say: Say) -> Image:
    from docker.errors import ImageNotFound

    try:
        return client.images.get(reference)
    except ImageNotFound:
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
                raise CrossoverError(f"the image {reference} cannot be pulled: {event['error']}")
            progress.take(event)
    except DockerException as error:
        why = str(getattr(error, "explanation", None) or error).splitlines()[0][:300]
        raise CrossoverError(f"the image {reference} cannot be pulled: {why}") from None


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
        raise CrossoverError(f"the image {reference} on this machine has another digest: {', '.join(digests)}")
    labels = dict(image.labels or {})
    versions = _ask(client, image)
    known = [version for version in versions.values() if version]
    return {
        "image": reference,
        "id": image.id,
        "digests": digests,
        "labels": labels,
        "size_bytes": image.attrs.get("Size"),
        "engine_versions": versions,
        "engine_version": known[0] if known else labels.get(_VERSION_LABEL),
    }


def _ask(client: DockerClient, image: Image) -> dict[str, str | None]:
    """Asks the Python within the image for the versions of its engines; nothing is known where it has none."""
    from docker.errors import DockerException

    nothing: dict[str, str | None] = dict.fromkeys(_ASKED_PACKAGES)
    container = None
    try:
        container = client.containers.create(
            str(image.id),
            entrypoint=["python3"],
            command=["-c", _QUESTION],
            network_mode="none",
            cap_drop=["ALL"],
            labels={"crossover.question": "version"},
        )
        container.start()
        if container.wait(timeout=120)["StatusCode"] != 0:
            return nothing
        answer: dict[str, str | None] = json.loads(container.logs(stdout=True, stderr=False).splitlines()[-1])
        return answer
    except (DockerException, ValueError, LookupError, OSError):
        return nothing
    finally:
        if container is not None:
            with contextlib.suppress(DockerException):
                container.remove(force=True, v=True)


def _file_facts(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise CrossoverError(f"there is no image file {path}")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"image": path.name, "digests": [f"sha256:{digest}"], "size_bytes": path.stat().st_size}


def _into_apptainers_cache(reference: str, say: Say) -> Mapping[str, Any]:
    say(f"pulling {reference}")
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image.sif"
        command = ["apptainer", "pull", "--force", str(image), reference]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            raise CrossoverError("the command 'apptainer' is not there; install Apptainer") from None
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise CrossoverError(f"the image {reference} cannot be pulled: {why}")
        # The file goes; what `apptainer exec` needs stays in its own cache.
        return {**_file_facts(image), "image": reference}
