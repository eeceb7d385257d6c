"""The audits of published tables: the two that are known, a clean one, and one planted fault at a time."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import yaml

from crossover.attribution import attribute_table
from crossover.audits import audit_table, make_table, read_table
from crossover.cli import main
from crossover.errors import InputError

PUBLISHED = Path(__file__).parents[3] / "config" / "published"


def faults(table):
    return {(finding.verdict, finding.subject) for finding in audit_table(table).findings}


def test_every_fault_of_the_published_comparison_and_no_other():
    # Worked out by hand: 10 x 3000 / 295.21 = 101.6; 10 x 84.42 / 0.01228 = 68,746 and so on; 141.53 / 3000 = 47.18;
    # 537 / 163 = 3.29 against 501 / 163 = 3.07; flags 32 and 0.85 against 64 and 0.92 in the table; ten requests
    # for a P90; a pool of 916,672 for 1,000,000 tokens; 43.76 GiB where 38.48 are advised.
    assert faults(read_table(PUBLISHED / "kimi-k3-b300.yaml")) == {
        ("impossible", "client.vllm-200k.output_tokens_per_s"),
        ("not closed", "client.vllm-64k.tpot_mean_ms"),
        ("not closed", "client.vllm-64k.itl_mean_ms"),
        ("not closed", "client.vllm-200k.tpot_mean_ms"),
        ("not closed", "client.vllm-200k.itl_mean_ms"),
        ("mislabelled", "client.sglang-64k.tpot_mean_ms"),
        ("mislabelled", "client.sglang-200k.tpot_mean_ms"),
        ("inconsistent", "claimed.decode_degradation_vllm"),
        ("contradiction", "configuration.vllm.max-num-seqs"),
        ("contradiction", "configuration.sglang.memory_fraction"),
        *(("under-sampled", f"client.{e}-{c}.ttft_p90_ms") for e in ("vllm", "sglang") for c in ("64k", "200k")),
        ("infeasible", "configuration.sglang.context-length"),
        ("overcommitted", "configuration.vllm.gpu-memory-utilization"),
    }


def test_reasons_carry_the_numbers():
    why = {f.subject: f.why for f in audit_table(read_table(PUBLISHED / "kimi-k3-b300.yaml")).findings}
    assert "10.94 times" in why["client.vllm-200k.output_tokens_per_s"]
    for subject, tokens in (("64k.tpot", 68746), ("64k.itl", 49880), ("200k.tpot", 62946), ("200k.itl", 459277)):
        assert str(tokens) in why[f"client.vllm-{subject}_mean_ms"]
    assert "537/163" in why["claimed.decode_degradation_vllm"]


def test_the_second_published_comparison_has_a_rounding_note_alone():
    verdict = audit_table(read_table(PUBLISHED / "vllm-kimi-k3-optimisation.yaml"))
    assert [(f.verdict, f.subject) for f in verdict.findings] == [("rounding", "claimed_change_percent.c16.tok_s")]
    reproduced = {f.subject.removeprefix("claimed_change_percent.") for f in verdict.passed}
    assert {"c1.tok_s", "c4.tok_s", "c1.latency", "c4.latency", "c16.latency", "c1.ttft", "c4.ttft", "c16.ttft"} <= (
        reproduced
    )


def test_attribution_of_the_published_comparison():
    # 10 x 2.39 / 501 = 47.7 ms; 10 x 1.38 / 335 = 41.2; 10 x 1.11 / 163 = 68.1; 10 x 1.11 / 268 = 41.4.
    found = attribute_table(read_table(PUBLISHED / "kimi-k3-b300.yaml"))
    assert found["step_time_ms"] == {"vllm-64k": 47.7, "sglang-64k": 41.2, "vllm-200k": 68.1, "sglang-200k": 41.4}
    expected = {
        "vllm_64k_to_200k": (3.07, 2.15, 1.43),
        "sglang_64k_to_200k": (1.25, 1.24, 1.005),
        "sglang_over_vllm_64k": (0.669, 0.577, 1.158),
        "sglang_over_vllm_200k": (1.644, 1.0, 1.644),
    }
    for name, factors in expected.items():
        got = [found[name][key] for key in ("decode_ratio", "of_which_accept_len", "of_which_step_time")]
        assert got == pytest.approx(factors, abs=0.006)
    assert "accepted length" in found["sglang_over_vllm_64k"]["sentence"]
    assert "against" in found["sglang_over_vllm_64k"]["sentence"]


# A table that obeys every identity: latency = TTFT + 999 x TPOT, 40 requests of 1,000 tokens, 4 at once,
# 40 x latency / 4 = the least wall time; throughput = 40,000 / wall time.
CLEAN = {
    "workload": {"dataset": "random", "output_tokens": 1000, "concurrency": 4, "requests": 40},
    "client": {
        "vllm-32k": {
            "total_s": 251.3, "mean_latency_s": 24.98, "ttft_mean_ms": 5000.4, "ttft_p50_ms": 4900.1,
            "ttft_p90_ms": 5800.0, "tpot_mean_ms": 20.0, "itl_mean_ms": 20.0, "output_tokens_per_s": 159.17,
            "failed": 0, "incomplete": 0,
        },
        "sglang-32k": {
            "total_s": 301.0, "mean_latency_s": 29.97, "ttft_mean_ms": 7490.0, "ttft_p50_ms": 7200.0,
            "ttft_p90_ms": 9000.0, "tpot_mean_ms": 22.5, "itl_mean_ms": 22.5, "output_tokens_per_s": 132.9,
            "failed": 0, "incomplete": 0,
        },
        "vllm-128k": {"total_s": 500, "mean_latency_s": 49.5, "ttft_mean_ms": 19530, "tpot_mean_ms": 30},
        "sglang-128k": {"total_s": 450, "mean_latency_s": 44.6, "ttft_mean_ms": 19625, "tpot_mean_ms": 25},
    },
    "engine_log": {
        "vllm-32k": {"decode_tok_s": 200, "decode_tok_s_range": [190, 210], "accept_len": [1.9, 2.1], "dcp": 1},
        "sglang-32k": {"decode_tok_s": 170, "decode_tok_s_range": [160, 180], "accept_len": [1.9, 2.1], "dcp": 2},
        "vllm-128k": {"decode_tok_s": 120, "decode_tok_s_range": [110, 130], "accept_len": 1.5, "dcp": 1},
        "sglang-128k": {"decode_tok_s": 150, "decode_tok_s_range": [140, 160], "accept_len": 1.5, "dcp": 2},
    },
    "claimed": {
        "total_32k_vllm_lead": 1.2, "total_128k_sglang_lead": 1.11, "decode_32k_vllm_lead": 1.18,
        "decode_degradation_vllm": 1.67,
    },
    "hardware": {"visible_memory_gib_per_gpu": 140.0},
    "memory": {
        "vllm": {
            "weights_and_non_torch_gib": 80.0, "kv_cache_gib": 40.0, "kv_cache_safe_gib": 41.0, "kv_tokens": 900000,
        },
        "sglang": {"weights_gib": 80.0, "full_attention_kv_gib": 30.0, "full_attention_pool_tokens": 400000},
    },
    "configuration": {
        "vllm": {"args": {"max-num-seqs": 32, "gpu-memory-utilization": 0.9, "max-model-len": 262144}},
        "sglang": {"args": {"dcp-size": 2, "mem-fraction-static": 0.85, "context-length": 262144}},
        "table": {"vllm": {"max_num_seqs": 32, "memory_fraction": 0.9}, "sglang": {"memory_fraction": 0.85}},
    },
}  # fmt: skip


def planted(path, value):
    data = copy.deepcopy(CLEAN)
    *parents, last = path.split("/")
    place = data
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return make_table(data)


@pytest.mark.parametrize(
    ("throughput", "found"), [(2901.0, {("not closed", "client.a.output_tokens_per_s")}), (780.0, set())]
)
def test_throughput_against_tpot_where_no_length_is_given(throughput, found):
    """16 requests that each take 19.8 ms a token give 16 / 0.0198 = 808 tok/s at most; 2,901 would be 57 at once."""
    figures = {"tpot_mean_ms": 19.8, "output_tokens_per_s": throughput}
    table = make_table({"workload": {"concurrency": 16}, "client": {"a": figures}})
    assert faults(table) == found


def test_a_clean_table_has_no_finding():
    verdict = audit_table(make_table(CLEAN))
    assert verdict.findings == ()
    assert verdict.not_used == ()
    assert len(verdict.passed) > 15


@pytest.mark.parametrize(
    ("path", "value", "verdict", "subject"),
    [
        ("client/vllm-32k/output_tokens_per_s", 1750.9, "impossible", "client.vllm-32k.output_tokens_per_s"),
        ("client/vllm-32k/output_tokens_per_s", 170.0, "impossible", "client.vllm-32k.output_tokens_per_s"),
        ("client/vllm-32k/output_tokens_per_s", 120.0, "not closed", "client.vllm-32k.output_tokens_per_s"),
        ("client/vllm-32k/tpot_mean_ms", 24.98, "mislabelled", "client.vllm-32k.tpot_mean_ms"),
        ("client/vllm-32k/itl_mean_ms", 24.98, "mislabelled", "client.vllm-32k.itl_mean_ms"),
        ("client/vllm-32k/tpot_mean_ms", 13.0, "not closed", "client.vllm-32k.tpot_mean_ms"),
        ("client/vllm-32k/itl_mean_ms", 3.1, "not closed", "client.vllm-32k.itl_mean_ms"),
        ("client/vllm-32k/itl_mean_ms", 180.0, "not closed", "client.vllm-32k.itl_mean_ms"),
        ("client/vllm-32k/ttft_mean_ms", 17000.0, "not closed", "client.vllm-32k.ttft_mean_ms"),
        ("client/vllm-32k/ttft_mean_ms", 0.0, "missing", "client.vllm-32k.ttft_mean_ms"),
        ("client/vllm-32k/ttft_p90_ms", 4000.0, "impossible", "client.vllm-32k.ttft_p90_ms"),
        ("client/vllm-32k/ttft_p99_ms", 6000.0, "under-sampled", "client.vllm-32k.ttft_p99_ms"),
        ("client/vllm-32k/peak_output_tok_s", 100.0, "impossible", "client.vllm-32k.peak_output_tok_s"),
        ("claimed/total_32k_vllm_lead", 1.3, "inconsistent", "claimed.total_32k_vllm_lead"),
        ("claimed/decode_degradation_vllm", 1.75, "inconsistent", "claimed.decode_degradation_vllm"),
        ("engine_log/vllm-32k/decode_tok_s_range", [100, 150], "inconsistent", "engine_log.vllm-32k.decode_tok_s"),
        ("engine_log/vllm-32k/prefix_hit_rate", 0.93, "contaminated", "engine_log.vllm-32k.prefix_hit_rate"),
        ("engine_log/sglang-32k/dcp", 8, "contradiction", "configuration.sglang.dcp-size"),
        ("configuration/table/vllm/max_num_seqs", 64, "contradiction", "configuration.vllm.max-num-seqs"),
        ("configuration/vllm/args/max-num-seqs", None, None, None),
        ("memory/sglang/full_attention_pool_tokens", 200000, "infeasible", "configuration.sglang.context-length"),
        ("memory/vllm/kv_cache_gib", 43.0, "overcommitted", "configuration.vllm.gpu-memory-utilization"),
        ("memory/sglang/max_running_requests", 3, "infeasible", "memory.sglang.max_running_requests"),
        ("cold_start", {"vllm": {"container_created": "17:06:21", "ready": "17:16:57", "container_to_ready_min": 12.6}},
         "inconsistent", "cold_start.vllm.container_to_ready_min"),
    ],
)  # fmt: skip
def test_one_planted_fault_is_found_and_nothing_else(path, value, verdict, subject):
    assert faults(planted(path, value)) == ({(verdict, subject)} if verdict else set())


def test_more_requests_in_flight_than_allowed():
    # 40 x 49.5 / 480 = 4.125 in flight, of 4.
    table = planted("client/vllm-128k/total_s", 480)
    assert ("impossible", "client.vllm-128k.mean_latency_s") in faults(table)


def test_failed_requests_are_named_and_lower_the_bound():
    # 36 of 40 succeed: at most 36 x 1000 / 251.3 = 143.3 tok/s, below the 159.17 that is printed.
    assert faults(planted("client/vllm-32k/failed", 4)) == {
        ("incomplete", "client.vllm-32k.failed"),
        ("impossible", "client.vllm-32k.output_tokens_per_s"),
    }


@pytest.mark.parametrize("section", ["workload", "client", "engine_log", "memory", "configuration", "claimed"])
def test_any_subset_is_welcome(section):
    data = {key: value for key, value in CLEAN.items() if key != section}
    assert audit_table(make_table(data)).findings == ()


def leaves(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    else:
        yield path


@pytest.mark.parametrize(
    "value", [0, -1, None, "--", "text", [], [1, 2], {}, {"a": 1}, True, 1e300, float("nan")], ids=repr
)
def test_no_value_in_any_place_breaks_an_audit(value):
    for path in leaves(CLEAN):
        table = planted("/".join(path), value) if value is not None else None
        if table is None:
            data = copy.deepcopy(CLEAN)
            place = data
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = None
            table = make_table(data)
        audit_table(table)
        attribute_table(table)


@pytest.mark.parametrize("digits", [0, 1, 2])
def test_coarse_printing_is_no_fault(digits):
    data = copy.deepcopy(CLEAN)
    for figures in data["client"].values():
        for name, value in figures.items():
            figures[name] = round(value, digits) if digits else round(value)
    assert {v for v, _ in faults(make_table(data))} == set()


def test_unknown_figures_are_listed_and_not_used():
    table = planted("client/vllm-32k/vibes_ms", 3)
    assert audit_table(table).not_used == ("client.vllm-32k.vibes_ms",)


def test_a_change_within_rounding_is_a_note_and_beyond_it_a_fault():
    data = {
        "results": {"c16": {"baseline": {"tok_s": 258.3}, "candidate": {"tok_s": 725.0}}},
        "claimed_change_percent": {"c16": {"tok_s": 180.6}},
    }
    table = make_table(yaml.safe_load(yaml.safe_dump(data)))
    assert faults(table) == {("rounding", "claimed_change_percent.c16.tok_s")}
    data["claimed_change_percent"]["c16"]["tok_s"] = 185.0
    assert faults(make_table(data)) == {("inconsistent", "claimed_change_percent.c16.tok_s")}


def test_json_and_exit_status(tmp_path, capsys):
    file = tmp_path / "table.json"
    file.write_text(json.dumps(CLEAN))
    assert main(["audit", str(file), "--json", "--strict"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["findings"] == []
    bad = copy.deepcopy(CLEAN)
    bad["client"]["vllm-32k"]["output_tokens_per_s"] = 1750.9
    file.write_text(json.dumps(bad))
    assert main(["audit", str(file), "--json"]) == 0
    finding = json.loads(capsys.readouterr().out)["findings"][0]
    assert finding["verdict"] == "impossible"
    assert finding["reported"] == 1750.9
    assert finding["bound"] == pytest.approx(159.17)
    assert main(["audit", str(file), "--strict"]) == 1
    assert "impossible" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("missing.yaml", None, "no such file"),
        ("broken.yaml", "client: [", "not YAML"),
        ("broken.json", "{", "not JSON"),
        ("list.yaml", "- 1\n", "no mapping of figures"),
        ("empty.yaml", "", "no mapping of figures"),
        ("wrong.yaml", "claimed: 3\n", "claimed"),
        ("text.txt", "nothing here\n", "no figure was recognised"),
        ("short.csv", "ttft_ms\n", "no rows"),
    ],
)
def test_bad_input_is_one_line_and_status_2(tmp_path, capsys, name, text, problem):
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_table(file)
    assert main(["audit", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(file) in error
