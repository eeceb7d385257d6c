"""guidellm: the JSON report, CSV and console tables of 0.2 to 0.8, checked against 0.5.3 and 0.8.1.

Its `time_per_output_token_ms` is (last - first token) / tokens in 0.2 and 0.3.0, below its ITL, and has TTFT in it
since, which lifts it above; its `inter_token_latency_ms` is (last token - first token) / (tokens - 1) of a request,
that is a TPOT, and averaged over tokens where its count exceeds the requests. Gaps are not recorded. Zero in a group
without samples means missing. Before 0.8 its TTFT waited for `content`, so that reasoning did not stop the clock, and
its output throughput was taken over the span of the events that it counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.peers.reading import Output, amount, count, mapping
from crossover.peers.recomputation import row
from crossover.peers.report import FAILED, INCOMPLETE, OK, Figure, PeerReport, Requests
from crossover.peers.tools import guidellm_tables
from crossover.peers.tools.base import Plan, Tool, prompt_texts

if TYPE_CHECKING:
    from crossover.peers.running import PeerRun

_GROUPS = {"successful": OK, "errored": FAILED, "incomplete": INCOMPLETE}
_PERCENTILES = ("p50", "p90", "p95", "p99")
_NEW_RATE_SINCE = (0, 8)
_RESULT = "report.json"


def recognises(output: Output) -> bool:
    if output.data is None:
        return bool(guidellm_tables.from_console(output.text) or guidellm_tables.from_csv(output.text))
    benchmarks = mapping(output.data).get("benchmarks")
    return isinstance(benchmarks, list) and bool(benchmarks) and "metrics" in mapping(benchmarks[0])


def read(output: Output) -> list[PeerReport]:
    if output.data is None:
        tables = guidellm_tables.from_console(output.text) or guidellm_tables.from_csv(output.text)
        return [_report(one, output.version) for one in tables]
    data = mapping(output.data)
    version = mapping(data.get("metadata")).get("guidellm_version") or output.version
    benchmarks = data.get("benchmarks")
    return [_report(mapping(one), version) for one in benchmarks] if isinstance(benchmarks, list) else []


def _report(data: Mapping[str, Any], version: str | None) -> PeerReport:
    metrics = mapping(data.get("metrics"))
    totals = mapping(metrics.get("request_totals")) or mapping(data.get("request_totals"))
    tokens = mapping(data.get("tokens"))
    ok = count(totals.get("successful"))
    return PeerReport(
        tool="guidellm",
        version=version,
        requests=Requests(ok, count(totals.get("errored")), count(totals.get("incomplete"))),
        duration_s=amount(data.get("duration")),
        prompt_tokens=tokens.get("prompt_tokens", _total(metrics, "prompt_token_count", ok)),
        completion_tokens=tokens.get("completion_tokens", _total(metrics, "output_token_count", ok)),
        concurrency=_streams(data),
        achieved_concurrency=amount(_successful(metrics, "request_concurrency").get("mean")),
        figures=tuple(_figures(metrics, ok, version)),
        per_request=tuple(_rows(mapping(data.get("requests")))),
    )


def _successful(metrics: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The statistics of successful requests; none where there is no sample, since those are all zero."""
    found = mapping(mapping(metrics.get(name)).get("successful"))
    return found if found.get("count") != 0 else {}


def _total(metrics: Mapping[str, Any], name: str, ok: int | None) -> int | None:
    mean = amount(_successful(metrics, name).get("mean"))
    return None if mean is None or ok is None else round(mean * ok)


def _streams(data: Mapping[str, Any]) -> int | None:
    """The strategy stood under `args`, then `scheduler`, then `config`; one request after the other is one stream."""
    places = (mapping(mapping(data.get(place)).get("strategy")) for place in ("config", "scheduler", "args"))
    strategy: Mapping[str, Any] = next((found for found in places if found), {})
    return 1 if strategy.get("type_") == "synchronous" else count(strategy.get("streams"))


