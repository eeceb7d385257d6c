"""`vllm bench serve` (and benchmark_serving.py before it), checked against version 0.32.0.

Its columns: TTFT stops at the first event with choices, also at one that only names the role; an ITL is the
gap between two events, whatever tokens they carry; TPOT is ours; the peak counts events a second. Latencies
begin when a request leaves the concurrency limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.peers.console import number, whole
from crossover.peers.reading import Output, amount, count, mapping
from crossover.peers.recomputation import row
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools import serving_table
from crossover.peers.tools.base import Plan, Tool, flags, prompt_texts

if TYPE_CHECKING:
    from crossover.peers.running import PeerRun

_MEANINGS = {"ttft": "ttft-first-event", "tpot": "tpot-per-request", "itl": "gap-per-chunk", "e2e": "e2e-last-output"}
_RATES = {
    "Output token throughput (tok/s)": "output-over-wall",
    "Peak output token throughput (tok/s)": "peak-chunks-per-second",
    "Peak concurrent requests": "peak-requests-in-a-second",
    "Total token throughput (tok/s)": "total-over-wall",
    "Total Token throughput (tok/s)": "total-over-wall",
    "Request throughput (req/s)": "requests-over-wall",
    "Input token throughput (tok/s)": "input-over-wall",
    "Request goodput (req/s)": "goodput-requests",
    "Acceptance length": "acceptance-length",
}
_JSON_NAMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}
_JSON_RATES = {
    "output_throughput": "output-over-wall",
    "max_output_tokens_per_s": "peak-chunks-per-second",
    "max_concurrent_requests": "peak-requests-in-a-second",
    "total_token_throughput": "total-over-wall",
    "request_throughput": "requests-over-wall",
    "input_throughput": "input-over-wall",
    "spec_decode_acceptance_length": "acceptance-length",
}
# Keys of every version since 2023, and those that only SGLang's client has.
_ALWAYS = frozenset({"duration", "completed", "request_throughput"})
_OF_SGLANG = frozenset({"dataset_name", "total_output_tokens_retokenized"})
_STATISTIC = re.compile(r"(mean|median|std|min|max|p\d+(?:\.\d+)?)_(.*)_ms")
_RESULT = "result.json"


def recognises(output: Output) -> bool:
    data = mapping(output.data)
    if output.data is not None:
        own = set(data) >= _ALWAYS or set(data) >= {"endpoint_type", "output_throughput"}
        return own and not set(data) & _OF_SGLANG
    return "Serving Benchmark Result" in output.text and not serving_table.tells_backend(output.text)


def read(output: Output) -> list[PeerReport]:
    if output.data is not None:
        return [_from_json(mapping(output.data), output)]
    return [_from_table(table, output) for table in serving_table.tables(output.text)]


def _from_table(table: Mapping[str, str], output: Output) -> PeerReport:
    return PeerReport(
        tool="vllm-bench",
        version=output.version,
        backend=output.backend,
        requests=Requests(whole(table.get("Successful requests")), whole(table.get("Failed requests"))),
        duration_s=number(table.get("Benchmark duration (s)")),
        prompt_tokens=whole(table.get("Total input tokens")),
        completion_tokens=whole(table.get("Total generated tokens")),
        concurrency=serving_table.concurrency(table),
        figures=(
            *serving_table.distribution_figures(table, _MEANINGS),
            *serving_table.rate_figures(table, _RATES),
            *_acceptance("Acceptance rate (%)", number(table.get("Acceptance rate (%)"))),
        ),
        extra=_rate(serving_table.asked_rate(table)),
    )


def _acceptance(column: str, percent: float | None) -> tuple[Figure, ...]:
    return () if percent is None else (Figure(column, "acceptance-rate", "value", percent / 100),)


def _rate(asked: float | None) -> dict[str, float]:
    """The requests a second that were asked for, where there was a limit."""
    return {} if asked is None else {"requested_rate_per_s": asked}


def _from_json(data: Mapping[str, Any], output: Output) -> PeerReport:
    return PeerReport(
        tool="vllm-bench",
        version=output.version,
        backend=data.get("backend"),
        requests=Requests(count(data.get("completed")), count(data.get("failed"))),
        duration_s=amount(data.get("duration")),
        prompt_tokens=count(data.get("total_input_tokens")),
        completion_tokens=count(data.get("total_output_tokens")),
        concurrency=count(data.get("max_concurrency")),
        made_requests=count(data.get("num_prompts")),
        figures=(
            *_json_figures(data),
            *_acceptance("spec_decode_acceptance_rate", amount(data.get("spec_decode_acceptance_rate"))),
        ),
        extra=_rate(amount(data.get("request_rate"))),
        per_request=_rows(data),
        gaps_s=tuple(gap for gaps in data.get("itls") or () for gap in gaps or ()),
        gap_meaning="gap-per-chunk" if data.get("itls") else None,
    )


def _json_figures(data: Mapping[str, Any]) -> list[Figure]:
    found = []
    for key, value in data.items():
        match = _STATISTIC.fullmatch(key)
        name = _JSON_NAMES.get(match.group(2)) if match else None
        if match and name is not None:
            milliseconds, statistic = amount(value), match.group(1)
            seconds = milliseconds / 1e3 if milliseconds else None
            found.append(Figure(key, _MEANINGS[name], {"median": "p50"}.get(statistic, statistic), seconds))
    return found + [
        Figure(key, meaning, "value", amount(data.get(key))) for key, meaning in _JSON_RATES.items() if key in data
    ]


def _rows(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The single requests of `--save-detailed`; a request with an error text failed."""
    ttfts = data.get("ttfts") or []
    gaps, errors = data.get("itls") or [[]] * len(ttfts), data.get("errors") or [""] * len(ttfts)
    latencies = data.get("latencies") or [ttft + sum(own) for ttft, own in zip(ttfts, gaps, strict=False)]
    prompts = data.get("input_lens") or [None] * len(ttfts)
    lengths = data.get("output_lens") or [None] * len(ttfts)
    return tuple(
        row("failed" if error else "ok", amount(ttft) or None, amount(latency), count(prompt), count(length))
        for ttft, latency, prompt, length, error in zip(ttfts, latencies, prompts, lengths, errors, strict=False)
    )


