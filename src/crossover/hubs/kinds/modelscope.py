"""ModelScope, through `modelscope-hub`. Branches are resolved over git's own protocol, which the client does not
speak and whose answer is the full commit."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import requests

from crossover.errors import is_full
from crossover.hubs.base import COMMIT, GarbledError, HubError, RemoteFile, check_name, no_room, token_from
from crossover.hubs.cache import cache_root

# Read by the client, or by its tqdm, when first imported; there is no other switch. A bar for every file is not drawn.
os.environ.setdefault("TQDM_DISABLE", "1")
# It gives a file up after an hour even where bytes come: 10 GB at less than 3 MB/s. A stall it knows by the rate.
os.environ.setdefault("MODELSCOPE_DOWNLOAD_TOTAL_TIMEOUT", str(30 * 24 * 3600))

from modelscope_hub import HubApi, ProgressCallback
from modelscope_hub.config import HubConfig
from modelscope_hub.constants import REPO_FILES_TRUNCATION_LIMIT
from modelscope_hub.errors import (
    AuthenticationError,
    FileIntegrityError,
    NotExistError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    raise_for_status,
)
from modelscope_hub.errors import (
    HubError as ClientError,
)

_TIMEOUT_S = 30.0
_PART_OF_COMMIT = re.compile(r"[0-9a-f]{6,39}")
# Of a line of git's listing of references: `LENGTH COMMIT NAME`.
_REFERENCE = re.compile(rb"[0-9a-f]{4}([0-9a-f]{40}) (refs/[^\s\0]+)")


class ModelScope:
    """See `crossover.hubs.base.Hub`. MODELSCOPE_ENDPOINT and MODELSCOPE_API_TOKEN are read at each call; a stored
    login is not used, and what the client wants to keep stays in our cache."""

    name = "modelscope"
    token_variable = "MODELSCOPE_API_TOKEN"
    default_branch = "master"

    def resolve(self, repo: str, revision: str) -> str:
        if COMMIT.fullmatch(revision):
            self.files(repo, revision)
            return revision
        references = _references(repo)
        commit = references.get(f"refs/heads/{revision}") or references.get(f"refs/tags/{revision}^{{}}")
        commit = commit or references.get(f"refs/tags/{revision}")
        if commit is None:
            whole = "; a commit is written with all its 40 digits" if _PART_OF_COMMIT.fullmatch(revision) else ""
            raise HubError("missing", f"modelscope: {repo} has no branch or tag `{revision}`{whole}")
        return commit

    def files(self, repo: str, commit: str) -> list[RemoteFile]:
        with _clear(f"{repo}@{commit[:12]}"):
            listed = _api().list_repo_files(repo, "model", revision=commit)
        _refuse_cut_listing(f"{repo}@{commit[:12]}", [one.path for one in listed])
        return [
            RemoteFile(check_name(one.path), one.size or 0, (one.sha256 or "").lower() or None)
            for one in listed
            if one.type != "tree"
        ]

    def download(self, repo: str, commit: str, file: RemoteFile, folder: Path, again: bool, stop: Event) -> None:
        class Stoppable(ProgressCallback):
            """The client's only door through which a transfer under way can be ended."""

            def update(self, size: int) -> None:
                if stop.is_set():
                    raise ClientError(f"{file.name}: given up")  # not tried again

        with _clear(f"{repo}@{commit[:12]} {file.name}"):
            _api().downloader.download_file(
                repo,
                "model",
                file.name,
                revision=commit,
                local_dir=folder,
                # Nothing but its locks goes there: one a commit, or two commits would wait for each other's files.
                cache_dir=folder / ".cache" / "modelscope",
                force=again,
                # The listing says 0 for an empty file and for an unknown size alike.
                file_size=file.size or None,
                progress_callbacks=[Stoppable],
            )


def _config() -> HubConfig:
    kept = cache_root() / "clients" / "modelscope"
    token = token_from(ModelScope.token_variable) or ""
    return HubConfig(cache_dir=kept / "cache", config_dir=kept / "config", token=token)


def _api() -> HubApi:
    return HubApi(_config())


def _refuse_cut_listing(subject: str, paths: list[str]) -> None:
    """Refuses a listing that may lack files: the hub lists no more than so many entries of one folder, and has no
    further pages; the client only warns."""
    folders = Counter(path.rpartition("/")[0] for path in paths)
    for folder, count in folders.items():
        if count >= REPO_FILES_TRUNCATION_LIMIT:
            raise HubError(
                "refused",
                f"modelscope: {subject}: {folder or 'the top folder'} holds {count} files or more, and the hub lists "
                "no more of one folder; take them from another hub, or give a local folder",
            )


def _references(repo: str) -> dict[str, str]:
    """Returns the branches and tags of a repository, each with its commit."""
    config = _config()
    url = f"{config.endpoint}/{repo}.git/info/refs?service=git-upload-pack"
    with _clear(repo):
        answer = requests.get(url, auth=("oauth2", config.token) if config.token else None, timeout=_TIMEOUT_S)
        raise_for_status(answer)
    found = parse_references(answer.content)
    if not found:
        raise HubError("empty", f"modelscope: no branches came for {repo}; check MODELSCOPE_ENDPOINT or the proxy")
    return found


def parse_references(listing: bytes) -> dict[str, str]:
    """Returns the commit of each reference in git's listing (`info/refs`, protocol version 0)."""
    return {name.decode(): commit.decode() for commit, name in _REFERENCE.findall(listing)}


@contextlib.contextmanager
def _clear(subject: str) -> Iterator[None]:
    """Turns the client's errors into one line about `subject`."""
    try:
        yield
    except HubError:
        raise
    except Exception as error:
        raise _translate(error, subject) from error


def _translate(error: Exception, subject: str) -> Exception:
    said = str(getattr(error, "message", error)).strip().partition("\n")[0][:200]
    if is_full(error):
        return no_room(f"modelscope:{subject}")
    if isinstance(error, FileIntegrityError):
        return GarbledError(said)
    for classes, kind, text in _RULES:
        if isinstance(error, classes):
            after = getattr(error, "retry_after", None)
            return HubError(kind, f"modelscope: {text.format(subject=subject, said=said)}", after)
    kind = "offline" if getattr(error, "retryable", False) else "refused"
    return HubError(kind, f"modelscope: {subject}: {type(error).__name__}: {said}")


# What is wrong, told by the client's exception; the first rule that applies counts.
_RULES: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (AuthenticationError, PermissionDeniedError),
        "gated",
        "{subject} is gated or private; get access on the hub's page and set MODELSCOPE_API_TOKEN",
    ),
    ((NotExistError,), "missing", "{subject}: no such repository, commit or file"),
    ((RateLimitError,), "rate_limited", "too many requests for {subject}; wait or set MODELSCOPE_API_TOKEN"),
    (
        (ConnectionError, requests.RequestException),
        "offline",
        "no answer for {subject} ({said}); check the network, or MODELSCOPE_ENDPOINT",
    ),
    ((ServerError,), "offline", "the hub is out of order for {subject} ({said})"),
)

HUB = ModelScope()
