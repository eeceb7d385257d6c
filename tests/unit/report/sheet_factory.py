"""Makes whole report sheets by hand, with any fault wished for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

# End-to-end s, stable decode tok/s, TTFT s, acceptance length of ten requests: the published order of things.
BASE = {
    ("vllm", 64_000): (84.4, 501.0, 34.8, 2.39),
    ("sglang", 64_000): (141.5, 335.0, 41.7, 1.38),
    ("vllm", 200_000): (284.6, 163.0, 125.2, 1.11),
    ("sglang", 200_000): (217.8, 268.0, 59.0, 1.11),
}
CONFIG = {
    "vllm": {
        "tensor_parallel": 8,
        "decode_context_parallel": 1,
        "kv_cache_dtype": "fp8",
        "attention_backend": "FLASHINFER_MLA",
    },
    "sglang": {
        "tensor_parallel": 8,
        "decode_context_parallel": 8,
        "kv_cache_dtype": "fp8",
        "attention_backend": "cutedsl_mla",
    },
}


def key_of(text: str) -> str:
    """Returns a key of 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


class SheetFactory:
    """Builds a sheet under `root` and writes it with `write`; every document can be changed before that."""

    def __init__(self, root: Path, *, simulated: bool = True, title: str = "vLLM and SGLang on Kimi-K3") -> None:
        self.root = root
        self.sheet: dict[str, Any] = {
            "experiment": "default",
            "title": title,
            "simulated": simulated,
            "hardware": {"gpu": "NVIDIA B300", "gpus": 8},
            "published": None,
            "key": key_of("report"),
            "variants": {},
            "cells": [],
            "deployments": [],
            "retest": [],
            "plan": {"deployments": []},
            "versions": {"crossover": "0.1.0"},
        }

    def put(self, path: str, document: Any) -> str:
        """Writes a JSON document below the root and returns its path."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return path

    def variant(self, name: str, engine: str | None = None, **more: Any) -> None:
        """Adds a variant."""
        self.sheet["variants"][name] = {
            "engine": engine or name,
            "version": "0.32.0",
            "image": f"example/{engine or name}:kimi-k3",
            "launcher": "process",
            "arguments": {"tensor-parallel-size": 8, "enable-prefix-caching": True},
            "environment": {"A": "1"},
            "simulated": self.sheet["simulated"],
            **more,
        }

    def cell(
        self,
        variant: str,
        context: int,
        metrics: dict[str, Any],
        *,
        dataset: str = "random",
        concurrency: int = 10,
        repeat: int = 0,
        engine_report: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Makes a cell with its documents and returns its row (which the caller adds where it belongs)."""
        name = f"{variant}/{dataset}/{context}/c{concurrency}/r{repeat}"
        key = key_of(f"run {name}")
        metrics_key = key_of(f"metrics {name}")
        row = {
            "id": name,
            "variant": variant,
            "dataset": dataset,
            "input_tokens": context,
            "output_tokens": 3000,
            "concurrency": concurrency,
            "rate_per_s": None,
            "repeat": repeat,
            "run_key": key,
            "run": f"results/run/{key}",
            "metrics": self.put(f"results/metrics/{metrics_key}/metrics.json", metrics),
        }
        recipe = {"workload": {"dataset": dataset, "input_tokens": context}, "engine": variant}
        entry = {
            "kind": "run",
            "key": key,
            "recipe": recipe,
            "observed": {"host": "node-1"},
            "files": {"reads.parquet": "ab" * 32},
        }
        self.put(f"results/run/{key}/entry.json", entry)
        if engine_report is not None:
            row["engine_report"] = self.put(f"results/engine_report/{key_of('er' + name)}/report.json", engine_report)
        return row

    def deployment(self, variant: str, rows: list[dict[str, Any]], prepare_s: int = 600) -> None:
        """Adds a deployment whose timeline holds the cells one after the other, 200 s each."""
        key = key_of(f"deployment {variant}")
        entry = f"results/deployment/{key}"
        at = prepare_s + 40
        cells = []
        for row in rows:
            cells.append({"id": row["id"], "start": stamp(at), "end": stamp(at + 200)})
            at += 202
        self.put(
            f"{entry}/timeline.json",
            {
                "launched": stamp(0),
                "ready": stamp(prepare_s),
                "warmup_start": stamp(prepare_s),
                "warmup_end": stamp(prepare_s + 38),
                "cells": cells,
                "stopped": stamp(at + 5),
            },
        )
        self.put(
            f"{entry}/entry.json",
            {"kind": "deployment", "key": key, "recipe": {"engine": variant}, "observed": {}, "files": {}},
        )
        self.put(f"{entry}/server.json", {"pid": 1, "command": ["serve"]})
        self.sheet["deployments"].append(
            {"variant": variant, "key": key, "entry": entry, "cells": [row["id"] for row in rows]}
        )
        self.sheet["plan"]["deployments"].append({"variant": variant, "key": key, "predicted_s": 1000.0})

    def write(self) -> Path:
        """Writes the sheet and returns its path."""
        return self.root / self.put("sheet.json", self.sheet)


