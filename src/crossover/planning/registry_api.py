"""What a tag points to, asked of the registry itself: for machines without a Docker daemon, and for Podman, whose API
cannot ask. Format: the OCI Distribution Specification 1.1 (`HEAD /v2/NAME/manifests/TAG`) and its bearer tokens."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

import httpx

from crossover.errors import CrossoverError

TIMEOUT_S = 30.0
# Lists over platforms first, so that the digest is that of the whole image.
_ACCEPT = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.index.v1",
        "docker.distribution.manifest.list.v2",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.v2",
    )
)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_LOOPBACK = re.compile(r"(localhost|127\.[\d.]+)(:\d+)?$")


def tag_digest(reference: str) -> str:
    """Returns `sha256:...` for a reference such as `vllm/vllm-openai:v0.27.1`, over all platforms.

    Credentials are those of `docker login`, where there are any.

    Raises:
        CrossoverError: the registry cannot be asked, wants a login, or does not have it.
    """
    from docker import auth

    name, tag = _split(reference)
    index, repository = auth.resolve_repository_name(name)
    hub = index == auth.INDEX_NAME
    if hub and "/" not in repository:
        repository = f"library/{repository}"
    host = f"index.{index}" if hub else index
    near = _LOOPBACK.match(host) is not None
    found = auth.load_config().resolve_authconfig(index) or {}
    headers = {"Accept": _ACCEPT}
    url = f"{'http' if near else 'https'}://{host}/v2/{repository}/manifests/{tag}"
    try:
        with httpx.Client(timeout=TIMEOUT_S, follow_redirects=True, trust_env=not near) as client:
            answer = client.head(url, headers=headers)
            if answer.status_code == 401:
                headers |= _authorisation(client, answer.headers.get("WWW-Authenticate", ""), found)
                answer = client.head(url, headers=headers)
            return _digest(client, url, headers, answer, reference)
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise CrossoverError(f"{reference}: its registry cannot be asked ({error}); check the network") from None


def _split(reference: str) -> tuple[str, str]:
    name, colon, tag = reference.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (reference, "latest")


def _authorisation(client: httpx.Client, challenge: str, account: Mapping[str, str]) -> dict[str, str]:
    """Returns the header that answers a registry's challenge: an anonymous token unless there is an account."""
    user, password = account.get("username"), account.get("password")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode() if user else None
    if challenge.lower().startswith("basic"):
        return {"Authorization": f"Basic {basic}"} if basic else {}
    asked = dict(_CHALLENGE.findall(challenge))
    realm = asked.pop("realm")
    own = {"Authorization": f"Basic {basic}"} if basic else {}
    answer = client.get(realm, params=asked, headers=own)
    if not answer.is_success:
        return {}
    given = answer.json()
    return {"Authorization": f"Bearer {given.get('token') or given['access_token']}"}


def _digest(client: httpx.Client, url: str, headers: Mapping[str, str], answer: httpx.Response, reference: str) -> str:
    if answer.status_code in (401, 403):
        raise CrossoverError(
            f"{reference}: its registry does not have it, or wants a login (`docker login`): {answer.status_code}"
        )
    if answer.status_code == 404:
        raise CrossoverError(f"{reference}: its registry has no such image")
    answer.raise_for_status()
    told = answer.headers.get("Docker-Content-Digest")
    if told:
        return str(told)
    whole = client.get(url, headers=dict(headers))
    whole.raise_for_status()
    return f"sha256:{hashlib.sha256(whole.content).hexdigest()}"
