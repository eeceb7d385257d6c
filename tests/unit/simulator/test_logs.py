"""The log, written without a server by the scheduler at full speed, must be read by the log reader as a real one is."""

from __future__ import annotations

import math
from typing import Any

import pytest

from crossover.logs import read_log
from crossover.simulator.clock import Clock
from crossover.simulator.faults import Faults
from crossover.simulator.log_base import Lines, progress
from crossover.simulator.log_sglang import SglangLog
from crossover.simulator.log_vllm import VllmLog
from crossover.simulator.scheduler import Scheduler, Sequence
from crossover.simulator.timing import settings_of


def log_of(dialect: str, arguments: dict[str, Any], *, tokens: int = 64_000, faults: Faults | None = None) -> list[str]:
    """Returns the log of a start-up and ten requests."""
    settings, written = settings_of(dialect, arguments, "test-model"), list[str]()
    lines = Lines(Clock(1.0), written.append)
    log = {"vllm": VllmLog, "sglang": SglangLog}[dialect](settings, lines, faults or Faults())
    now = 0.0
    for phase in log.phases("127.0.0.1", 8000):
        for note in phase.begin:
            log.note(note, now)
        now += phase.seconds
        for note in phase.end:
            log.note(note, now)
    log.on_start(now)
    scheduler = Scheduler(settings)
    for number in range(10):
        scheduler.add(Sequence(number, tokens, 1500, False), now)
    while not scheduler.idle:
        step = scheduler.step(now)
        assert step is not None
        log.on_begin(step)
        while log.next_tick_s() <= step.end_s < math.inf:
            log.tick(log.next_tick_s(), scheduler)
        now = step.end_s
        log.on_step(step, scheduler)
    lines.flush()
    return "".join(written).splitlines()


@pytest.fixture(scope="module")
def vllm(published: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return read_log(log_of("vllm", published["vllm"])).to_dict()


@pytest.fixture(scope="module")
def sglang(published: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return read_log(log_of("sglang", published["sglang"])).to_dict()


def test_vllm_start_up(vllm: dict[str, Any]) -> None:
    assert (vllm["engine"], vllm["version"], vllm["unparsed"]) == ("vllm", "0.32.0", 0)
    startup = vllm["startup"]
    assert startup["weights_load_s"] == 163.8
    assert startup["graph_capture_s"] == 87
    assert startup["graph_count"] == 51
    assert startup["engine_init_s"] == pytest.approx(409.61)
    assert startup["kv_cache_gib"] == pytest.approx(43.76, abs=0.02)
    assert startup["max_concurrency"] == 2.69
    assert startup["chunked_prefill_tokens"] == 32768


def test_vllm_running(vllm: dict[str, Any]) -> None:
    stable = [item for item in vllm["intervals"] if item["running"] == 10 and item["prefill_tok_s"] == 0]
    assert stable
    # Published: 501 tok/s, 439 to 537, accepted lengths 2.27 to 2.51.
    assert all(430 < item["decode_tok_s"] < 560 for item in stable)
    full = [item for item in vllm["speculation"] if item["drafted_tok_s"] > 1000]
    assert all(2.2 < item["accept_len"] < 2.6 for item in full)
    assert all(sum(item["per_position"]) == pytest.approx(item["accept_len"] - 1, abs=0.02) for item in full)


def test_vllm_incidents(vllm: dict[str, Any]) -> None:
    counts = {item["kind"]: item["count"] for item in vllm["incidents"]}
    assert counts["oom_retry"] == 32
    assert counts["jit_compile"] == 4
    assert {"kv_overcommit", "autotune_disabled", "fp8_kv_scale_default"} <= set(counts)
    assert "engine_died" not in counts


def test_vllm_configuration(vllm: dict[str, Any]) -> None:
    config = vllm["effective_config"]
    assert config["tensor_parallel"] == 8
    assert config["attention_backend"] == "FLASHINFER_MLA"
    assert (config["speculative_method"], config["speculative_tokens"]) == ("dspark", 7)


def test_sglang_start_up(sglang: dict[str, Any]) -> None:
    assert (sglang["engine"], sglang["version"], sglang["unparsed"]) == ("sglang", "0.5.23", 0)
    startup = sglang["startup"]
    assert startup["ready_seen"]
    assert startup["weights_load_s"] == 141.0
    assert (startup["graph_capture_s"], startup["graph_count"]) == (330.0, 67)
    assert startup["max_running_requests"] == 39
    pools = {pool["name"]: pool for pool in sglang["pools"]}
    assert pools["draft"]["tokens"] == 8 * pools["target"]["tokens"]
    left = {item["gib"] for item in sglang["memory"] if item["item"] == "remaining"}
    assert left == {17.08}  # as published


def test_sglang_running(sglang: dict[str, Any]) -> None:
    first = sglang["prefill_batches"][:2]
    assert [item["new_tokens"] for item in first] == [32768, 32768]
    stable = [item for item in sglang["decode_batches"][1:] if item["running"] == 10]
    # Published: 335 tok/s, 313 to 418, accepted lengths 1.21 to 1.55.
    assert len(stable) >= 5
    assert all(300 < item["decode_tok_s"] < 420 and 1.2 < item["accept_len"] < 1.6 for item in stable)


def test_sglang_incidents_and_configuration(sglang: dict[str, Any]) -> None:
    kinds = {item["kind"] for item in sglang["incidents"]}
    assert {
        "jit_compile",
        "allreduce_fallback",
        "fp8_kv_scale_default",
        "fallback_kernel",
        "concurrency_capped",
    } <= kinds
    config = sglang["effective_config"]
    assert config["decode_context_parallel"] == 8
    assert config["decode_attention_backend"] == "cutedsl_mla"


@pytest.mark.parametrize(("dialect", "key"), [("vllm", "attention_backend"), ("sglang", "decode_attention_backend")])
def test_a_changed_backend_shows(dialect: str, key: str, published: dict[str, dict[str, Any]]) -> None:
    lines = log_of(dialect, published[dialect], tokens=1000, faults=Faults({"changed-backend": "TRITON_MLA"}))
    assert read_log(lines).to_dict()["effective_config"][key] == "TRITON_MLA"


@pytest.mark.parametrize(
    ("dialect", "argument"),
    [("vllm", {"calculate-kv-scales": True}), ("sglang", {"quantization-param-path": "s.json"})],
)
def test_with_scales_nothing_is_defaulted(
    dialect: str, argument: dict[str, Any], published: dict[str, dict[str, Any]]
) -> None:
    lines = log_of(dialect, {**published[dialect], **argument}, tokens=100)
    assert "fp8_kv_scale_default" not in {item["kind"] for item in read_log(lines).to_dict()["incidents"]}


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_every_log_begins_with_what_it_is(dialect: str, published: dict[str, dict[str, Any]]) -> None:
    assert "SIMULATED" in log_of(dialect, published[dialect], tokens=100)[0]


def test_progress_bars_as_drawn() -> None:
    assert progress("Loading", 12, 163.8).endswith("12/12 [02:43<00:00, 13.65s/it]")
    assert progress("Loading", 12, 3.0).endswith("12/12 [00:03<00:00, 4.00it/s]")