def stamp(second: float) -> str:
    """Returns a time of day on one date, to the nanosecond."""
    whole = int(second)
    return f"2026-11-29T{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.123456789Z"


def spread(mean: float, unit: str, n: int = 10, width: float = 0.1) -> dict[str, Any]:
    """Returns a distribution around `mean`, with the percentiles withheld that ten requests cannot bound."""
    low, high = mean * (1 - width), mean * (1 + width)
    return {
        "unit": unit,
        "n": n,
        "mean": mean,
        "min": low,
        "max": high,
        "p50": mean,
        "p90": None,
        "p99": None,
        "ci95": {"mean": [mean * 0.97, mean * 1.03], "p50": [low, high]},
        "withheld": {
            "p90": "90 % needs 29 requests, there are 10",
            "p99": "99 % needs 299 requests, there are 10",
        },
    }


def metrics(engine: str, context: int, *, simulated: bool = True, factor: float = 1.0) -> dict[str, Any]:
    """Returns the metrics of a cell of the published order; other contexts lie between and beyond."""
    e2e, decode, ttft, accept = _between(engine, context)
    e2e, ttft, decode = e2e * factor, ttft * factor, decode / factor
    tpot = (e2e - ttft) / 2999
    total = e2e * 1.05
    times = [total * step / 40 for step in range(41)]
    chunks = [
        {"context_tokens": 32768 * k, "new_tokens": 32768, "tok_s": 32768 / (1.459 + 0.1076 * k)}
        for k in range(max(1, context // 32768))
    ]
    return {
        "status": "ok",
        "reason": None,
        "log_tail": [],
        "simulated": simulated,
        "clock_scale": 1.0,
        "workload": {"dataset": "random", "input_tokens": context, "output_tokens": 3000, "concurrency": 10},
        "requests": {"ok": 10, "failed": 0, "incomplete": 0},
        "tokens": {"prompt": 10 * context, "completion": 30_000, "source": "usage"},
        "duration_s": total,
        "metrics": {
            "ttft_s": spread(ttft, "s"),
            "ttfot_s": spread(ttft * 1.3, "s"),
            "e2e_s": spread(e2e, "s"),
            "tpot_s": spread(tpot, "s"),
            "itl_s": spread(tpot, "s", n=29_990),
            "icl_s": spread(tpot * accept, "s", n=12_000),
            "output_tok_s": {"unit": "tok/s", "value": 30_000 / total, "withheld": None},
            "stable_decode_tok_s": {
                "unit": "tok/s",
                "value": decode,
                "withheld": None,
                "n": 24,
                "ci95": [decode * 0.96, decode * 1.04],
            },
            "goodput": {"unit": "share", "value": None, "withheld": None},
        },
        "audits": [
            {
                "audit": "bound",
                "verdict": "passed",
                "subject": "output_tok_s",
                "reported": 1,
                "bound": 2,
                "why": "",
                "advice": "",
                "withholds": [],
            },
            {
                "audit": "closure",
                "verdict": "passed",
                "subject": "e2e_s",
                "why": "",
                "advice": "",
                "withholds": [],
            },
            {
                "audit": "sample_floor",
                "verdict": "under-sampled",
                "subject": "ttft_s.p90",
                "why": "ten requests cannot bound a 90th percentile",
                "advice": "send at least 29 requests",
                "withholds": ["ttft_s.p90"],
            },
        ],
        "contamination": {"requests": [], "metrics_without": {}},
        "engine": {
            "acceptance_length": {"mean": accept, "n": 30},
            "prefill_chunks": chunks,
            "prefix_hit_rate": 0.0,
            "stable_decode_tok_s": {"mean": decode * 0.99, "min": decode * 0.9, "max": decode * 1.1, "n": 24},
            "startup": {
                "weights_load_s": 163.8,
                "model_load_s": 210.0,
                "compile_s": 0.0,
                "graph_capture_s": 86.0,
                "engine_init_s": 409.6,
            },
            "effective_config": CONFIG.get(engine, {}),
            "incidents": [
                {
                    "t": None,
                    "kind": "jit_compile",
                    "severity": "warning",
                    "count": 4,
                    "message": "kernel compiled during inference",
                    "advice": "cover these shapes in the warm-up",
                }
            ],
        },
        "series": {
            "t_s": times,
            "running": [min(10, step) if step < 36 else 40 - step for step in range(41)],
            "output_tok_s": [decode] * 41,
        },
        "fitness": {"clock": "kernel"},
    }


def failed_metrics(
    reason: str = "the server ended with exit status 137", tail: list[str] | None = None
) -> dict[str, Any]:
    """Returns the metrics document of a failed cell."""
    lines = tail or [
        "INFO 11-29 20:53:26 [loggers.py:127] Engine 000: Running: 10 reqs",
        "ERROR EngineCore died: CUDA out of memory",
    ]
    return {
        "status": "failed",
        "reason": reason,
        "log_tail": lines,
        "simulated": True,
        "clock_scale": 1.0,
        "metrics": {},
    }


def full(root: Path, *, simulated: bool = True) -> SheetFactory:
    """Returns a sheet of eight cells: one failed, one with a withheld figure, one contaminated."""
    factory = SheetFactory(root, simulated=simulated)
    for engine in ("vllm", "sglang"):
        factory.variant(engine)
        rows = []
        for dataset in ("random", "sharegpt-shaped"):
            for context in (64_000, 200_000):
                document = metrics(engine, context, simulated=simulated, factor=1.0 if dataset == "random" else 0.9)
                _plant(document, engine, dataset, context)
                if (engine, dataset, context) == ("sglang", "sharegpt-shaped", 200_000):
                    document = failed_metrics()
                rows.append(factory.cell(engine, context, document, dataset=dataset))
        factory.sheet["cells"] += rows
        factory.deployment(engine, rows)
    factory.sheet["retest"] = [_measured_item(factory, simulated), _open_item()]
    return factory


def _plant(document: dict[str, Any], engine: str, dataset: str, context: int) -> None:
    if (engine, dataset, context) == ("vllm", "sharegpt-shaped", 200_000):
        document["metrics"]["output_tok_s"]["withheld"] = "impossible: 1111.6 tok/s is 10.9 times what wall time allows"
        document["audits"][0].update(
            verdict="impossible",
            why="1111.6 tok/s is 10.9 times what wall time allows",
            advice="divide by wall time",
            withholds=["output_tok_s"],
        )
    if (engine, dataset, context) == ("vllm", "random", 64_000):
        cleaner = {**document["metrics"], "ttft_s": spread(31.0, "s", n=6)}
        document["contamination"] = {
            "requests": [{"request": r, "kinds": ["jit_compile"]} for r in range(4)],
            "metrics_without": cleaner,
        }
        document["audits"].append(
            {
                "audit": "contamination",
                "verdict": "contaminated",
                "subject": "ttft_s",
                "why": "4 of 10 requests overlap JIT compilation",
                "advice": "retest item 8",
                "withholds": [],
            }
        )


def _measured_item(factory: SheetFactory, simulated: bool) -> dict[str, Any]:
    cells = []
    for context in (64_000, 200_000):
        row = factory.cell("vllm-prefill-4096", context, metrics("vllm", context, simulated=simulated, factor=0.93))
        cells.append(row)
    factory.variant("vllm-prefill-4096", engine="vllm")
    return {
        "id": 1,
        "title": "Long prefills in smaller parts",
        "status": "measured",
        "cells": cells,
        "hypothesis": "Long prefills that take the whole budget hold up running requests.",
        "change": {
            "variants": {"vllm-prefill-4096": {"inherits": "vllm", "arguments": {"long-prefill-token-threshold": 4096}}}
        },
        "decision": {
            "text": "Keep the threshold where mean E2E does not grow.",
            "metric": "e2e_s",
            "candidate": "vllm-prefill-4096",
            "baseline": "vllm",
            "ratio_below": 1.0,
        },
        "gpu_hours_predicted": 2.6,
    }


def _open_item() -> dict[str, Any]:
    return {
        "id": 6,
        "title": "SGLang without DCP",
        "status": "not run",
        "cells": [],
        "hypothesis": "Decode context parallelism alone explains the flat decode step of SGLang.",
        "change": {"variants": {"sglang-dcp1": {"inherits": "sglang", "arguments": {"dcp-size": None}}}},
        "decision": {"text": "Attribute the 200K lead to DCP if the step time at 200K rises by 20 % or more."},
        "gpu_hours_predicted": 3.1,
    }


def _between(engine: str, context: int) -> tuple[float, float, float, float]:
    low, high = (
        BASE.get((engine, 64_000), BASE["vllm", 64_000]),
        BASE.get((engine, 200_000), BASE["vllm", 200_000]),
    )
    share = (context - 64_000) / 136_000
    e2e, decode, ttft, accept = (a + share * (b - a) for a, b in zip(low, high, strict=True))
    return max(e2e, 5.0), max(decode, 20.0), max(ttft, 1.0), max(accept, 1.0)
