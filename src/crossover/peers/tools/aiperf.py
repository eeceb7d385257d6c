"""aiperf: its JSON and CSV summaries and its console table, checked against version 0.13.0.

Its `inter_token_latency` is (latency - TTFT) / (output tokens - tokens of the first chunk) of a request: a TPOT,
and ours where the first chunk carries one token. Its `inter_chunk_latency` is the gap a chunk, over all requests.
Reasoning stops the clock of TTFT. Its duration ends with the last response.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.errors import InputError
from crossover.peers.reading import Output, mapping
from crossover.peers.report import PeerReport
from crossover.peers.tools import statistic_table
from crossover.peers.tools.base import Plan, Tool, flags, prompt_texts
from crossover.peers.tools.statistic_report import make_report

if TYPE_CHECKING:
    from crossover.peers.running import PeerRun

_MEANINGS = {
    "time_to_first_token": "ttft-first-output",
    "time_to_first_output_token": "ttfot-first-content",
    "request_latency": "e2e-last-output",
    "inter_token_latency": "tpot-per-request-labelled-itl",
    "inter_chunk_latency": "gap-per-chunk",
    "output_token_throughput_per_user": "speed-per-user",
    "output_token_throughput": "output-over-wall",
    "request_throughput": "requests-over-wall",
}
_FOLDER, _SUMMARY = "artifacts", "profile_export_aiperf.json"
_HUB, _NAME, _COMMIT = "hub", "local/tokenizer", "0" * 40


def recognises(output: Output) -> bool:
    data = mapping(output.data)
    if output.data is not None:
        return "aiperf_version" in data or ("input_config" in data and "request_latency" in data)
    return "NVIDIA AIPerf" in output.text or "std" in statistic_table.csv_statistics(output.text)


def read(output: Output) -> list[PeerReport]:
    if output.data is not None:
        data = mapping(output.data)
        version = data.get("aiperf_version") or output.version
        return [make_report("aiperf", data, _MEANINGS, version)] if recognises(output) else []
    found = statistic_table.from_console(output.text, "AIPerf")
    exported = statistic_table.from_csv(output.text) if not found else None
    tables = found or ([exported] if exported else [])
    return [make_report("aiperf", table, _MEANINGS, output.version) for table in tables]


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
