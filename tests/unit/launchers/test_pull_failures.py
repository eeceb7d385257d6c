"""Classes of failed pulls, from the words of Docker 20.10, Podman 4.3 and Apptainer 1.4."""

from __future__ import annotations

import pytest

from crossover.launchers.pull_failures import pull_failure

DAEMON = "Error response from daemon: "
PODMAN = 'initializing source docker://r/a/b@sha256:1: pinging container registry r: Get "http://r/v2/": '


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("write /var/lib/docker/tmp/GetImageBlob1: no space left on device", "disk_full"),
        # Podman names the layer as not found too; the disk is what counts.
        ("copying layer sha256:404: file not found: write x: no space left on device", "disk_full"),
        (f"{DAEMON}filesystem layer verification failed for digest sha256:2", "digest_mismatch"),
        (f"{DAEMON}manifest verification failed for digest sha256:2", "digest_mismatch"),
        ("Digest did not match, expected sha256:2, got sha256:3", "digest_mismatch"),
        (f"{PODMAN}dial tcp 127.0.0.1:9: connect: connection refused", "registry_unreachable"),
        (f'{DAEMON}Get "https://r/v2/": dial tcp: lookup r: no such host', "registry_unreachable"),
        (f'{DAEMON}Get "https://r/v2/": http: server gave HTTP response to HTTPS client', "registry_unreachable"),
        (f"{DAEMON}received unexpected HTTP status: 503 Service Unavailable", "registry_unreachable"),
        (f"{DAEMON}pull access denied for a/b, repository does not exist or may require login", "not_authorised"),
        ("unexpected status from HEAD request to https://r/v2/a/manifests/b: 401 Unauthorized", "not_authorised"),
        (f"{DAEMON}manifest for a/b:v9 not found: manifest unknown: manifest unknown", "image_missing"),
        ("reading manifest v9 in r/a/b: name unknown: repository name not known to registry", "image_missing"),
        (f"{DAEMON}no matching manifest for linux/arm64/v8 in the manifest list entries", "wrong_platform"),
        ("something new", "not_pulled"),
    ],
)
def test_the_class_of_a_failure(said, kind):
    assert pull_failure("r/a/b", said).kind == kind


def test_the_error_is_one_line_with_the_runtimes_own_words():
    error = str(pull_failure("r/a/b", "x" * 400 + "\nwrite y: no space left on device"))
    assert error.startswith("the image r/a/b cannot be pulled: the disk of the container runtime is full")
    assert error.endswith("write y: no space left on device)")
    assert "\n" not in error
    assert len(error) < 500
