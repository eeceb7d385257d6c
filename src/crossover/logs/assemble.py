"""Makes the report of what was gathered: by the engine that spoke the most, and by what all engines share."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from crossover.logs.builder import Builder
from crossover.logs.crash import root_cause
from crossover.logs.diagnoses import diagnose
from crossover.logs.incidents import Kind, Severity
from crossover.logs.load import findings
from crossover.logs.model import Diagnosis, EngineReport, Incident, Startup

if TYPE_CHECKING:
    from crossover.logs.reader import LogReader

_LONGEST = (
    "weights_load_s", "model_load_s", "model_load_gib", "compile_s", "kernel_warmup_s", "graph_capture_s",
    "graph_capture_gib", "engine_init_s",
)  # fmt: skip
_BINDING = ("kv_cache_gib", "kv_cache_tokens", "max_concurrency", "max_running_requests")
_SINGLE = (
    "container_created", "ready", "graph_sizes", "graph_count", "kv_cache_tokens_total", "dp_size",
    "max_concurrency_at_tokens", "context_length", "chunked_prefill_tokens",
)  # fmt: skip


def assemble(reader: LogReader) -> EngineReport:
    """Returns the report of all that `reader` has read so far."""
    from crossover.logs.reader import tables

    shared = next(builder for builder in reader.builders if builder.engine is None)
    engines = [builder for builder in reader.builders if builder.engine is not None]
    if reader.engine == "auto":
        shape = guess(reader.sample)  # engines share some wordings, so that votes may be equal
        chosen = max(engines, key=lambda builder: (builder.votes, builder.engine == shape))
        if not chosen.votes:
            chosen = next((one for one in engines if one.engine == shape), Builder(None))
    else:
        chosen = next(builder for builder in engines if builder.engine == reader.engine)
    table = next((table for table in tables() if table.engine == chosen.engine), None)
    if table is not None and chosen.engine is not None:
        table.finish(chosen)
    found = diagnose({**shared.evidence, **chosen.evidence}, chosen.config)
    incidents = [*_incidents(chosen, shared, found), *findings(chosen.intervals)]
    incidents += _no_start(chosen, shared, incidents, reader.lines)
    config: dict[str, Any] = dict(chosen.config)
    config["raw"] = dict(chosen.raw)
    return EngineReport(
        engine=chosen.engine,  # type: ignore[arg-type]
        version=chosen.version or shared.version,
        clock="outer" if shared.clock_outer + chosen.clock_outer and not chosen.clock_engine else "engine",
        startup=startup_of(chosen, shared),
        pools=[next(iter(ranks.values())) for ranks in chosen.pools.values()],
        memory=list(chosen.memory.values()),
        intervals=chosen.intervals,
        prefill_batches=chosen.prefill_batches,
        decode_batches=chosen.decode_batches,
        speculation=chosen.speculation,
        incidents=incidents,
        effective_config=config,
        lines=reader.lines,
        unparsed=reader.unparsed,
        diagnoses=tuple(found),
        unparsed_examples=tuple(reader.unparsed_examples),
    )


_SIGNS = {
    "vllm": re.compile(
        r"(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d "
        r"\[?[\w/]{1,60}\.(?:py|rs):\d|\((?:APIServer|RustFrontend|EngineCore|VllmWorker|Worker_|RayWorkerWrapper)"
        r"|/vllm/(?:v1|engine|entrypoints|worker)/|\bvllm serve\b|vllm\.entrypoints"
    ),
    "sglang": re.compile(
        r"/sglang/srt/|sglang\.launch_server|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:DP|TP|PP)\d|\bsglang serve\b"
    ),
}


def guess(sample: str) -> str | None:
    """Whose log it is where no statement was understood: by the shape of its lines."""
    found = {engine: len(pattern.findall(sample)) for engine, pattern in _SIGNS.items()}
    best = max(found, key=lambda engine: found[engine])
    return best if found[best] else None


def startup_of(chosen: Builder, shared: Builder) -> Startup:
    """Puts the start-up facts of all ranks together."""
    facts: dict[str, Any] = {name: chosen.longest(name) for name in _LONGEST}
    facts |= {name: chosen.smallest(name) for name in _BINDING}
    for name in _SINGLE:
        facts[name] = chosen.single.get(name, shared.single.get(name))
    for name in ("kv_cache_tokens", "max_running_requests"):
        facts[name] = int(facts[name]) if facts[name] is not None else None
    own = "own_ready" in chosen.facts  # the engine has a better word for it than the HTTP server
    facts["ready_seen"] = chosen.ready_seen or (shared.ready_seen and not own)
    if facts["graph_sizes"] is not None:
        facts["graph_sizes"] = tuple(facts["graph_sizes"])
        facts["graph_count"] = len(facts["graph_sizes"])
    return Startup(**facts)


_TRACEBACK_LINES = 200


def _incidents(chosen: Builder, shared: Builder, diagnoses: list[Diagnosis]) -> list[Incident]:
    found = sorted(chosen.incidents.report() + shared.incidents.report(), key=lambda item: item[0])
    result, previous = [], -1
    for number, incident in found:
        if incident.kind in (Kind.ENGINE_DIED, Kind.SCHEDULER_EXCEPTION):
            below = root_cause(shared, number - 1, number + _TRACEBACK_LINES)
            above = root_cause(shared, previous, number) if incident.kind == Kind.ENGINE_DIED else None
            cause = above or below or _earlier(found, previous, number)
            previous = number
            if cause is not None:
                incident = dataclasses.replace(
                    incident,
                    message=f"{incident.message[:200].rstrip('. ')}. Root cause: {cause}",
                    advice=f"look at the root cause: {cause[:200]}",
                )
        result.append(incident)
    return result + _diagnosed(diagnoses, {incident.kind for incident in result})


_END_LINES = 60


def _no_start(chosen: Builder, shared: Builder, known: list[Incident], lines: int) -> list[Incident]:
    """A log that ends with an exception before the server was ready, where no statement says that it failed."""
    errors = shared.facts.get("errors")
    if not errors or not 0 < errors[-1][0] - shared.facts.get("traceback", errors[-1][0]) < _TRACEBACK_LINES:
        return []
    if errors[-1][0] < lines - _END_LINES or chosen.ready_seen or shared.ready_seen or chosen.intervals:
        return []
    if not (chosen.version or chosen.raw or chosen.config):
        return []  # the log does not hold the start
    if any(incident.severity == Severity.ERROR or incident.kind == Kind.REQUEST_FAILED for incident in known):
        return []
    cause = root_cause(shared, errors[-1][0] - _TRACEBACK_LINES, lines)
    return [
        Incident(
            None,
            Kind.ENGINE_DIED,
            Severity.ERROR,
            1,
            f"the log ends with an exception before the server was ready: {cause}",
            f"look at the root cause: {(cause or '')[:200]}",
        )
    ]


def _earlier(found: list[tuple[int, Incident]], after: int, before: int) -> str | None:
    """The first error of another kind between two lines: no exception was printed, but what happened was."""
    kinds = (Kind.ENGINE_DIED, Kind.SCHEDULER_EXCEPTION, Kind.HEALTH_CHECK_FAILED)
    for number, incident in found:
        if after < number <= before and incident.severity == Severity.ERROR and incident.kind not in kinds:
            return incident.message
    return None


def _diagnosed(diagnoses: list[Diagnosis], known: set[str]) -> list[Incident]:
    """Diagnoses whose lines are no incidents of their own stand at the end, without a time."""
    return [
        Incident(None, item.kind, item.severity, 1, f"{item.conclusion} ({item.evidence[0][:160]})", item.advice)
        for item in diagnoses
        if item.kind not in known
    ]