def _figures(metrics: Mapping[str, Any], ok: int | None, version: str | None) -> list[Figure]:
    tells_apart = "time_to_first_output_token_ms" in metrics
    gaps = amount(_successful(metrics, "inter_token_latency_ms").get("count"))
    weighted = gaps is None or ok is None or gaps > ok
    meanings = {
        "time_to_first_token_ms": ("ttft-first-output" if tells_apart else "ttft-first-content", 1e-3),
        "time_to_first_output_token_ms": ("ttfot-first-content", 1e-3),
        "inter_token_latency_ms": ("tpot-token-weighted" if weighted else "tpot-per-request-labelled-itl", 1e-3),
        "time_per_output_token_ms": (_per_token(metrics), 1e-3),
        "request_latency": ("e2e-stream-end", 1.0),
    }
    found = []
    for name, (meaning, factor) in meanings.items():
        if name in metrics:
            found += _distribution(name, meaning, factor, _successful(metrics, name))
    rate = "output-over-wall" if _numbers(version) >= _NEW_RATE_SINCE else "output-over-counted-span"
    rates = {"output_tokens_per_second": rate, "requests_per_second": "request-rate-between-events"}
    for name, meaning in rates.items():
        if name in metrics:
            found.append(Figure(name, meaning, "value", amount(_successful(metrics, name).get("mean")) or None))
    return found


def _per_token(metrics: Mapping[str, Any]) -> str:
    """Without TTFT it lies below the ITL, which divides the same time by one token less."""
    for statistic in ("mean", "p50"):
        own, gap = (
            amount(_statistics(metrics, name).get(statistic))
            for name in ("time_per_output_token_ms", "inter_token_latency_ms")
        )
        if own and gap:
            return "decode-per-token" if own <= gap else "latency-per-token"
    return "latency-per-token"


def _statistics(metrics: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    group = _successful(metrics, name)
    return {"mean": group.get("mean"), **mapping(group.get("percentiles"))}


def _distribution(name: str, meaning: str, factor: float, statistics: Mapping[str, Any]) -> list[Figure]:
    percentiles = mapping(statistics.get("percentiles"))
    values = {"mean": statistics.get("mean"), **{key: percentiles.get(key) for key in _PERCENTILES}}
    if statistics:
        values = {key: value for key, value in values.items() if value is not None}
    return [Figure(name, meaning, key, _scaled(value, factor)) for key, value in values.items()]


def _scaled(value: Any, factor: float) -> float | None:
    found = amount(value)
    return found * factor if found else None


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version or "0")[:3])


def _rows(groups: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [_row(mapping(request), status) for group, status in _GROUPS.items() for request in groups.get(group) or ()]


def _row(request: Mapping[str, Any], status: str) -> Mapping[str, Any]:
    """End to end is taken to the last token where its time is there, else to the end of the request."""
    timings = mapping(mapping(request.get("info")).get("timings"))
    first = amount(timings.get("request_start")) or amount(request.get("start_time"))
    last = amount(timings.get("last_token_iteration")) or amount(request.get("last_token_time"))
    e2e = last - first if first and last else amount(request.get("request_latency")) or None
    return row(
        status,
        _scaled(request.get("time_to_first_token_ms"), 1e-3),
        e2e,
        count(request.get("prompt_tokens")),
        count(request.get("output_tokens")),
    )


def plan(run: PeerRun, _out: Path) -> Plan:
    texts = prompt_texts(run.prompts, "guidellm")
    lines = [
        json.dumps({"prompt": text, "output_tokens_count": prompt["output_tokens"]})
        for text, prompt in zip(texts, run.prompts, strict=True)
    ]
    backend = {
        "kind": "openai_http",
        "target": run.base_url,
        "model": run.model,
        "request_format": "/v1/chat/completions" if run.api == "chat" else "/v1/completions",
        "validate_backend": False,
        "extras": {"body": {"temperature": run.temperature, "ignore_eos": run.ignore_eos, **run.extra}},
    }
    profile = (
        f"kind=concurrent,streams={run.concurrency}" if run.concurrency else f"kind=poisson,rate={run.rate_per_s or 1}"
    )
    tokenizer = ("--tokenizer", f"kind=hf_auto,model={run.tokenizer}") if run.tokenizer else ()
    words = (
        "guidellm", "run", "--backend", json.dumps(backend), "--profile", profile,
        "--constraint", f"kind=max_requests,count={len(texts)}",
        "--data", "kind=json_file,path=prompts.jsonl",
        "--seed", f"kind=static,value={run.seed}",
        "--output", f"kind=json,path={_RESULT}", "--disable-progress", *tokenizer,
    )  # fmt: skip
    return Plan(words, files={"prompts.jsonl": "\n".join(lines) + "\n"}, output=_RESULT)


TOOL = Tool("guidellm", "guidellm", recognises, read, environment="guidellm-0.8.1", plan=plan)
