"""What Ray says of vLLM's and SGLang's workers: nodes without the GPUs asked for, workers killed or gone."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.crash import engine_died, remember_error
from crossover.logs.handlers import failure
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.table import kind

_PLACING = (
    "Ray has no node with what was asked for: compare `ray status` with the parallel sizes, and the nodes' addresses "
    "with VLLM_HOST_IP"
)


def _missing(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The cluster lacks GPUs. Ray waits for some to come, so that it is the end only where an exception says so."""
    builder.incidents.add(Kind.RESOURCES_MISSING, line, advice=_PLACING, repeats=False)
    if "Error: " in line.text and "(autoscaler" not in line.text:
        remember_error(builder, line, line.message)
        builder.dead = True


def _memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Ray's own watch over host memory killed a worker."""
    builder.incidents.add(
        Kind.KILLED,
        line,
        advice="Ray killed a worker under memory pressure of the host: give it more, or load with fewer workers a host",
        repeats=False,
    )
    remember_error(builder, line, line.message)
    builder.dead = True


KINDS = (
    kind(
        "ray_resources",
        (
            "No available node types can fulfill resource request",
            " exceeds the total number of available ",
            "Current node has no ",
            "Cannot provide a placement group",
            "Waiting for creating a placement group",
        ),
        r"No available node types can fulfill|number of required \wPUs exceeds the total number of available \wPUs"
        r"|Current node has no \wPU available|Cannot provide a placement group"
        r"|Waiting for creating a placement group of specs for (?:[3-9]\d|\d{3,6}) seconds",
        _missing,
        figure=False,
        joins=False,
    ),
    kind(
        "ray_node",
        ("has missed too many heartbeats", "NodeDiedError", "its node has died"),
        r"marked dead because the detector has missed too many heartbeats|NodeDiedError: |its node has died",
        failure(Kind.RESOURCES_MISSING, "a node of the Ray cluster was lost: look at its network, memory and raylet"),
        figure=False,
        joins=False,
    ),
    kind(
        "ray_memory",
        ("due to the node running low on memory", "killed due to memory pressure (OOM)"),
        r"due to the node running low on memory|[1-9]\d{0,4} Workers \(tasks / actors\) killed due to memory",
        _memory,
        figure=False,
        joins=False,
    ),
    kind(
        "ray_died",
        "A worker died or was killed while executing",
        "A worker died or was killed while executing",
        engine_died,
        figure=False,
        joins=False,
    ),
)
