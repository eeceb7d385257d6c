"""The few requests that a deployment needs of GPUStack's management API (version 2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from crossover.launchers.base import LaunchError

TIMEOUT_S = 30.0
Record = dict[str, Any]


class GpustackApi:
    """One GPUStack server, with an API key.

    Every method raises LaunchError: launcher_unavailable where nothing answers, not_authorised where the key is
    refused, not_started where the server refuses a request, with its own words.
    """

    def __init__(self, server: str, token: str) -> None:
        # Proxies of the environment are for the world outside; the key must not pass through them.
        headers = {"Authorization": f"Bearer {token}"}
        self.server = server.rstrip("/")
        self._http = httpx.Client(base_url=self.server, headers=headers, timeout=TIMEOUT_S, trust_env=False)

    def version(self) -> str | None:
        """Returns the server's version."""
        return (self._ask("GET", "/version") or {}).get("version")

    def cluster_id(self, name: str | None) -> int:
        """Returns the id of a cluster by its name; of the default one, or the only one, without a name."""
        clusters = self._list("/v2/clusters")
        chosen = [one for one in clusters if (one["name"] == name if name else one.get("is_default"))]
        chosen = chosen or (clusters if len(clusters) == 1 and not name else [])
        if not chosen:
            known = ", ".join(str(one["name"]) for one in clusters) or "none"
            raise LaunchError(
                "no_cluster", f"GPUStack has no {f'cluster {name!r}' if name else 'default cluster'}; it has {known}"
            )
        return int(chosen[0]["id"])

    def backend(self, name: str) -> Record | None:
        """Returns an inference backend by its name, None where there is none."""
        return next((one for one in self._list("/v2/inference-backends") if one["backend_name"] == name), None)

    def create_backend(self, body: Mapping[str, Any]) -> Record:
        """Creates an inference backend."""
        return self._must("POST", "/v2/inference-backends", body)

    def update_backend(self, backend: Mapping[str, Any], versions: Mapping[str, Any]) -> None:
        """Sets the versions of an inference backend, all else as it is."""
        body = {**backend, "version_configs": versions}
        if backend.get("is_built_in"):
            body["default_version"] = None  # the server manages it, and refuses a write
        self._must("PUT", f"/v2/inference-backends/{backend['id']}", body)

    def delete_backend(self, backend_id: int) -> None:
        """Deletes an inference backend; the server refuses while a model uses it."""
        self._ask("DELETE", f"/v2/inference-backends/{backend_id}")

    def create_model(self, body: Mapping[str, Any]) -> Record:
        """Deploys a model."""
        return self._must("POST", "/v2/models", body)

    def model(self, model_id: int) -> Record | None:
        """Returns a model, None when it is gone."""
        return self._ask("GET", f"/v2/models/{model_id}")

    def models_named(self, name: str) -> list[Record]:
        """Returns the models of exactly that name."""
        return [one for one in self._list("/v2/models", {"search": name}) if one["name"] == name]

    def delete_model(self, model_id: int) -> None:
        """Deletes a model and its instances."""
        self._ask("DELETE", f"/v2/models/{model_id}")

    def restart_model(self, model_id: int) -> Record:
        """Replaces all instances of a model by new ones."""
        return self._must("POST", f"/v2/models/{model_id}/restart", {})

    def instances(self, model_id: int) -> list[Record]:
        """Returns the instances of a model, the newest last."""
        found = self._list("/v2/model-instances", {"model_id": model_id})
        return sorted(found, key=lambda instance: int(instance["id"]))

    def follow_log(self, instance_id: int) -> Iterator[bytes]:
        """Yields the log of an instance as it grows, from its beginning, until the stream ends; nothing where the
        server does not have it (yet)."""
        path = f"/v2/model-instances/{instance_id}/logs"
        patience = httpx.Timeout(TIMEOUT_S, read=None)  # an engine may say nothing for minutes
        try:
            with self._http.stream("GET", path, params={"follow": "true"}, timeout=patience) as response:
                if response.is_success:
                    yield from response.iter_bytes()
        except (httpx.HTTPError, RuntimeError):  # RuntimeError: closed meanwhile by us
            return

    def close(self) -> None:
        """Ends all connections, streams included."""
        self._http.close()

    def _list(self, path: str, query: Mapping[str, Any] | None = None) -> list[Record]:
        page, found = 1, []
        while True:
            answer = self._ask("GET", path, query={**(query or {}), "page": page, "perPage": 100}) or {}
            found += list(answer.get("items") or ())
            if page >= int((answer.get("pagination") or {}).get("totalPage") or 1):
                return found
            page += 1

    def _must(self, method: str, path: str, body: Mapping[str, Any]) -> Record:
        answer = self._ask(method, path, body)
        if answer is None:
            raise LaunchError("not_started", f"GPUStack does not know {path}")
        return answer

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, Any] | None = None
    ) -> Record | None:
        """Returns the answer, None for what does not exist."""
        try:
            response = self._http.request(method, path, json=body, params=query)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise LaunchError(
                "launcher_unavailable", f"no GPUStack server answers at {self.server} ({type(error).__name__}: {error})"
            ) from None
        if response.is_redirect:
            place = response.headers.get("Location", "")
            told = f"{self.server} sends requests on to {place}; set launcher.server to that address, without its path"
            raise LaunchError("launcher_unavailable", told)
        if response.status_code == 404:
            return None
        if response.status_code in (401, 403):
            raise LaunchError("not_authorised", f"GPUStack refuses the API key: {_message(response)}")
        if not response.is_success:
            raise LaunchError("not_started", f"GPUStack refuses {method} {path}: {_message(response)}")
        return _record(response)


def _record(response: httpx.Response) -> Record:
    try:
        answer = response.json() if response.content else {}
    except ValueError:
        raise LaunchError(
            "launcher_unavailable", f"what answers at {response.url.host}:{response.url.port} is no GPUStack API"
        ) from None
    return answer if isinstance(answer, dict) else {}


def _message(response: httpx.Response) -> str:
    try:
        answer = json.loads(response.text)
        return str(answer.get("message") or answer.get("detail") or answer)[:500]
    except (ValueError, AttributeError):
        return f"status {response.status_code}"
