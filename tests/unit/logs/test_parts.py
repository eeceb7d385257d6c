# ruff: noqa: E501  (log lines are as long as they are)
"""The parts of the log reader: spool, literals, incidents, memory check, diagnoses, phases."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossover.logs import read_log
from crossover.logs.diagnoses import diagnose, evidence_kinds, rules
from crossover.logs.incidents import CATALOGUE, IncidentLog, Kind
from crossover.logs.lines import Line
from crossover.logs.literals import pairs_of_call, pairs_of_dict, value_of
from crossover.logs.model import Interval, plain
from crossover.logs.phases import acceptance, spread, stable_decode_tok_s, stable_intervals
from crossover.logs.spool import Spool
from crossover.logs.summary import sparkline, summarise

EMPTY = (None,) * 11


def interval(number: int, **fields: object) -> Interval:
    return Interval(f"--01-01T00:00:{number:02d}", *EMPTY[:10], None)._replace(engine_id=number, **fields)  # type: ignore[arg-type]


def test_spool_gives_back_what_went_to_disk() -> None:
    spool: Spool[Interval] = Spool(Interval, chunk=4)
    rows = [interval(number) for number in range(11)]
    for row in rows:
        spool.append(row)
    assert len(spool) == 11
    assert list(spool) == rows
    assert [spool[3], spool[4], spool[-1]] == [rows[3], rows[4], rows[10]]
    assert spool[2:9:3] == rows[2:9:3]
    with pytest.raises(IndexError):
        spool[11]
    assert spool.replace_last(running=7)
    assert spool[-1].running == 7
    assert isinstance(spool[0], Interval)


def test_literals_of_every_form() -> None:
    text = "{'a': 1, 'b': {'c': [1, 2]}, 'd': <Mode.NONE: 0>, 'e': <Format.AUTO: 'auto'>, 'f': 'x, y', 'g': cut"
    assert dict(pairs_of_dict(text)) == {
        "a": 1, "b": {"c": [1, 2]}, "d": "NONE", "e": "auto", "f": "x, y", "g": "cut",
    }  # fmt: skip
    call = "model='m', speculative_config=SpeculativeConfig(method='ngram', n=4), dtype=torch.bfloat16, eager=True"
    assert dict(pairs_of_call(call)) == {
        "model": "m", "speculative_config": "SpeculativeConfig(method='ngram', n=4)", "dtype": "torch.bfloat16",
        "eager": True,
    }  # fmt: skip
    assert value_of('{"mode": null}') == {"mode": None}
    assert value_of("(" * 3000) == "(" * 3000


def line(t: str | None, number: int, text: str = "message") -> Line:
    head = f"INFO {t} a.py:1] " if t else ""
    return Line(head + text, len(head), number)


def test_a_burst_tells_when_its_events_came() -> None:
    """Two events 20 ms apart, a pause of 4 s, one more: one incident of two spans; a single event has none."""
    log = IncidentLog()
    stamps = ["00:00:01.000", "00:00:01.020", "00:00:05.000"]
    for number, clock in enumerate(stamps):
        head = f"2026-11-30T{clock}Z INFO 11-30 10:0{number}:00 [a.py:1] "
        log.add(Kind.JIT_COMPILE, Line(head + "compiled", len(head), number))
    head = "2026-11-30T00:00:06.000Z INFO 11-30 10:03:00 [a.py:1] "
    log.add(Kind.PREEMPTION, Line(head + "preempted", len(head), 4))
    compiled, preempted = (plain(one.incident) for one in log.told())
    assert compiled["count"] == 3
    assert (compiled["t"], compiled["t_last"]) == ("--11-30T10:00:00", "--11-30T10:02:00")
    assert [[stamp[11:23] for stamp in span] for span in compiled["spans_outer"]] == [stamps[:2], [stamps[2]] * 2]
    assert not {"t_last", "spans_outer"} & set(preempted)


def test_a_burst_is_one_incident_with_a_count() -> None:
    log = IncidentLog()
    for second in (0, 10, 59, 59):
        log.add(Kind.PREEMPTION, line(f"01-01 00:00:{second:02d}", second))
    log.add(Kind.PREEMPTION, line("01-01 00:03:00", 100))  # two minutes later: another burst
    log.add(Kind.RETRACTION, line("01-01 00:03:00", 101), count=3)
    found = [(one.incident.kind, one.incident.count, one.incident.t) for one in log.told()]
    assert found == [
        ("preemption", 4, "--01-01T00:00:00"), ("preemption", 1, "--01-01T00:03:00"), ("retraction", 3, "--01-01T00:03:00"),
    ]  # fmt: skip


def test_what_every_rank_says_counts_once() -> None:
    log = IncidentLog()
    for rank in range(8):
        log.add(Kind.JIT_COMPILE, line(None, rank), rank=rank)
        log.add(Kind.JIT_COMPILE, line(None, rank), rank=rank)
    assert [one.incident.count for one in log.told()] == [2]


def test_every_kind_has_severity_and_advice() -> None:
    assert set(CATALOGUE) == set(Kind)
    assert all(entry.advice for entry in CATALOGUE.values())


def test_every_kind_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "logs.md").read_text()
    for kind, entry in CATALOGUE.items():
        assert f"| `{kind}` | {entry.severity} | {entry.advice} |" in page


USAGE = (
    "(Worker_TP0 pid=1) INFO 10-23 15:14:56 [gpu_worker.py:391] Free memory on device (99.0/100.0 GiB) on startup. "
    "Desired GPU memory utilization is (0.9, 90.0 GiB). Actual usage is 60.0 GiB for weight, 5.0 GiB for peak "
    "activation, 1.0 GiB for non-torch memory, and 4.0 GiB for CUDAGraph memory. Replace gpu_memory_utilization config "
    "with `--kv-cache-memory={advised}` to fit into requested memory, or `--kv-cache-memory=1` to fully utilize gpu "
    "memory. Current kv cache memory in use is {used} GiB."
)
GIB = 1 << 30


@pytest.mark.parametrize(
    ("advised_gib", "used", "kinds"),
    [
        (19.85, 19.8, []),  # 90 - 60 - 5 - 1 - 4 = 20, less the margin of 0.15
        (19.85, 24.0, ["kv_overcommit"]),
        (-20.83, 19.8, ["kv_suggestion_wrong"]),  # negative
        (15.85, 19.8, ["kv_suggestion_wrong"]),  # counts the 4 GiB of graphs twice
        (15.85, 24.0, ["kv_suggestion_wrong", "kv_overcommit"]),  # judged by the recomputed value
        (120.0, 19.8, ["kv_suggestion_wrong"]),  # more than is free
    ],
)
def test_the_engines_suggestion_is_checked(advised_gib: float, used: float, kinds: list[str]) -> None:
    report = read_log([USAGE.format(advised=int(advised_gib * GIB), used=used)])
    assert [incident.kind for incident in report.incidents] == kinds
    if kinds[:1] == ["kv_suggestion_wrong"]:
        assert "leaves 19.85 GiB" in report.incidents[0].message


def test_diagnoses_are_consistent_data() -> None:
    names = {row.name.removeprefix("evidence_") for row in evidence_kinds()}
    for rule in rules():
        assert {*rule.needs, *rule.any_of, *rule.unless, *rule.also} <= names, rule.name
        assert rule.needs or rule.any_of, rule.name
        assert rule.kind in set(Kind), rule.name
        assert rule.severity in ("error", "warning", "note")
    assert len({rule.name for rule in rules()}) == len(rules())


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (["verify kernel: TritonKDAKernel"], "kda_verify_fell_back_to_triton"),
        (["Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs."], "all_reduce_on_nccl"),
        (["SymmMem: multicast is not available on this node"], "multicast_unavailable"),
        (["Enabled custom fusions: norm_quant, allreduce_rms", "breakable CUDA graph forces compilation mode to NONE"], "fusion_announced_but_compilation_off"),
        (["device: NVIDIA L20D", "detected SM103"], "device_name_disagrees_with_architecture"),
        (["DeepGemm is enabled but the scale_fmt of checkpoint is not ue8m0."], "deepgemm_scale_format"),
        (["Using KV cache scaling factor 1.0 for fp8_e4m3."], "fp8_kv_scale_defaulted"),
        (["Using a slow tokenizer. This might cause a significant slowdown."], "slow_tokenizer"),
        (["draft window 4096 is smaller than the context"], "draft_window_shorter_than_context"),
        (["Skipping FlashInfer autotune because it is disabled."], "autotune_off"),
        (["Setting attention block size to 1536 tokens to ensure that attention page size is >= mamba page size."], "coarse_blocks_of_hybrid_model"),
    ],
)  # fmt: skip
def test_each_diagnosis_states_its_lines(lines: list[str], name: str) -> None:
    report = read_log(lines)
    found = {item.name: item for item in report.diagnoses}
    assert name in found
    assert found[name].evidence[0] in lines[0]
    assert rules()[[rule.name for rule in rules()].index(name)].kind in {item.kind for item in report.incidents}


def test_what_a_kernel_wants_is_not_the_device_that_is_there() -> None:
    lines = [
        "INFO 01-01 00:00:00 [x.py:1] Using default W8A8 Block FP8 kernel config for NVIDIA H100 80GB HBM3.",
        "INFO 01-01 00:00:01 [x.py:1] DeepGEMM E8M0 is only supported on SM100 or newer; it is off.",
    ]
    assert read_log(lines).diagnoses == ()
    assert len(read_log([lines[0], "INFO 01-01 00:00:01 [x.py:1] detected SM100"]).diagnoses) == 1


def test_half_of_the_evidence_is_no_finding() -> None:
    assert diagnose({"fusions_announced": ["Enabled custom fusions: norm_quant"]}, {}) == []
    assert diagnose({"custom_all_reduce_off": ["disable_custom_all_reduce=True"]}, {"tensor_parallel": 1}) == []


def engine_line(t: str, prefill: float, decode: float, running: int) -> str:
    return (
        f"INFO 05-19 10:{t} [loggers.py:271] Engine 000: Avg prompt throughput: {prefill} tokens/s, Avg generation "
        f"throughput: {decode} tokens/s, Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: 95.9%, "
        "Prefix cache hit rate: 0.0%"
    )


def test_stable_decoding_leaves_out_idle_prefill_and_change() -> None:
    report = read_log(
        [
            engine_line("00:00", 0.0, 0.0, 0),
            engine_line("00:10", 0.0, 50.0, 18),  # first after idle
            engine_line("00:20", 900.0, 200.0, 18),  # prefill
            engine_line("00:30", 0.0, 1000.0, 18),
            engine_line("00:40", 0.0, 1100.0, 18),
            engine_line("00:50", 0.0, 300.0, 4),  # requests end
        ]
    )
    assert [sample.decode_tok_s for sample in stable_intervals(report.intervals)] == [1000.0, 1100.0]
    found = stable_decode_tok_s(report)
    assert found is not None
    assert (found.mean, found.min, found.max, found.n) == (1050.0, 1000.0, 1100.0, 2)
    assert [sample.decode_tok_s for sample in stable_intervals(report.intervals, running=4)] == [300.0]
    assert acceptance(report) is None
    assert spread([]) is None


def test_a_sample_slowed_by_a_prompt_that_the_next_one_counts_is_not_stable() -> None:
    """The prompt of 10:00:40 was prefilled from 10:00:28 on, say: 700 tok/s is slower than the 900 and 1000 of the samples that surely held none.

    Engine 1 decodes as slowly, and no prompt follows: its 900 stays. Without any sure sample nothing is left out.
    """
    lines = [
        engine_line("00:10", 0.0, 1000.0, 8),
        engine_line("00:20", 0.0, 1000.0, 8),
        engine_line("00:20", 0.0, 900.0, 8).replace("Engine 000", "Engine 001"),
        engine_line("00:30", 0.0, 700.0, 8),
        engine_line("00:40", 800.0, 600.0, 8),
        engine_line("00:50", 0.0, 950.0, 8),
        engine_line("01:00", 800.0, 600.0, 9),
    ]
    rates = [sample.decode_tok_s for sample in stable_intervals(read_log(lines).intervals)]
    assert rates == [1000.0, 1000.0, 900.0, 950.0]
    only = read_log([lines[3], lines[4]]).intervals
    assert [sample.decode_tok_s for sample in stable_intervals(only)] == [700.0]


def test_summary_is_readable() -> None:
    report = read_log(
        [engine_line("00:30", 0.0, 1000.0, 18), "WARNING 05-19 10:00:31 [x.py:1] Using a slow tokenizer."]
    )
    text = summarise(report, "engine.log")
    assert "engine.log: vllm, 2 lines" in text
    assert "1000 .. 1000 tok/s (1 sample)" in text
    assert "slow_tokenizer" in text
    assert sparkline([0.0, 4.0, 8.0]) == "▁▅█"
