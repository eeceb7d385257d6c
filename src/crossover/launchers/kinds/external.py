"""Measures a server that already runs and is not ours: never started, never stopped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crossover.engines import get_engine
from crossover.errors import InputError
from crossover.launchers.base import ExitStatus, RunningServer, ServerSpec, check_options
from crossover.launchers.records import LaunchRecord

_OPTIONS = frozenset({"url"})


class ExternalServer:
    """A server of somebody else's; its log is not ours to read, so ours only says so."""

    def __init__(self, base_url: str, log_path: Path, model_name: str) -> None:
        self.base_url, self.log_path, self.model_name = base_url, log_path, model_name
        self.observed: Mapping[str, Any] = {"url": base_url}
        self._status: ExitStatus | None = None

    def poll(self) -> ExitStatus | None:
        return self._status

    def owns_port(self) -> bool | None:
        return None

    def stop(self, grace_s: float = 30.0) -> ExitStatus:
        self._status = ExitStatus("stopped", reason="left running: it is not ours")
        return self._status


class ExternalLauncher:
    """Takes a running server. Option: `url` (without /v1)."""

    kind = "external"

    def start(self, spec: ServerSpec, live_dir: Path) -> RunningServer:
        check_options(self.kind, spec.options, _OPTIONS, required=("url",))
        url = str(spec.options["url"]).rstrip("/").removesuffix("/v1")
        if not url.startswith(("http://", "https://")):
            raise InputError(f"{url!r} is no URL", place="options.url", remedy="give http://HOST:PORT")
        live_dir.mkdir(parents=True, exist_ok=True)
        log_path = live_dir / "engine.log"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        log_path.write_text(f"{now} the server at {url} already runs; its log is not available\n")
        return ExternalServer(url, log_path, spec.model_name(get_engine(spec.engine)))

    def reap(self, record: LaunchRecord, live_dir: Path) -> bool:
        """Nothing of it is ever ours."""
        return False


LAUNCHER = ExternalLauncher()
