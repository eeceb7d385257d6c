"""Hugging Face, through `huggingface_hub`. Its client does not compare digests; our manifest does.

The client's own call for a file (`hf_hub_download`) writes to a file of a new name each time and deletes it on any
error, so that a killed download starts anew. Its transfer function (`http_get`) takes what is there already and asks
for the rest: files are brought with that one, from the address that names the commit. Each try so gets a fresh signed
address from the hub, however long the file takes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url
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
from huggingface_hub.file_download import http_get
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # public by its documentation
from huggingface_hub.utils.tqdm import disable_progress_bars, tqdm

from crossover.errors import is_full
from crossover.hubs.base import GarbledError, HubError, RemoteFile, check_name, no_room, token_from

# Below the folder of the files; hidden, so that no file of the repository can have the same path.
UNDER_WAY = Path(".cache", "under-way")
# The hub hands out larger files by its block storage (Xet) only: in one go, with no resuming after a kill.
LARGEST_BY_RANGE_BYTES = constants.MAX_HTTP_DOWNLOAD_SIZE


class HuggingFace:
    """See `crossover.hubs.base.Hub`. HF_ENDPOINT and HF_TOKEN (HUGGING_FACE_HUB_TOKEN, its older name) are read at
    each call; a stored login is not used."""

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

        bring = _in_one_go if file.size > LARGEST_BY_RANGE_BYTES else _by_ranges
        bring(repo, commit, file, folder, again, Stoppable)

    def _api(self) -> HfApi:
        return HfApi(endpoint=_endpoint(), token=_token())


def _by_ranges(repo: str, commit: str, file: RemoteFile, folder: Path, again: bool, bar: type[tqdm]) -> None:
    """Brings a file, going on with what an earlier call left of it, also where that one was killed."""
    there, target = folder / UNDER_WAY / file.name, folder / file.name
    for path in (there, target):
        path.parent.mkdir(parents=True, exist_ok=True)
    with there.open("wb" if again else "ab") as handle:
        if handle.tell() > file.size:  # no beginning of this file
            handle.truncate(0)
            handle.seek(0)
        with _clear(f"{repo}@{commit[:12]} {file.name}"):
            http_get(
                hf_hub_url(repo, file.name, revision=commit, endpoint=_endpoint()),
                handle,
                resume_size=handle.tell(),
                # As it is stored: the rest of a compressed answer could not be joined to what is there.
                headers=build_hf_headers(token=_token()) | {"Accept-Encoding": "identity"},
                expected_size=file.size,
                displayed_filename=file.name,
                tqdm_class=bar,
            )
    there.replace(target)


def _in_one_go(repo: str, commit: str, file: RemoteFile, folder: Path, again: bool, bar: type[tqdm]) -> None:
    with _clear(f"{repo}@{commit[:12]} {file.name}"):
        hf_hub_download(
            repo,
            file.name,
            revision=commit,
            local_dir=folder,
            force_download=again,
            endpoint=_endpoint(),
            token=_token(),
            tqdm_class=bar,
        )


def _endpoint() -> str | None:
    # A path is added to it as it stands, and an empty folder in an address is another address.
    return os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or None


def _token() -> str | bool:
    return token_from(HuggingFace.token_variable, "HUGGING_FACE_HUB_TOKEN") or False


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
        return no_room(f"huggingface:{subject}")
    if isinstance(error, OSError) and "Consistency check failed" in str(error):
        return GarbledError(said)
    if _status(error) == 416:
        return GarbledError("the hub's file is shorter than what came of it")
    # The client hides the error of its first look at a file behind a general one.
    for cause in (error, error.__cause__, error.__context__):
        for applies, kind, text in _RULES:
            if cause is not None and applies(cause):
                return HubError(kind, f"huggingface: {text.format(subject=subject, said=said)}", _retry_after(cause))
    return HubError("refused", f"huggingface: {subject}: {type(error).__name__}: {said}")


def _status(error: BaseException | None) -> int | None:
    return error.response.status_code if isinstance(error, HfHubHTTPError) else None


def _refused_by_storage(error: BaseException) -> bool:
    """Says whether it was not the hub that refused, but the storage that it sent us on to."""
    return _status(error) == 403 and isinstance(error, HfHubHTTPError) and bool(error.response.history)


def _retry_after(error: BaseException | None) -> float | None:
    value = error.response.headers.get("Retry-After", "") if isinstance(error, HfHubHTTPError) else ""
    return float(value) if value.isdigit() else None


# What is wrong, told by the client's exception; the first rule that applies counts.
_RULES: tuple[tuple[Callable[[BaseException], bool], str, str], ...] = (
    (
        _refused_by_storage,
        "refused",
        "{subject}: the storage behind the hub refuses ({said}); check the network's policy and this machine's clock",
    ),
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