def plan(run: PeerRun, _out: Path) -> Plan:
    texts = prompt_texts(run.prompts, "vllm bench serve")
    lines = [
        json.dumps({"prompt": text, "output_tokens": prompt["output_tokens"]})
        for text, prompt in zip(texts, run.prompts, strict=True)
    ]
    chat = run.api == "chat"
    options = {
        "backend": "openai-chat" if chat else "openai",
        "base-url": run.base_url,
        "endpoint": "/v1/chat/completions" if chat else "/v1/completions",
        "model": run.model,
        "tokenizer": run.tokenizer,
        "dataset-name": "custom",
        "dataset-path": "prompts.jsonl",
        "custom-output-len": -1,
        "disable-shuffle": True,
        "skip-chat-template": True,
        "num-prompts": len(texts),
        "max-concurrency": run.concurrency,
        "request-rate": run.rate_per_s,
        "seed": run.seed,
        "temperature": run.temperature,
        "ignore-eos": run.ignore_eos,
        "extra-body": json.dumps(run.extra) if run.extra else None,
        "ready-check-timeout-sec": 0,
        "percentile-metrics": "ttft,tpot,itl,e2el",
        "metric-percentiles": "50,90,99",
        "save-result": True,
        "save-detailed": True,
        "result-filename": _RESULT,
        "disable-tqdm": True,
    }
    return Plan(
        ("vllm", "bench", "serve", *flags(options)),
        files={"prompts.jsonl": "\n".join(lines) + "\n"},
        output=_RESULT,
        notes=("the tokenizer is only used to count where usage is missing",),
    )


TOOL = Tool(
    "vllm-bench",
    "vllm bench serve",
    recognises,
    read,
    environment="vllm-bench-0.32.0",
    plan=plan,
    audited_as_printed=True,
    key_variable="OPENAI_API_KEY",
)
