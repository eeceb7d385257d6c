"""Runs a client against an endpoint, on our prompts, in its own environment."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossover.errors import CrossoverError, InputError
from crossover.peers.reading import read_output
from crossover.peers.report import PeerReport
from crossover.peers.tools import TOOLS
from crossover.peers.tools.base import Plan, Tool

CONSOLE, RECORD = "console.txt", "peer.json"
_TRACEBACK = "Traceback (most recent call last)"
_GRACE_S = 10.0
# The pipeline's own Python must not shine through, and no proxy may stand where the recorder meets none.
_LEFT_OUT = frozenset({"pythonpath", "pythonhome", "virtual_env", "http_proxy", "https_proxy", "all_proxy"})


@dataclass(frozen=True)
class PeerRun:
    """A load for a client.

    Attributes:
        base_url: of the endpoint, without /v1.
        model: the name that the endpoint serves.
        prompts: as `crossover.workloads.read_prompts` gives them.
        tokenizer: folder of the model's tokenizer, for clients that count tokens themselves.
        api: "chat" or "completions".
        concurrency: requests at once, for a closed loop.
        rate_per_s: requests per second, for an open one.
        seed: of the client.
        temperature, ignore_eos: of the sampling.
        extra: further fields of the request body.
        api_key: of the endpoint; handed over in the client's environment, written nowhere.
        time_limit_s: after which the client is ended.
    """

    base_url: str
    model: str
    prompts: Sequence[Mapping[str, Any]] = field(repr=False)
    tokenizer: Path | None = None
    api: str = "chat"
    concurrency: int | None = None
    rate_per_s: float | None = None
    seed: int = 0
    temperature: float = 0.0
    ignore_eos: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    api_key: str | None = field(default=None, repr=False)
    time_limit_s: float = 3600.0

    def single_output_length(self, tool: str) -> int:
        """Returns the output length of all prompts, for clients that take a single one; InputError if they differ."""
        lengths = {int(prompt["output_tokens"]) for prompt in self.prompts}
        if len(lengths) != 1:
            raise InputError(
                f"{tool} takes one output length for all requests, the prompts have {len(lengths)}",
                place="output_tokens",
                remedy="give the workload a number of output tokens",
            )
        return lengths.pop()


def run_peer(
    name: str,
    run: PeerRun,
    out_dir: Path,
    *,
    bin_dir: Path | None = None,
    version: str | None = None,
    envs_dir: Path = Path("envs"),
    keep_inputs: bool = True,
) -> PeerReport:
    """Runs a client and returns what it reports; everything it wrote stays in `out_dir`, with `peer.json`.

    Args:
        name: of the tool in `TOOLS`.
        run: the load.
        out_dir: made where missing.
        bin_dir: folder of the client's commands; by default its environment is installed from `envs_dir`.
        version: of the client in `bin_dir`, where it is known.
        envs_dir: where the environments are defined.
        keep_inputs: whether what was written for the client to read (prompts, tokenizer) stays too.

    Raises:
        InputError: an unknown client, prompts that it cannot send, or a key that it would show.
        CrossoverError: it failed, ran too long, or wrote nothing that can be read.
    """
    tool = _runnable(name)
    if run.api_key and tool.key_variable is None:
        raise InputError(
            f"{tool.title} takes an API key only where others can read it",
            place="api_key",
            remedy="use another client for an endpoint that wants a key",
        )
    out_dir.mkdir(parents=True, exist_ok=True)
    assert tool.plan is not None
    plan = tool.plan(run, out_dir)
    for file, text in plan.files.items():
        (out_dir / file).parent.mkdir(parents=True, exist_ok=True)
        (out_dir / file).write_text(text, "utf-8")
    binaries, manifest = (bin_dir, {"version": version}) if bin_dir is not None else _environment(tool, envs_dir)
    try:
        spent = _execute(tool, plan, out_dir, binaries.absolute(), run)
    finally:
        if not keep_inputs:
            _remove_inputs(plan, out_dir)
    written = out_dir / (plan.output or CONSOLE)
    if not written.is_file():
        raise CrossoverError(f"{tool.title} wrote no {written.name}: {_tail(out_dir / CONSOLE)}")
    (report,) = read_output(written, name, version=manifest.get("version"))[-1:]
    _record(out_dir, plan, manifest, spent, report)
    return report


def _runnable(name: str) -> Tool:
    known = sorted(tool.name for tool in TOOLS.values() if tool.plan is not None)
    if name not in known:
        raise InputError(f"no client {name!r} that can be run", place="client", remedy=f"use one of {', '.join(known)}")
    return TOOLS[name]


def _environment(tool: Tool, envs_dir: Path) -> tuple[Path, Mapping[str, Any]]:
    from crossover.environments import ensure, find_definition

    assert tool.environment is not None
    environment = ensure(find_definition(tool.environment, envs_dir))
    kept = {key: environment.manifest.get(key) for key in ("name", "digest", "package", "version")}
    return environment.python.parent, kept


def _execute(tool: Tool, plan: Plan, out_dir: Path, binaries: Path, run: PeerRun) -> dict[str, float]:
    """Runs the command to its end; returns wall and CPU seconds. Its whole process group is ended with it."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {
        **{name: value for name, value in os.environ.items() if name.lower() not in _LEFT_OUT},
        "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
        "HF_HUB_OFFLINE": "1",
        **({tool.key_variable: run.api_key} if tool.key_variable and run.api_key else {}),
        **plan.environment,
    }
    command = [str(binaries / plan.words[0]), *plan.words[1:]]
    with (out_dir / CONSOLE).open("wb") as console:
        process = subprocess.Popen(
            command, cwd=out_dir, env=environment, stdout=console, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = process.wait(run.time_limit_s)
        except subprocess.TimeoutExpired:
            raise CrossoverError(
                f"{tool.title} did not end within {run.time_limit_s:g} s: {_tail(out_dir / CONSOLE)}"
            ) from None
        finally:
            _end(process)
    if status != 0:
        raise CrossoverError(f"{tool.title} ended with status {status}: {_tail(out_dir / CONSOLE)}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": time.monotonic() - start, "cpu_s": cpu_s}


def _remove_inputs(plan: Plan, out_dir: Path) -> None:
    for file in plan.files:
        path = out_dir / file
        path.unlink(missing_ok=True)
        for folder in path.relative_to(out_dir).parents:
            if folder != Path() and (out_dir / folder).is_dir() and not any((out_dir / folder).iterdir()):
                (out_dir / folder).rmdir()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends what is left of a client's process group, workers of its own included."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _tail(console: Path, characters: int = 400) -> str:
    text = console.read_text("utf-8", errors="replace").strip() if console.is_file() else ""
    if _TRACEBACK in text:
        return text.splitlines()[-1].strip()[:characters]
    return " | ".join(line.strip() for line in text[-characters:].splitlines() if line.strip()) or "it printed nothing"


def _record(
    out_dir: Path, plan: Plan, manifest: Mapping[str, Any], spent: Mapping[str, float], report: PeerReport
) -> None:
    record = {
        "command": list(plan.words),
        "environment": dict(manifest),
        "notes": list(plan.notes),
        "spent": dict(spent),
        "report": report.to_dict(),
    }
    (out_dir / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
