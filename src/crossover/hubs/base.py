"""What a hub is to us: resolve a branch, list a commit's files, bring one file. And the errors that can come of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Any, Protocol

from crossover.errors import CrossoverError, InputError

CACHE_VARIABLE = "CROSSOVER_CACHE"
COMMIT = re.compile(r"[0-9a-f]{40}")
REPO = re.compile(r"[\w.-]+(/[\w.-]+)?")
PARTS = ("weights", "tokenizer")
_TOKEN = re.compile(r"[!-~]+")


class HubError(CrossoverError):
    """A hub did not give what was asked for.

    Attributes:
        kind: missing, gated, rate_limited, offline, empty, corrupt, disk_full, disk,
            unloadable, or refused for anything else.
        retry_after_s: seconds that the hub asks us to wait, None where it does not say.
    """

    def __init__(self, kind: str, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(" ".join(text.split()))
        self.kind, self.retry_after_s = kind, retry_after_s
        self.exit_status = 2 if kind == "missing" else 1


class GarbledError(Exception):
    """The bytes that came are not those that the hub lists; worth another try."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of a commit as the hub lists it.

    Attributes:
        name: path in the repository, with slashes.
        size: bytes.
        sha256: digest of the content, None where the hub does not say.
        git_sha1: name of the git blob, which hubs give for small files; None where the hub does not say.
    """

    name: str
    size: int
    sha256: str | None = None
    git_sha1: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """One commit of one repository of one hub, or the tokenizer's files of it alone.

    Raises:
        InputError: not a repository's name, or not a commit.
    """

    hub: str
    repo: str
    commit: str
    part: str = "weights"

    def __post_init__(self) -> None:
        if not REPO.fullmatch(self.repo) or ".." in self.repo:
            raise InputError(f"`{self.repo}` is no repository", remedy="write OWNER/NAME")
        if not COMMIT.fullmatch(self.commit):
            raise InputError(f"`{self.commit}` is no commit", remedy="write its 40 digits, or run `crossover lock`")
        if self.part not in PARTS:
            raise ValueError(f"unknown part {self.part}")

    @classmethod
    def of_recipe(cls, recipe: Mapping[str, Any]) -> Snapshot:
        """Returns the snapshot that a weights recipe of a hub asks for."""
        return cls(recipe["hub"], recipe["repo"], recipe["commit"], recipe.get("part", "weights"))

    def __str__(self) -> str:
        part = " (tokenizer)" if self.part == "tokenizer" else ""
        return f"{self.hub}:{self.repo}@{self.commit[:12]}{part}"


class Hub(Protocol):
    """A hub, spoken to through its own client. All methods raise HubError."""

    name: str
    token_variable: str
    default_branch: str

    def resolve(self, repo: str, revision: str) -> str:
        """Returns the commit (40 hexadecimal digits) that a branch or tag points to now."""

    def files(self, repo: str, commit: str) -> list[RemoteFile]:
        """Returns the files of a commit, folders left out."""

    def download(self, repo: str, commit: str, file: RemoteFile, folder: Path, again: bool, stop: Event) -> None:
        """Brings a file to `folder/file.name`, going on where an earlier call stopped.

        Args:
            again: the file has come wrong before; what is there must not be trusted.
            stop: set when nobody wants the file any more; the call then ends soon, with any error.

        Raises:
            GarbledError: what came contradicts the listing.
        """


def check_name(name: str) -> str:
    """Returns the name of a remote file; HubError where it would leave its folder."""
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name:
        raise HubError("corrupt", f"the hub lists a file named {name!r}, which would leave its folder")
    return name


def token_from(*variables: str) -> str | None:
    """Returns the token in the first of these environment variables that is set, None without one.

    Ends of lines around it, as files and secret stores add them, are no part of it.

    Raises:
        HubError: what is there is no token. It is not shown, and not sent: a client would show it in its error.
    """
    for variable in variables:
        token = os.environ.get(variable, "").strip()
        if token and not _TOKEN.fullmatch(token):
            raise HubError("refused", f"{variable} holds blanks or signs that no token has; set it again")
        if token:
            return token
    return None


def no_room(subject: str) -> HubError:
    """Returns the error of a disk that filled up while `subject` came."""
    kept = f"what came is kept; make room, or set {CACHE_VARIABLE} to another disk"
    return HubError("disk_full", f"no room on the disk for {subject}; {kept}")
