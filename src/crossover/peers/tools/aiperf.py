"""aiperf: its JSON summary and its records, checked against version 0.13.0.

Its `inter_token_latency` is (latency - TTFT) / (output tokens - tokens of the first chunk) of a request: a TPOT,
and ours where the first chunk carries one token. Its `inter_chunk_latency` is the gap a chunk, over all requests.
Reasoning stops the clock of TTFT. Its duration ends with the last response.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.errors import InputError
from crossover.peers.reading import Output, amount, count, mapping
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Plan, Tool, flags, prompt_texts

if TYPE_CHECKING:
    from crossover.peers.running import PeerRun

_DISTRIBUTIONS = {
    "time_to_first_token": "ttft-first-output",
    "time_to_first_output_token": "ttfot-first-content",
    "request_latency": "e2e-last-output",
    "inter_token_latency": "tpot-per-request-labelled-itl",
    "inter_chunk_latency": "gap-per-chunk",
    "output_token_throughput_per_user": "speed-per-user",
}
_VALUES = {"output_token_throughput": "output-over-wall", "request_throughput": "requests-over-wall"}
_STATISTICS = {"avg": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "min": "min", "max": "max"}
_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_FOLDER, _SUMMARY = "artifacts", "profile_export_aiperf.json"
_HUB, _NAME, _COMMIT = "hub", "local/tokenizer", "0" * 40


def recognises(output: Output) -> bool:
    data = mapping(output.data)
    return "aiperf_version" in data or ("input_config" in data and "request_latency" in data)


def read(output: Output) -> list[PeerReport]:
    data = mapping(output.data)
    if not recognises(output):
        return []
    ok = count(_value(data, "request_count"))
    return [
        PeerReport(
            tool="aiperf",
            version=data.get("aiperf_version") or output.version,
            requests=Requests(ok, count(_value(data, "error_request_count")) or (0 if ok else None)),
            duration_s=_duration(data),
            prompt_tokens=_total(data, "total_isl", "input_sequence_length", ok),
            completion_tokens=_total(data, "total_osl", "output_sequence_length", ok),
            concurrency=_concurrency(data),
            achieved_concurrency=amount(_value(data, "effective_concurrency")),
            figures=tuple(_figures(data)),
        )
    ]


def _value(data: Mapping[str, Any], name: str) -> Any:
    return mapping(data.get(name)).get("avg")


def _duration(data: Mapping[str, Any]) -> float | None:
    found = mapping(data.get("benchmark_duration"))
    value = amount(found.get("avg"))
    return None if value is None else value * _UNITS.get(str(found.get("unit")), 1.0)


def _total(data: Mapping[str, Any], total: str, mean: str, ok: int | None) -> int | None:
    found = count(_value(data, total))
    average = amount(_value(data, mean))
    return found if found is not None else None if average is None or ok is None else round(average * ok)


def _concurrency(data: Mapping[str, Any]) -> int | None:
    """Looks for the asked concurrency wherever this version keeps its configuration."""
    waiting = [mapping(data.get("input_config"))]
    while waiting:
        part = waiting.pop()
        found = count(part.get("concurrency"))
        if found is not None:
            return found
        waiting += [value for value in part.values() if isinstance(value, Mapping)]
        waiting += [
            item for value in part.values() if isinstance(value, list) for item in value if isinstance(item, Mapping)
        ]
    return None


def _figures(data: Mapping[str, Any]) -> list[Figure]:
    found = []
    for name, meaning in _DISTRIBUTIONS.items():
        statistics = mapping(data.get(name))
        factor = _UNITS.get(str(statistics.get("unit")), 1.0)
        for key, statistic in _STATISTICS.items():
            value = amount(statistics.get(key))
            if key in statistics:
                found.append(Figure(name, meaning, statistic, value * factor if value else None))
    return found + [
        Figure(name, meaning, "value", amount(_value(data, name))) for name, meaning in _VALUES.items() if name in data
    ]


def plan(run: PeerRun, out: Path) -> Plan:
    texts = prompt_texts(run.prompts, "aiperf")
    lines = [
        json.dumps({"type": "single_turn", "text": text, "output_length": prompt["output_tokens"]})
        for text, prompt in zip(texts, run.prompts, strict=True)
    ]
    options = {
        "model": run.model,
        "url": run.base_url,
        "endpoint-type": "chat" if run.api == "chat" else "completions",
        "streaming": True,
        "input-file": "prompts.jsonl",
        "custom-dataset-type": "single_turn",
        "dataset-sampling-strategy": "sequential",
        "concurrency": run.concurrency,
        "request-rate": run.rate_per_s,
        "request-count": len(texts),
        "tokenizer": _NAME,
        "use-server-token-count": True,
        "random-seed": run.seed,
        "artifact-dir": _FOLDER,
        "ui": "none",
    }
    extra = ["--extra-inputs", f"temperature:{run.temperature:g}"]
    extra += ["--extra-inputs", "ignore_eos:true"] if run.ignore_eos else []
    extra += ["--extra-inputs", json.dumps(run.extra)] if run.extra else []
    return Plan(
        ("aiperf", "profile", *flags(options), *extra),
        files={"prompts.jsonl": "\n".join(lines) + "\n", **_hub(run.tokenizer)},
        environment={"HF_HUB_CACHE": str(out.absolute() / _HUB)},
        output=f"{_FOLDER}/{_SUMMARY}",
        notes=("token counts are the server's; the tokenizer is loaded but not relied on",),
    )


def _hub(tokenizer: Path | None) -> dict[str, str]:
    """Lays the tokenizer out as a hub's cache: offline, aiperf takes it from there alone and from no folder."""
    if tokenizer is None:
        raise InputError(
            "aiperf needs a tokenizer", place="tokenizer", remedy="give the folder of the model's tokenizer"
        )
    root = f"{_HUB}/models--{_NAME.replace('/', '--')}"
    files = {f"{root}/refs/main": _COMMIT}
    for path in sorted(tokenizer.glob("*.json")):
        files[f"{root}/snapshots/{_COMMIT}/{path.name}"] = path.read_text("utf-8")
    return files


TOOL = Tool("aiperf", "aiperf", recognises, read, environment="aiperf-0.13.0", plan=plan)
