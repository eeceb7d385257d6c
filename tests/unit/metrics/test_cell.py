"""One cell from recording to metrics.json, with one fault planted at a time."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pandas as pd
import pytest

from crossover.errors import InputError
from crossover.metrics import cell as cell_module
from crossover.metrics import evaluate_cell

SCHEMA = json.loads((Path(__file__).parents[3] / "workflow" / "schemas" / "metrics.schema.json").read_text())
T0 = 1_790_000_000_000_000_000
REQUESTS, TOKENS, GAP_S, PROMPT = 40, 50, 0.02, 1000
COUNT = 4  # at once


def recording(completion=TOKENS, tokens=1, prompt=PROMPT, requests=REQUESTS):
    """Waves of four requests: TTFT 0.5 s (one reasoning token first), a token each 20 ms, 1.48 s in all."""
    rows, events = [], []
    length = 0.5 + (TOKENS - 1) * GAP_S
    for request in range(requests):
        sent = T0 + round(request // COUNT * length * 1e9)
        times = sent + np.round((0.5 + GAP_S * np.arange(TOKENS)) * 1e9).astype(np.int64)
        kinds = ["reasoning"] * 10 + ["content"] * (TOKENS - 10)
        events.append(pd.DataFrame({"request": request, "seq": np.arange(TOKENS), "t_kernel_ns": times, "kind": kinds}))
        rows.append((request, sent, "ok", prompt, completion, f"r{request}", "usage"))
    frame = pd.concat(events, ignore_index=True).assign(tokens=tokens)
    frame["t_user_ns"] = frame["t_kernel_ns"]
    columns = [
        "request", "sent_ns", "status", "prompt_tokens", "completion_tokens", "request_id", "tokens_source",
    ]  # fmt: skip
    fitness = {"clock": "kernel", "reads": 100, "coalesced_reads": 0, "verdict": "ok", "reasons": []}
    return SimpleNamespace(events=frame, requests=pd.DataFrame(rows, columns=columns), fitness=fitness, findings=[])


def outer(seconds):
    return datetime.fromtimestamp(T0 / 1e9 + seconds, UTC).isoformat().replace("+00:00", "Z")


def report(decode=200.0, **changes):
    interval = {"t": None, "engine_id": 0, "prefill_tok_s": 0.0, "decode_tok_s": decode, "running": COUNT, "waiting": 0,
                "prefix_hit_rate": 0.0}  # fmt: skip
    base = {
        "engine": "vllm", "version": "0.32.0", "startup": {}, "incidents": [], "speculation": [],
        "intervals": [{**interval, "t_outer": outer(second)} for second in range(1, 11)],
        "prefill_batches": [], "decode_batches": [], "effective_config": {"attention_backend": "FLASH_ATTN"},
    }  # fmt: skip
    return base | changes


CELL = {
    "status": "ok", "simulated": True, "clock_scale": 1.0,
    "workload": {"dataset": "random", "input_tokens": PROMPT, "output_tokens": TOKENS, "concurrency": COUNT,
                 "rate_per_s": None, "requests": REQUESTS},
    "sampling": {"ignore_eos": True}, "isolation": {"policy": "reset", "reset_ok": True},
    "counters": {"before": {"prompt_tokens": 10, "generation_tokens": 5},
                 "after": {"prompt_tokens": 10 + REQUESTS * PROMPT, "generation_tokens": 5 + REQUESTS * TOKENS}},
    "requested_config": {"engine": "vllm", "arguments": {"attention-backend": "FLASH_ATTN"}},
    "goodput_limits": {"ttft_s": 0.6, "tpot_s": 0.03},
}  # fmt: skip


def evaluate(tmp_path, monkeypatch, recorded=None, engine_report=None, **changes):
    (tmp_path / "cell.json").write_text(json.dumps(CELL | changes))
    (tmp_path / "recording.json").write_text("{}")
    recorded = recorded or recording()
    monkeypatch.setattr("crossover.client.interpret", lambda *args, **kwargs: recorded)
    found = evaluate_cell(tmp_path, report() if engine_report is None else engine_report)
    jsonschema.validate(json.loads(json.dumps(found, allow_nan=False)), SCHEMA)
    return found


def faults(found):
    quiet = ("passed", "not applicable", "under-sampled")
    return {(entry["audit"], entry["verdict"]) for entry in found["audits"] if entry["verdict"] not in quiet}


def test_a_sound_cell(tmp_path, monkeypatch):
    found = evaluate(tmp_path, monkeypatch)
    assert faults(found) == set()
    metrics = found["metrics"]
    assert metrics["ttft_s"]["mean"] == pytest.approx(0.5)
    assert metrics["ttfot_s"]["mean"] == pytest.approx(0.7)
    assert metrics["tpot_s"]["mean"] == pytest.approx(0.02)
    assert metrics["ttft_s"]["p90"] == pytest.approx(0.5)
    assert metrics["ttft_s"]["p99"] is None
    # Ten waves of 1.48 s, 2,000 tokens.
    assert found["duration_s"] == pytest.approx(14.8)
    assert metrics["output_tok_s"]["value"] == pytest.approx(2000 / 14.8)
    assert metrics["stable_decode_tok_s"]["value"] == pytest.approx(200)
    assert metrics["goodput"]["value"] == 1.0
    assert found["engine"]["stable_decode_tok_s"] == {"mean": 200, "min": 200, "max": 200, "n": 10}
    assert found["contamination"] == {"requests": [], "metrics_without": None}
    assert sum(found["series"]["running"]) / len(found["series"]["running"]) == pytest.approx(COUNT, rel=0.01)


def planted_tokens(value):
    return recording(tokens=value)


def test_dropped_tokens_are_the_counters_audit_s(tmp_path, monkeypatch):
    events = recording()
    events.events = events.events[events.events["seq"] % 10 != 5]
    found = evaluate(tmp_path, monkeypatch, events)
    assert faults(found) == {("counters", "not closed")}
    assert found["metrics"]["output_tok_s"]["value"] is None
    assert "1800" in found["metrics"]["output_tok_s"]["withheld"]
    assert found["metrics"]["ttft_s"]["mean"] is not None


def test_tokens_that_the_engine_did_not_count(tmp_path, monkeypatch):
    counters = {"before": {"generation_tokens": 0}, "after": {"generation_tokens": 3000}}
    assert faults(evaluate(tmp_path, monkeypatch, counters=counters)) == {("counters", "not closed")}


def test_client_and_engine_log_disagree(tmp_path, monkeypatch):
    found = evaluate(tmp_path, monkeypatch, engine_report=report(decode=230.0))
    assert faults(found) == {("client_engine", "contradiction")}
    assert found["metrics"]["stable_decode_tok_s"]["value"] is None


def test_client_and_engine_log_are_compared_over_the_same_time(tmp_path, monkeypatch):
    """A token each 20 ms until 1.0 s, then each 40 ms: the log's stable samples, 1.0 to 1.8 s, are of the slow part.

    Over them four requests make 4 / 0.04 s = 100 tok/s; over the whole stable phase 196 / 1.46 s = 134 tok/s.
    """
    recorded = recording(requests=COUNT)
    late = (recorded.events["seq"] - 25).clip(lower=0) * 20_000_000
    for name in ("t_kernel_ns", "t_user_ns"):
        recorded.events[name] += late
    base = {"t": None, "engine_id": 0, "running": COUNT, "waiting": 0, "decode_tok_s": 100.0}
    lines = [(1.0, 500.0), (1.4, 0.0), (1.8, 0.0)]
    intervals = [{**base, "prefill_tok_s": prefill, "t_outer": outer(second)} for second, prefill in lines]
    workload = CELL["workload"] | {"requests": COUNT}
    found = evaluate(tmp_path, monkeypatch, recorded, report(intervals=intervals), workload=workload, counters=None)
    (judged,) = [entry for entry in found["audits"] if entry["audit"] == "client_engine"]
    assert judged["verdict"] == "passed"
    assert judged["reported"] == pytest.approx(100)
    assert found["metrics"]["stable_decode_tok_s"]["value"] == pytest.approx(196 / 1.46, rel=0.001)


def test_jit_during_the_measurement_tags_the_requests_under_way(tmp_path, monkeypatch):
    incident = {"kind": "jit_compile", "t": None, "t_outer": outer(0.3), "severity": "warning", "count": 1,
                "message": "m", "advice": "a"}  # fmt: skip
    found = evaluate(tmp_path, monkeypatch, engine_report=report(incidents=[incident]))
    assert faults(found) == {("contamination", "contaminated")}
    assert [tag["request"] for tag in found["contamination"]["requests"]] == [0, 1, 2, 3]
    without = found["contamination"]["metrics_without"]
    assert without["ttft_s"]["n"] == REQUESTS - COUNT
    assert without["output_tok_s"]["value"] is None
    assert found["metrics"]["ttft_s"]["n"] == REQUESTS


def test_a_burst_tags_the_requests_of_its_spans_and_no_others(tmp_path, monkeypatch):
    """Waves of 1.48 s: one event long before, one from 0.2 s to 0.3 s (wave 1), one at 5 s (wave 4: 4.44 to 5.92 s)."""
    spans = [[outer(-30), outer(-29)], [outer(0.2), outer(0.3)], [outer(5), outer(5)]]
    incident = {"kind": "jit_compile", "t": None, "t_outer": outer(-30), "severity": "warning", "count": 9,
                "message": "m", "advice": "a", "spans_outer": spans}  # fmt: skip
    found = evaluate(tmp_path, monkeypatch, engine_report=report(incidents=[incident]))
    assert faults(found) == {("contamination", "contaminated")}
    assert [tag["request"] for tag in found["contamination"]["requests"]] == [0, 1, 2, 3, 12, 13, 14, 15]


def test_start_up_incidents_and_untimed_ones_tag_nothing(tmp_path, monkeypatch):
    early = {"kind": "jit_compile", "t": None, "t_outer": outer(-30), "message": "m", "advice": "a"}
    assert faults(evaluate(tmp_path, monkeypatch, engine_report=report(incidents=[early]))) == set()
    untimed = {"kind": "preemption", "t": "12:00:00", "message": "m", "advice": "a"}
    found = evaluate(tmp_path, monkeypatch, engine_report=report(incidents=[untimed]))
    assert any(e["audit"] == "contamination" and "preemption" in e["why"] for e in found["audits"])


def test_a_clock_that_runs_faster_is_scaled_for_incidents_too(tmp_path, monkeypatch):
    # At scale 40, 0.05 s of log time are 2 s of declared time: the second wave (1.48 .. 2.96 s).
    incident = {"kind": "oom_retry", "t": None, "t_outer": outer(0.05), "message": "m", "advice": "a"}
    found = evaluate(tmp_path, monkeypatch, engine_report=report(incidents=[incident]), clock_scale=40.0)
    assert [tag["request"] for tag in found["contamination"]["requests"]] == [4, 5, 6, 7]


def test_a_foreign_request_shows_in_the_engine_log(tmp_path, monkeypatch):
    found = report()
    found["intervals"][2] |= {"running": COUNT + 1}
    assert ("contamination", "contaminated") in faults(evaluate(tmp_path, monkeypatch, engine_report=found))


@pytest.mark.parametrize("rate", [0.929, 0.3])
def test_random_prompts_from_the_cache(tmp_path, monkeypatch, rate):
    found = report()
    for interval in found["intervals"]:
        interval["prefix_hit_rate"] = rate
    result = evaluate(tmp_path, monkeypatch, engine_report=found)
    assert faults(result) == {("cache", "contaminated")}
    assert result["metrics"]["ttft_s"]["mean"] is None
    assert result["metrics"]["tpot_s"]["mean"] is not None


def test_shared_prefixes_are_wanted_where_the_workload_is_made_of_them(tmp_path, monkeypatch):
    found = report()
    for interval in found["intervals"]:
        interval["prefix_hit_rate"] = 0.9
    workload = CELL["workload"] | {"dataset": "shared-prefix"}
    assert faults(evaluate(tmp_path, monkeypatch, engine_report=found, workload=workload)) == set()


def test_a_reset_that_was_refused(tmp_path, monkeypatch):
    isolation = {"policy": "reset", "reset_ok": False}
    assert faults(evaluate(tmp_path, monkeypatch, isolation=isolation)) == {("cache", "contaminated")}


def test_a_changed_backend_is_the_configuration_audit_s(tmp_path, monkeypatch):
    found = evaluate(tmp_path, monkeypatch, engine_report=report(effective_config={"attention_backend": "TRITON_MLA"}))
    assert faults(found) == {("configuration", "contradiction")}


@pytest.mark.parametrize(
    ("arguments", "subjects"),
    [
        ({"attention-backend": "fa3"}, {"configuration.attention-backend"}),
        ({"attention-backend": "fa3", "decode-attention-backend": "triton"}, set()),
        ({"attention-backend": "triton", "prefill-attention-backend": "fa3"}, set()),
        ({"decode-attention-backend": "fa3"}, {"configuration.decode-attention-backend"}),
        ({}, set()),
    ],
)
def test_an_attention_backend_is_asked_for_as_a_whole_or_in_parts(tmp_path, monkeypatch, arguments, subjects):
    """The engine decodes with Triton and prefills with FA3; a part follows its own flag, else the common one."""
    config = {"decode_attention_backend": "triton", "prefill_attention_backend": "fa3"}
    asked = {"engine": "sglang", "arguments": arguments}
    found = evaluate(tmp_path, monkeypatch, engine_report=report(effective_config=config), requested_config=asked)
    assert {f["subject"] for f in found["audits"] if f["verdict"] == "contradiction"} == subjects


def test_settings_that_were_merged_are_judged_with_their_source(tmp_path, monkeypatch):
    def setting(name, flag, value, verdict):
        return {
            "setting": name, "value": value, "source": "/server_info", "stated": {}, "disagree": False,
            "flag": flag, "requested": 256, "verdict": verdict,
        }  # fmt: skip

    settings = [
        setting("max_running_requests", "max-num-seqs", 128, "changed"),
        setting("max_model_len", "max-model-len", 256, "as asked"),
        setting("kv_cache_dtype", "kv-cache-dtype", "auto", "not stated"),
        setting("block_size", None, 16, None),
    ]
    merged = report() | {"configuration": {"sources": ["/server_info"], "settings": settings}}
    found = evaluate(tmp_path, monkeypatch, engine_report=merged)
    audits = {f["verdict"]: f for f in found["audits"] if f["audit"] == "configuration"}
    assert set(audits) == {"contradiction", "passed"}
    contradiction = audits["contradiction"]
    assert contradiction["subject"] == "configuration.max-num-seqs"
    assert contradiction["why"] == "256 was asked for, the engine runs with 128 (its /server_info says so)"
    assert audits["passed"]["why"] == "compared: max_model_len, max_running_requests"
    assert found["engine"]["configuration"] == merged["configuration"]


def test_three_requests_support_no_percentile(tmp_path, monkeypatch):
    counters = {"before": {"generation_tokens": 0}, "after": {"generation_tokens": 3 * TOKENS}}
    workload = CELL["workload"] | {"requests": 3}
    found = evaluate(tmp_path, monkeypatch, recording(requests=3), counters=counters, workload=workload)
    # The engine log of this test still shows four running: the one of three requests would not.
    assert faults(found) <= {("contamination", "contaminated"), ("client_engine", "contradiction")}
    assert all(found["metrics"]["ttft_s"][name] is None for name in ("p50", "p90", "p99"))
    assert any(entry["verdict"] == "under-sampled" for entry in found["audits"])


@pytest.mark.parametrize(
    ("prompt", "expected"), [(1009, set()), (1060, set()), (980, {"prompt_length"}), (5027, {"prompt_length"})]
)
def test_prompt_length_drift(tmp_path, monkeypatch, prompt, expected):
    found = evaluate(tmp_path, monkeypatch, recording(prompt=prompt), counters=None)
    assert {audit for audit, _ in faults(found)} == expected


def test_prompts_that_drifted_elsewhere(tmp_path, monkeypatch):
    # Case 64: 4106 for 4000 tokens is more than a chat template adds; 8179 and 8185 for 8192 are within 1 %.
    (case,) = (Path(__file__).parents[2] / "cases" / "clients").glob("64-*/golden.json")
    golden = json.loads(case.read_text())
    verdicts = []
    for asked, counted in zip(golden["asked"], golden["counted"], strict=True):
        workload = CELL["workload"] | {"input_tokens": asked}
        found = evaluate(tmp_path, monkeypatch, recording(prompt=counted), counters=None, workload=workload)
        verdicts += [entry["verdict"] for entry in found["audits"] if entry["audit"] == "prompt_length"]
    assert verdicts == ["inconsistent", "passed", "passed"]


def test_lengths_other_than_asked_are_named(tmp_path, monkeypatch):
    workload = CELL["workload"] | {"output_tokens": 100}
    found = evaluate(tmp_path, monkeypatch, workload=workload)
    assert faults(found) == {("counters", "inconsistent")}
    assert found["metrics"]["output_tok_s"]["value"] is not None


def test_failed_requests_are_counted(tmp_path, monkeypatch):
    recorded = recording()
    recorded.requests.loc[5, "status"] = "failed"
    recorded.findings = [{"finding": "http_5xx", "severity": "warning", "count": 1, "why": "failed: the server failed"}]
    found = evaluate(tmp_path, monkeypatch, recorded)
    assert found["requests"] == {"ok": REQUESTS - 1, "failed": 1, "incomplete": 0}
    assert faults(found) == {("completeness", "incomplete")}


def test_an_unfit_recorder_withholds_everything(tmp_path, monkeypatch):
    recorded = recording()
    recorded.fitness |= {"verdict": "rejected", "reasons": ["lag_s p99 0.2 s is above 0.05 s"]}
    found = evaluate(tmp_path, monkeypatch, recorded)
    assert faults(found) == {("fitness", "contaminated")}
    for name, entry in found["metrics"].items():
        assert entry.get("mean", entry.get("value")) is None, name


def test_coalesced_reads_cost_the_percentiles_of_gaps_and_are_no_fault(tmp_path, monkeypatch):
    recorded = recording()
    recorded.fitness |= {"coalesced_reads": 15}
    found = evaluate(tmp_path, monkeypatch, recorded)
    assert {verdict for _, verdict in faults(found)} == {"rounding"}
    assert found["metrics"]["itl_s"]["p90"] is None
    assert found["metrics"]["itl_s"]["p50"] is not None
    assert found["metrics"]["itl_s"]["mean"] is not None
    assert any(entry["audit"] == "client_engine" and entry["verdict"] == "passed" for entry in found["audits"])


def test_a_field_that_nobody_knows(tmp_path, monkeypatch):
    recorded = recording()
    recorded.findings = [{"finding": "unknown_field", "severity": "error", "count": 1, "why": "events carry 'thought'"}]
    found = evaluate(tmp_path, monkeypatch, recorded)
    assert faults(found) == {("definitions", "missing")}
    assert found["metrics"]["ttft_s"]["mean"] is None


@pytest.mark.parametrize(
    ("figures", "audit", "verdict"),
    [
        ({"total_s": 14.8, "output_tokens_per_s": 1486.5}, "bound", "impossible"),
        ({"mean_latency_s": 1.48, "ttft_mean_ms": 500, "tpot_mean_ms": 29.6}, "definitions", "mislabelled"),
        ({"ttft_mean_ms": 700}, "definitions", "mislabelled"),
        ({"mean_latency_s": 1.48, "ttft_mean_ms": 500, "tpot_mean_ms": 12.0}, "closure", "not closed"),
        ({"mean_latency_s": 1.48, "ttft_mean_ms": 500, "tpot_mean_ms": 20.0}, None, None),
    ],
)
def test_what_another_client_printed_of_the_same_cell(tmp_path, monkeypatch, figures, audit, verdict):
    found = evaluate(tmp_path, monkeypatch, reported={"peer": figures})
    assert faults(found) == ({(audit, verdict)} if audit else set())
    # Its fault is no reason to leave our own figures unchecked, or to withhold one.
    assert any(entry["audit"] == "client_engine" and entry["verdict"] == "passed" for entry in found["audits"])
    assert not [entry for entry in found["audits"] if entry["subject"].startswith("client.") and entry["withholds"]]


def test_the_engine_ran_fewer_than_were_offered(tmp_path, monkeypatch):
    # Case: 18 to 21 run with 23 to 43 waiting where 61 were offered; stable samples are those without prefill.
    lines = [(0.0, 1055.3, 18, 43), (0.0, 1226.3, 18, 42), (12068.8, 734.9, 18, 33), (18032.5, 589.8, 21, 23)]
    lines.append((0.0, 1242.7, 20, 23))
    intervals = [
        {"prefill_tok_s": p, "decode_tok_s": d, "running": r, "waiting": w, "engine_id": 0} for p, d, r, w in lines
    ]
    workload = CELL["workload"] | {"concurrency": 61}
    found = evaluate(tmp_path, monkeypatch, engine_report=report(intervals=intervals), workload=workload)
    stable = found["engine"]["stable_decode_tok_s"]
    assert (stable["min"], stable["max"], stable["n"]) == (1055.3, 1242.7, 3)
    assert stable["mean"] == pytest.approx(1174.77, abs=0.01)
    assert ("littles_law", "inconsistent") in faults(found)


def test_a_failed_cell_without_a_recording(tmp_path):
    (tmp_path / "cell.json").write_text(
        json.dumps({"status": "failed", "reason": "the server died", "log_tail": ["x"]})
    )
    found = evaluate_cell(tmp_path, None)
    jsonschema.validate(found, SCHEMA)
    assert found["status"] == "failed"
    assert found["reason"] == "the server died"
    assert found["metrics"]["ttft_s"]["mean"] is None


def test_no_cell_at_all(tmp_path):
    with pytest.raises(InputError, match=r"cell\.json"):
        evaluate_cell(tmp_path, None)


def test_schema_names_every_verdict():
    from crossover.audits import VERDICTS

    named = SCHEMA["$defs"]["finding"]["properties"]["verdict"]["enum"]
    assert set(named) == {*VERDICTS, "passed", "not applicable"}
    assert dataclasses.is_dataclass(cell_module.Evidence)
