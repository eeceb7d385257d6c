"""Why an image could not be pulled, from the words of Docker, Podman or Apptainer."""

from __future__ import annotations

from crossover.launchers.base import LaunchError
from crossover.launchers.failure_classes import class_of, failure_classes, in_one_line

_CLASSES = failure_classes(
    (
        (
            "disk_full",
            r"no space left on device|disk quota exceeded",
            "the disk of the container runtime is full; free some of it, or move its storage (Apptainer's are "
            "APPTAINER_CACHEDIR and APPTAINER_TMPDIR)",
        ),
        (
            "digest_mismatch",
            r"verification failed|digest did not match|does not match|unexpected (?:commit )?digest|digest mismatch"
            r"|digest .* is not|invalid checksum",
            "what came is not what its digest says, so the registry or the way to it is damaged; nothing of it is used",
        ),
        (
            "rate_limited",
            r"toomanyrequests|too many requests|pull rate limit|(?<!\d)429(?!\d)",
            "its registry limits how much may be pulled; wait, log in (`docker login`), or pull from a mirror",
        ),
        (
            "registry_unreachable",
            r"connection (?:refused|reset)|no such host|i/o timeout|timed? ?out|deadline exceeded|unreachable|\bEOF\b"
            r"|HTTP response to HTTPS client|x509|certificate|name resolution|(?<!\d)50[234](?!\d)",
            "its registry does not answer; check the network, the proxy and the name",
        ),
        (
            "not_authorised",
            r"denied|unauthorized|authentication required|no basic auth|(?<!\d)40[13](?!\d)",
            "its registry does not have it, or wants a login (`docker login`)",
        ),
        (
            "image_missing",
            r"manifest unknown|name unknown|not found|no such (?:image|manifest)|does not exist",
            "its registry does not have it; look at the name and the digest",
        ),
        (
            "wrong_platform",
            r"no matching manifest|no image found in (?:image index|manifest list)|choosing image instance",
            "there is none for this machine's processor",
        ),
    )
)


def pull_failure(reference: str, said: str) -> LaunchError:
    """Returns the error of a failed pull.

    Args:
        reference: the image.
        said: what the runtime said, of any length.

    Returns:
        an error whose kind is disk_full, digest_mismatch, rate_limited, registry_unreachable, not_authorised,
        image_missing, wrong_platform or not_pulled, in one line with the runtime's own words.
    """
    found = class_of(said, _CLASSES)
    if found is None:
        return LaunchError("not_pulled", f"the image {reference} cannot be pulled: {in_one_line(said)}")
    return LaunchError(found.kind, f"the image {reference} cannot be pulled: {found.told} ({in_one_line(said)})")
