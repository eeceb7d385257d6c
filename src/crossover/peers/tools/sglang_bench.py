"""`sglang.bench_serving`, checked against its releases from 0.5.3 to 0.5.23.

What its ITL is depends on the backend and the version: the native backend shares a gap out over the tokens that came;
the OpenAI ones take the gap a chunk, but since 0.5.4.post1 those of SGLang share it out over the tokens of the chunk's
text, tokenized again, if the server speculates. Likewise the peak counts tokens or chunks, and reasoning stops the
clock of TTFT since 0.5.12. An output that does not tell is not compared.
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

_NATIVE = frozenset({"sglang", "sglang-native"})
_SHARES_OUT = frozenset({"sglang-oai", "sglang-oai-chat"})
_SHARES_OUT_SINCE = (0, 5, 4, 1)
_KNOWS_REASONING_SINCE = (0, 5, 12)
_RATES = {
    "Output token throughput (tok/s)": "output-over-wall",
    "Input token throughput (tok/s)": "input-over-wall",
    "Total token throughput (tok/s)": "total-over-wall",
    "Total throughput (tok/s)": "total-over-wall",
    "Request throughput (req/s)": "requests-over-wall",
    "Peak concurrent requests": "peak-requests-in-a-second",
    "Accept length": "acceptance-length",
}
_PEAK = "Peak output token throughput (tok/s)"
_RETOKENIZED = "Total generated tokens (retokenized)"
_JSON_RATES = {
    "output_throughput": "output-over-wall",
    "input_throughput": "input-over-wall",
    "total_throughput": "total-over-wall",
    "request_throughput": "requests-over-wall",
    "max_concurrent_requests": "peak-requests-in-a-second",
    "accept_length": "acceptance-length",
}
_JSON_NAMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e_latency": "e2e"}
_RESULT = "result.jsonl"


def meanings(backend: str | None, version: str | None, *, speculates: bool | None) -> dict[str, str]:
    """Returns the meaning of each column for a backend and a version; what is not told is of unknown kind."""
    return {
        "ttft": _first(version),
        "tpot": "tpot-per-request",
        "itl": _gap(backend, version, speculates),
        "e2e": "e2e-last-output",
    }


def _gap(backend: str | None, version: str | None, speculates: bool | None) -> str:
    if backend is None:
        return "gap-of-unknown-kind"
    if backend in _NATIVE:
        return "gap-per-token"
    if speculates is False or backend not in _SHARES_OUT:
        return "gap-per-chunk"
    if version is None:
        return "gap-of-unknown-kind"
    return "gap-per-retokenized-token" if _numbers(version) >= _SHARES_OUT_SINCE else "gap-per-chunk"


def _first(version: str | None) -> str:
    known = version is not None and _numbers(version) >= _KNOWS_REASONING_SINCE
    return "ttft-first-output" if known else "ttft-first-content"


def peak(backend: str | None) -> str:
    """Returns the meaning of the peak throughput for a backend."""
    if backend is None:
        return "peak-of-unknown-kind"
    return "peak-tokens-per-second" if backend in _NATIVE else "peak-chunks-per-second"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def recognises(output: Output) -> bool:
    data = mapping(output.data)
    if output.data is not None:
        return "output_throughput" in data and bool({"dataset_name", "total_output_tokens_retokenized"} & set(data))
    return serving_table.tells_backend(output.text) or _is_fragment(output.text)


def _is_fragment(text: str) -> bool:
    return "Serving Benchmark Result" not in text and "Median ITL (ms):" in text


def read(output: Output) -> list[PeerReport]:
    if output.data is not None:
        return [_from_json(mapping(output.data), output)]
    return [_from_table(table, output) for table in serving_table.tables(output.text)]


def _from_table(table: Mapping[str, str], output: Output) -> PeerReport:
    backend = table.get("Backend") or output.backend
    accept = number(table.get("Accept length"))
    speculates = None if accept is None else accept > 1
    figures = serving_table.distribution_figures(table, meanings(backend, output.version, speculates=speculates))
    return PeerReport(
        tool="sglang-bench",
        version=output.version,
        backend=backend,
        requests=Requests(whole(table.get("Successful requests"))),
        duration_s=number(table.get("Benchmark duration (s)")),
        prompt_tokens=whole(table.get("Total input tokens")),
        completion_tokens=whole(table.get("Total generated tokens")),
        concurrency=serving_table.concurrency(table),
        achieved_concurrency=number(table.get("Concurrency")),
        figures=(*figures, *serving_table.rate_figures(table, {**_RATES, _PEAK: peak(backend)})),
        extra={"retokenized_completion_tokens": whole(table.get(_RETOKENIZED))} if _RETOKENIZED in table else {},
    )


def _from_json(data: Mapping[str, Any], output: Output) -> PeerReport:
    backend = data.get("backend") or output.backend
    accept = amount(data.get("accept_length"))
    means = meanings(backend, output.version, speculates=accept is not None and accept > 1)
    figures = [figure for key, value in data.items() if (figure := _json_figure(key, value, means)) is not None]
    rates = {**_JSON_RATES, "max_output_tokens_per_s": peak(backend)}
    figures += [Figure(key, meaning, "value", amount(data.get(key))) for key, meaning in rates.items() if key in data]
    gaps = tuple(gap for own in data.get("itls") or () for gap in own or ())
    # The details hold the gaps as they came, whatever the summary made of them.
    gap_meaning = "gap-per-token" if backend in _NATIVE else "gap-per-chunk"
    return PeerReport(
        tool="sglang-bench",
        version=output.version,
        backend=backend,
        requests=Requests(count(data.get("completed"))),
        duration_s=amount(data.get("duration")),
        prompt_tokens=count(data.get("total_input_tokens")),
        completion_tokens=count(data.get("total_output_tokens")),
        concurrency=count(data.get("max_concurrency")),
        achieved_concurrency=amount(data.get("concurrency")),
        figures=tuple(figures),
        per_request=_rows(data),
        gaps_s=gaps,
        gap_meaning=gap_meaning if gaps else None,
        extra={"retokenized_completion_tokens": count(data.get("total_output_tokens_retokenized"))},
    )


def _json_figure(key: str, value: Any, means: Mapping[str, str]) -> Figure | None:
    statistic, _, rest = key.partition("_")
    name = _JSON_NAMES.get(rest.removesuffix("_ms"))
    if not rest.endswith("_ms") or name is None:
        return None
    milliseconds = amount(value)
    return Figure(
        key, means[name], {"median": "p50"}.get(statistic, statistic), milliseconds / 1e3 if milliseconds else None
    )


def _rows(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The single requests of `--output-details`, whose latency is TTFT plus the gaps."""
    ttfts, gaps = data.get("ttfts") or [], data.get("itls") or []
    errors = data.get("errors") or [""] * len(ttfts)
    prompts, lengths = data.get("input_lens") or [None] * len(ttfts), data.get("output_lens") or [None] * len(ttfts)
    return tuple(
        row(
            "failed" if error else "ok",
            amount(ttft) or None,
            ttft + sum(own or ()) if ttft else None,
            count(prompt),
            count(length),
        )
        for ttft, own, prompt, length, error in zip(ttfts, gaps, prompts, lengths, errors, strict=False)
    )


