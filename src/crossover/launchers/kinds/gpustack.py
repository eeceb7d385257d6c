"""Deploys an engine on a GPUStack server, exactly with the arguments of the experiment."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossover.engines import get_engine
from crossover.engines.base import Engine
from crossover.errors import InputError
from crossover.launchers.base import MARKER, ExitStatus, LaunchError, RunningServer, ServerSpec, check_options
from crossover.launchers.gpustack_api import GpustackApi, Record
from crossover.launchers.gpustack_command import CommandLine, backend_parameters, command_line, served_name
from crossover.launchers.gpustack_instance import InstanceWatch
from crossover.launchers.local import LAUNCH_MARKER, secret_values
from crossover.launchers.ports import somebody_listens
from crossover.launchers.records import LaunchRecord, forget_record, new_record, write_record
from crossover.launchers.simulation import simulation_variables
from crossover.redaction import redact_command

_OPTIONS = frozenset(
    {"server", "token_env", "backend", "backend_version", "cluster", "image", "gpu_ids", "gpus", "framework"}
    | {"model_source", "simulated"}
)
_SOURCES = {
    "local_path": "local_path",
    "huggingface": "huggingface_repo_id",
    "model_scope": "model_scope_model_id",
}
_TOKEN = re.compile(r"[!-~]+")
# The port of a service that throws away what it is sent, and runs nowhere: refused at once. GPUStack itself would
# answer, if only that it wants another key.
NOT_PLACED_YET = "http://127.0.0.1:9/not-placed-yet"
_REMOVAL_S = 120.0
_POLL_S = 0.5


class GpustackServer:
    """A model of ours on a GPUStack server, with one instance."""

    def __init__(
        self,
        api: GpustackApi,
        model: Record,
        watch: InstanceWatch,
        record: LaunchRecord,
        live_dir: Path,
        facts: Mapping[str, Any],
    ) -> None:
        self._api, self._model, self._watch, self._record, self._live_dir = api, model, watch, record, live_dir
        self._facts = facts
        self._status: ExitStatus | None = None
        self.log_path = live_dir / "engine.log"
        self.model_name = str(facts["served_model_name"])

    @property
    def base_url(self) -> str:
        """The instance's own address, past the gateway; before it has one, a place where nothing answers."""
        return self._watch.address or NOT_PLACED_YET

    @property
    def observed(self) -> Mapping[str, Any]:
        return {**self._facts, "instance": self._watch.placed}

    def owns_port(self) -> bool | None:
        return None  # the listener is on a worker

    def poll(self) -> ExitStatus | None:
        return self._status or self._watch.ended

    def restart(self) -> None:
        """Has GPUStack replace the instance by a new one; the server is to be awaited again."""
        self._api.restart_model(int(self._model["id"]))

    def stop(self, grace_s: float = 30.0) -> ExitStatus:
        if self._status is None:
            ended, address = self._watch.ended, self._watch.address
            self._watch.retire()
            remove(self._api, self._record)
            _wait_silent(address, grace_s + _REMOVAL_S)
            self._watch.close()
            forget_record(self._live_dir)
            self._status = ended or ExitStatus("stopped", reason="stopped by us, the model removed")
        return self._status


class GpustackLauncher:
    """Deploys a model. Options: see docs/gpustack.md."""

    kind = "gpustack"

    def start(self, spec: ServerSpec, live_dir: Path) -> RunningServer:
        check_options(self.kind, spec.options, _OPTIONS, required=("server", "token_env"))
        engine = get_engine(spec.engine)
        line = command_line(spec, engine)
        live_dir.mkdir(parents=True, exist_ok=True)
        (live_dir / "engine.log").unlink(missing_ok=True)
        record = _record(spec)
        api = _open(record.details)
        cluster, server_version = api.cluster_id(spec.options.get("cluster")), api.version()
        write_record(record, live_dir)  # before there is anything to leave behind
        try:
            backend = ensure_backend(api, record, spec, line.front[0])
            model = api.create_model(_model(spec, engine, record, backend, cluster, line))
        except BaseException:
            remove(api, record)
            forget_record(live_dir)
            raise
        secrets = secret_values(spec)
        watch = InstanceWatch(api, int(model["id"]), live_dir / "engine.log", secrets)
        watch.start()
        shown = redact_command((*line.front, *line.parameters), engine.secret_arguments, tuple(secrets.values()))
        facts = {
            "gpustack": {"server": api.server, "version": server_version},
            "model": {"id": model["id"], "name": model["name"]},
            "backend": record.details["backend"],
            "backend_version": record.details["version"],
            "image_id": _image(backend, str(record.details["version"])),
            "command": list(shown),
            "served_model_name": served_name(spec, engine),
        }
        return GpustackServer(api, model, watch, record, live_dir, facts)

    def reap(self, record: LaunchRecord, live_dir: Path) -> bool:
        """Removes the model, and what was made for it, of a launch whose run is gone."""
        with _api(record.details) as api:
            return remove(api, record)


