"""Makes the report of what was gathered: by the engine that spoke the most, and by what all engines share."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from crossover.logs.builder import Builder
from crossover.logs.diagnoses import diagnose
from crossover.logs.incidents import Told
from crossover.logs.lines import parse_any_head, seconds_of
from crossover.logs.load import findings
from crossover.logs.model import Diagnosis, EngineReport, Incident, Startup
from crossover.logs.verdict import no_start, stamped, with_causes, without_death

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
        chosen = max(engines, key=lambda builder: (builder.votes, builder.engine == shape, builder.hints))
        if not chosen.votes and not chosen.hints:
            chosen = next((one for one in engines if one.engine == shape), Builder(None))
    else:
        chosen = next(builder for builder in engines if builder.engine == reader.engine)
    table = next((table for table in tables() if table.engine == chosen.engine), None)
    if table is not None and chosen.engine is not None:
        table.finish(chosen)
    found = diagnose({**shared.evidence, **chosen.evidence}, chosen.config)
    told = _told(chosen, shared)
    incidents, failure = with_causes(told, shared)
    if failure is None or (not chosen.dead and not shared.dead and (chosen.ready_seen or shared.ready_seen)):
        failure = without_death(told, chosen, shared)
    incidents += _diagnosed(found, {incident.kind for incident in incidents})
    incidents += findings(chosen.intervals)
    if (ended := no_start(chosen, shared, incidents, reader.lines)) is not None:
        incidents.append(ended[0])
        failure = ended[1]
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
        failure=failure,
        newest_first=newest_first(reader.sample),
    )


_ORDERED_LINES = 300
_TIMES = 10


def newest_first(sample: str) -> bool:
    """Says whether a log stands upside down, as some collectors export it: of the times in it nearly all go back."""
    times = [
        seconds
        for line in sample.split("\n", _ORDERED_LINES)[:_ORDERED_LINES]
        if (seconds := seconds_of(parse_any_head(line[:160]).t_outer or parse_any_head(line[:160]).t)) is not None
    ]
    steps = [after - before for before, after in pairwise(times) if after != before]
    return len(steps) >= _TIMES and sum(step < 0 for step in steps) > 0.9 * len(steps)


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
    if found["sglang"] and "EngineCore" not in sample:
        return "sglang"  # it used to import vLLM, which then speaks too; the other way round that never was
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


def _told(chosen: Builder, shared: Builder) -> list[Told]:
    """All incidents in the order of the log; what both the engine's rows and the shared ones tell is one."""
    told: dict[tuple[int, str], Told] = {}
    for one in sorted(chosen.incidents.told() + shared.incidents.told(), key=lambda one: one.first):
        told.setdefault((one.first, one.incident.kind), one)
    return stamped(list(told.values()))


def _diagnosed(diagnoses: list[Diagnosis], known: set[str]) -> list[Incident]:
    """Diagnoses whose lines are no incidents of their own stand at the end, without a time."""
    return [
        Incident(None, item.kind, item.severity, 1, f"{item.conclusion} ({item.evidence[0][:160]})", item.advice)
        for item in diagnoses
        if item.kind not in known
    ]