def plan(run: PeerRun, _out: Path) -> Plan:
    texts = prompt_texts(run.prompts, "sglang.bench_serving")
    lines = [json.dumps({"conversations": [{"value": text}, {"value": "-"}]}) for text in texts]
    options = {
        "backend": "sglang-oai-chat" if run.api == "chat" else "sglang-oai",
        "base-url": run.base_url,
        "model": run.model,
        "tokenizer": run.tokenizer,
        "dataset-name": "custom",
        "dataset-path": "prompts.jsonl",
        "sharegpt-output-len": run.single_output_length("sglang.bench_serving"),
        "num-prompts": len(texts),
        "max-concurrency": run.concurrency,
        "request-rate": run.rate_per_s,
        "seed": run.seed,
        "disable-ignore-eos": not run.ignore_eos,
        "extra-request-body": json.dumps({"temperature": run.temperature, **run.extra}),
        "warmup-requests": 0,
        "output-file": _RESULT,
        "output-details": True,
        "disable-tqdm": True,
    }
    return Plan(
        ("python", "-m", "sglang.bench_serving", *flags(options)),
        files={"prompts.jsonl": "\n".join(lines) + "\n"},
        output=_RESULT,
        notes=("it shuffles the prompts by its own seed",),
    )


TOOL = Tool(
    "sglang-bench",
    "sglang.bench_serving",
    recognises,
    read,
    environment="sglang-bench-0.5.23",
    plan=plan,
    audited_as_printed=True,
    key_variable="OPENAI_API_KEY",
)