def ensure_backend(api: GpustackApi, record: LaunchRecord, spec: ServerSpec, program: str) -> Record:
    """Returns the inference backend of a launch, with its version: found where the options name one that is there,
    else made, and then removed with the launch.

    Raises:
        InputError: the version is not there and there is no image to make it of.
        LaunchError: the version that is there has another image.
    """
    name, version = str(record.details["backend"]), str(record.details["version"])
    image = spec.options.get("image")
    backend = api.backend(name)
    there = _versions(backend or {}).get(version)
    if backend is not None and there is not None:
        if image is not None and there.get("image_name") not in (None, image):
            raise LaunchError(
                "wrong_version",
                f"version {version} of GPUStack's backend {name} has the image {there['image_name']}, not {image}",
            )
        return backend
    if image is None:
        known = ", ".join(sorted(_versions(backend or {}))) or "none"
        raise InputError(
            f"GPUStack's backend {name} has no version {version}, and no image is given to make it of",
            place="launcher.backend_version",
            remedy=f"give the variant an image, or name a version that is there: {known}",
        )
    # The variable makes the version known as ours when it is removed.
    marks = {LAUNCH_MARKER: record.launch}
    # Workers of another framework are passed over when GPUStack looks for a place.
    framework = str(spec.options.get("framework") or ("cuda" if _gpus(spec.options) else "cpu"))
    made = {"image_name": str(image), "entrypoint": program, "custom_framework": framework, "env": marks}
    if backend is None:
        body = {"backend_name": name, "version_configs": {version: made}, "default_version": version}
        return api.create_backend({**body, "description": _description(record)})
    api.update_backend(backend, {**_own_versions(backend), version: made})
    return api.backend(name) or backend


def remove(api: GpustackApi, record: LaunchRecord) -> bool:
    """Removes the model of a launch, waits for the end of its instances, then removes the version and the backend if
    the launch made them. Returns whether there was anything.

    Raises:
        LaunchError: something does not go away.
    """
    ours = [m for m in api.models_named(str(record.details["name"])) if _is_ours(m.get("env"), record)]
    for model in ours:
        api.delete_model(int(model["id"]))
    deadline = time.monotonic() + _REMOVAL_S
    for model in ours:
        while api.model(int(model["id"])) is not None or api.instances(int(model["id"])):
            if time.monotonic() > deadline:
                raise LaunchError("unkillable", f"GPUStack does not remove the model {model['name']}")
            time.sleep(_POLL_S)
    return _remove_backend(api, record) or bool(ours)


def _wait_silent(address: str | None, timeout_s: float) -> None:
    """Waits until nothing listens at an instance's address any more: GPUStack forgets an instance at once, and its
    worker takes the container down some seconds later, which holds the GPUs until then.

    Raises:
        LaunchError: it still listens after that time.
    """
    if address is None:
        return
    deadline = time.monotonic() + timeout_s
    while somebody_listens(address):
        if time.monotonic() > deadline:
            raise LaunchError("unkillable", f"the removed instance still listens at {address}")
        time.sleep(_POLL_S)


def _remove_backend(api: GpustackApi, record: LaunchRecord) -> bool:
    backend, version = api.backend(str(record.details["backend"])), str(record.details["version"])
    if backend is None or not _is_ours((_own_versions(backend).get(version) or {}).get("env"), record):
        return False
    rest = {name: config for name, config in _own_versions(backend).items() if name != version}
    # Refused while somebody else's model uses it: then it stays, and is theirs.
    with contextlib.suppress(LaunchError):
        if backend.get("description") == _description(record):
            api.delete_backend(int(backend["id"]))
        else:
            api.update_backend(backend, rest)
    return True


def _description(record: LaunchRecord) -> str:
    return f"made by crossover for launch {record.launch} of deployment {record.label}"


def _is_ours(env: Mapping[str, Any] | None, record: LaunchRecord) -> bool:
    return (env or {}).get(LAUNCH_MARKER) == record.launch


