"""Hugging Face, through `huggingface_hub`. Its client does not compare digests; our manifest does."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import httpx2
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.tqdm import disable_progress_bars, tqdm

from crossover.hubs.base import GarbledError, HubError, RemoteFile, check_name, is_full


class HuggingFace:
    """See `crossover.hubs.base.Hub`. HF_ENDPOINT and HF_TOKEN are read at each call; a stored login is not used."""

    name = "huggingface"
    token_variable = "HF_TOKEN"
    default_branch = "main"

    def resolve(self, repo: str, revision: str) -> str:
        with _clear(f"{repo}@{revision}"):
            commit = self._api().model_info(repo, revision=revision).sha
        if not commit:
            raise HubError("empty", f"huggingface: no commit came for {repo}@{revision}")
        return commit

    def files(self, repo: str, commit: str) -> list[RemoteFile]:
        with _clear(f"{repo}@{commit[:12]}"):
            tree = list(self._api().list_repo_tree(repo, recursive=True, revision=commit))
        return [_remote(entry) for entry in tree if isinstance(entry, RepoFile)]

    def download(self, repo: str, commit: str, file: RemoteFile, folder: Path, again: bool, stop: Event) -> None:
        disable_progress_bars()

        class Stoppable(tqdm):
            """No bar; the client's only door through which a transfer under way can be ended."""

            def update(self, n: float | None = 1) -> bool | None:
                if stop.is_set():
                    raise HubError("refused", f"huggingface: {file.name}: given up")
                return None

        with _clear(f"{repo}@{commit[:12]} {file.name}"):
            hf_hub_download(
                repo,
                file.name,
                revision=commit,
                local_dir=folder,
                force_download=again,
                endpoint=_endpoint(),
                token=_token(),
                tqdm_class=Stoppable,
            )

    def _api(self) -> HfApi:
        return HfApi(endpoint=_endpoint(), token=_token())


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _token() -> str | bool:
    return os.environ.get(HuggingFace.token_variable) or False


def _remote(entry: RepoFile) -> RemoteFile:
    if entry.lfs is not None:
        return RemoteFile(check_name(entry.path), entry.lfs.size, sha256=entry.lfs.sha256)
    return RemoteFile(check_name(entry.path), entry.size, git_sha1=entry.blob_id)


@contextlib.contextmanager
def _clear(subject: str) -> Iterator[None]:
    """Turns the client's errors into one line about `subject`."""
    try:
        yield
    except (HubError, GarbledError):
        raise
    except Exception as error:
        raise _translate(error, subject) from error


def _translate(error: Exception, subject: str) -> Exception:
    said = str(error).strip().partition("\n")[0][:200]
    if is_full(error):
        return HubError("disk_full", f"huggingface: no room on the disk for {subject}")
    if isinstance(error, OSError) and "Consistency check failed" in str(error):
        return GarbledError(said)
    # The client hides the error of its first look at a file behind a general one.
    for cause in (error, error.__cause__, error.__context__):
        for applies, kind, text in _RULES:
            if cause is not None and applies(cause):
                return HubError(kind, f"huggingface: {text.format(subject=subject, said=said)}", _retry_after(cause))
    return HubError("refused", f"huggingface: {subject}: {type(error).__name__}: {said}")


def _status(error: BaseException | None) -> int | None:
    return error.response.status_code if isinstance(error, HfHubHTTPError) else None


def _retry_after(error: BaseException | None) -> float | None:
    value = error.response.headers.get("Retry-After", "") if isinstance(error, HfHubHTTPError) else ""
    return float(value) if value.isdigit() else None


# What is wrong, told by the client's exception; the first rule that applies counts.
_RULES: tuple[tuple[Callable[[BaseException], bool], str, str], ...] = (
    (
        lambda error: isinstance(error, GatedRepoError) or _status(error) == 403,
        "gated",
        "{subject} is gated; accept its terms on the hub's page and set HF_TOKEN",
    ),
    (
        lambda error: isinstance(error, RevisionNotFoundError),
        "missing",
        "{subject}: no such commit or branch in this repository",
    ),
    (
        lambda error: isinstance(error, EntryNotFoundError) and _status(error) == 404,
        "missing",
        "{subject}: the hub lists this file but does not have it",
    ),
    (
        lambda error: isinstance(error, (RepositoryNotFoundError, HFValidationError)) or _status(error) == 401,
        "missing",
        "{subject}: no such repository, or a private one without HF_TOKEN",
    ),
    (
        lambda error: _status(error) == 429,
        "rate_limited",
        "too many requests for {subject}; wait or set HF_TOKEN",
    ),
    (
        lambda error: isinstance(error, (OfflineModeIsEnabled, httpx2.TransportError, ConnectionError)),
        "offline",
        "no answer for {subject} ({said}); check the network, or HF_ENDPOINT",
    ),
    (
        lambda error: isinstance(error, FileMetadataError),
        "offline",
        "{subject}: the answer is not a hub's ({said}); check HF_ENDPOINT",
    ),
    (
        lambda error: (_status(error) or 0) >= 500,
        "offline",
        "the hub is out of order for {subject} ({said})",
    ),
)

HUB = HuggingFace()