def _own_versions(backend: Mapping[str, Any]) -> dict[str, Any]:
    """The versions that were added to a backend."""
    return dict(backend.get("version_configs") or {})


def _versions(backend: Mapping[str, Any]) -> dict[str, Any]:
    """All versions of a backend, those that GPUStack brings included."""
    return {**(backend.get("built_in_version_configs") or {}), **_own_versions(backend)}


def _image(backend: Mapping[str, Any], version: str) -> str | None:
    image = (_versions(backend).get(version) or {}).get("image_name")
    return str(image) if image else None


def _record(spec: ServerSpec) -> LaunchRecord:
    """Returns the record of a launch: all names are made here, so that whatever comes of them can be found again."""
    record = new_record("gpustack", spec.label)
    name = f"crossover-{spec.label[:16]}-{record.launch[:8]}"
    options = spec.options
    details = {
        "server": str(options["server"]),
        "token_env": str(options["token_env"]),
        "name": name,
        # GPUStack wants this ending of every backend that is not its own.
        "backend": str(options.get("backend") or f"{name}-custom"),
        "version": str(options.get("backend_version") or "measured-custom"),
    }
    return replace(record, details=details)


def _model(
    spec: ServerSpec, engine: Engine, record: LaunchRecord, backend: Record, cluster: int, line: CommandLine
) -> Record:
    """Returns the model as it is sent to GPUStack."""
    environment = spec.variables(engine) | simulation_variables(spec.options)
    marks = {MARKER: spec.label, LAUNCH_MARKER: record.launch}
    version = str(record.details["version"])
    return {
        "name": record.details["name"],
        "description": _description(record),
        "cluster_id": cluster,
        "replicas": 1,
        **_source(spec),
        "backend": record.details["backend"],
        "backend_version": version,
        "run_command": shlex.join(_behind_entrypoint(line.front, backend, version)),
        "backend_parameters": backend_parameters(line.parameters),
        # At the model, since variables of a version do not reach the container.
        "env": {**environment, **secret_values(spec), **marks},
        "gpu_selector": _gpus(spec.options),
        # Its name for a place without GPUs; the engine is told nothing of it.
        "cpu_offloading": _gpus(spec.options) is None,
        # An engine that ends is a finding; started again by itself it would be measured half warm.
        "restart_on_error": False,
        "categories": ["llm"],
    }


def _source(spec: ServerSpec) -> dict[str, str]:
    source = str(spec.options.get("model_source") or ("local_path" if spec.model_path.startswith("/") else ""))
    if source not in _SOURCES:
        raise InputError(
            f"{spec.model_path!r} is no folder on the workers",
            place="launcher.model_source",
            remedy=f"say where GPUStack finds the model: {', '.join(_SOURCES)}",
        )
    return {"source": source, _SOURCES[source]: spec.model_path}


def _behind_entrypoint(front: Sequence[str], backend: Mapping[str, Any], version: str) -> tuple[str, ...]:
    """Returns the words that follow what the version starts by itself."""
    config = _versions(backend).get(version) or {}
    entrypoint = tuple(shlex.split(config.get("entrypoint") or backend.get("default_entrypoint") or ""))
    return tuple(front[len(entrypoint) :] if tuple(front[: len(entrypoint)]) == entrypoint else front)


def _gpus(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the selector for named GPUs, or for a number of them that GPUStack chooses."""
    if options.get("gpu_ids"):
        return {"gpu_ids": list(options["gpu_ids"]), "gpus_per_replica": len(options["gpu_ids"])}
    return {"gpus_per_replica": int(options["gpus"])} if options.get("gpus") else None


def _open(details: Mapping[str, Any]) -> GpustackApi:
    variable = str(details["token_env"])
    token = os.environ.get(variable, "").strip()  # the end of a line around it, as of a file, is no part of it
    if not _TOKEN.fullmatch(token):
        wrong = "holds blanks or signs that no key has" if token else "is not set"
        raise InputError(
            f"the environment variable {variable} {wrong}",
            place="launcher.token_env",
            remedy=f"export an API key of {details['server']} in it",
        )
    return GpustackApi(str(details["server"]), token)


@contextlib.contextmanager
def _api(details: Mapping[str, Any]) -> Iterator[GpustackApi]:
    api = _open(details)
    try:
        yield api
    finally:
        api.close()


LAUNCHER = GpustackLauncher()
