"""Effective configuration: arguments as printed by each generation, and what later lines make of them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from crossover.logs import read_log
from crossover.logs.sglang.config import normalise, parse_arguments, parse_command

PLAIN = Path(__file__).parents[2] / "cases" / "real-sglang-0.5.23-plain" / "input.txt"


def test_call_and_dictionary_say_the_same() -> None:
    call = "model_path='/m', tp_size=8, context_length=None, lora_paths=['a=b', 'c'], x=<Mode.A: 'a, b'>, y=-0.5)"
    dictionary = (
        "'model_path': '/m', 'tp_size': 8, 'context_length': None, 'lora_paths': ['a=b', 'c'], "
        "'x': <Mode.A: 'a, b'>, 'y': -0.5}"
    )
    wanted = {"model_path": "/m", "tp_size": 8, "context_length": None, "lora_paths": ["a=b", "c"], "y": -0.5}
    for found in (parse_arguments(call), parse_arguments(dictionary)):
        assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    "line",
    [
        "server_args=ServerArgs(model_path='/m', tp_size=8, dp_size=2, page_size=64, disable_radix_cache=True, tai",
        "server_args=ServerArgs(model_path='/m', tp_size=8, dp_size=2, page_size=64, disable_radix_cache=True)",
        "[2026-11-29 20:56:24] server_args={'model_path': '/m', 'tp_size': 8, 'dp_size': 2, 'page_size': 64, "
        "'disable_radix_cache': True}",
    ],
)
def test_arguments_under_the_common_names(line: str) -> None:
    found = read_log([line], "sglang")
    config = found.effective_config
    assert (config["model"], config["tensor_parallel"], config["block_size"]) == ("/m", 8, 64)
    assert config["prefix_caching"] is False
    assert found.startup.dp_size == 2


def test_cut_value_is_not_taken_for_whole() -> None:
    """`tp_size=1` may have been `tp_size=16`: an item counts only with its comma."""
    config = read_log(["server_args=ServerArgs(model_path='/m', tp_size=1"], "sglang").effective_config
    assert "tensor_parallel" not in config


def test_secrets_stay_out_of_the_report() -> None:
    line = "server_args=ServerArgs(model_path='/m', api_key='sk-1', admin_api_key='sk-2', ssl_keyfile_password='pw')"
    assert not any(secret in json.dumps(read_log([line], "sglang").to_dict()) for secret in ("sk-1", "sk-2", "pw'"))


def test_later_lines_are_nearer_to_the_truth() -> None:
    config = read_log(
        [
            "server_args=ServerArgs(model_path='/m', attention_backend=None, kv_cache_dtype='auto', "
            "max_running_requests=48, context_length=None)",
            "[2026-01-01 00:00:00] Attention backend not specified. Use fa3 backend by default.",
            "[2026-01-01 00:00:01 TP0] Using KV cache dtype: torch.float8_e4m3fn",
            "[2026-01-01 00:00:01 TP0] Using hybrid attention backend for decode and prefill: "
            "decode_backend=flashinfer, prefill_backend=fa3.",
            "[2026-01-01 00:00:02 TP0] max_total_num_tokens=900000, chunked_prefill_size=8192, "
            "max_prefill_tokens=16384, max_running_requests=39, context_len=131072, available_gpu_mem=5.00 GB",
        ]
    ).effective_config
    assert (config["attention_backend"], config["decode_attention_backend"]) == ("fa3", "flashinfer")
    assert (config["kv_cache_dtype"], config["max_running_requests"], config["max_model_len"]) == (
        "fp8_e4m3",
        39,
        131072,
    )
    assert config["raw"]["max_running_requests"] == 48  # what was asked for stays there


def test_command_line_counts_where_the_engine_says_nothing() -> None:
    asked = parse_command("--tp 8 --context-length=1000 --mem-fraction-static 0.9 --trust-remote-code --lora a b")
    assert asked == {
        "tp_size": 8, "context_length": 1000, "mem_fraction_static": 0.9, "trust_remote_code": True, "lora": "a b",
    }  # fmt: skip
    config = read_log(
        ["python -m sglang.launch_server --model-path /a --tp 4", "server_args=ServerArgs(model_path='/b', tp_size=2)"]
    ).effective_config
    assert (config["model"], config["tensor_parallel"]) == ("/b", 2)


def test_open_backends_take_the_general_one() -> None:
    found = normalise({"linear_attn_backend": "triton", "linear_attn_verify_backend": None, "attention_backend": "fa3",
                       "decode_attention_backend": None, "disaggregation_mode": "null"})  # fmt: skip
    assert found["linear_attention_verify_backend"] == "triton"
    assert found["decode_attention_backend"] == "fa3"
    assert found["disaggregation"] is None


def test_real_log_agrees_with_the_servers_own_answer() -> None:
    """Values of `/get_server_info` of the same run: tp_size 1, page_size 1, mem_fraction_static 0.719, ..."""
    report = read_log(PLAIN)
    raw = report.effective_config["raw"]
    wanted = {"tp_size": 1, "dp_size": 1, "pp_size": 1, "page_size": 1, "mem_fraction_static": 0.719,
              "chunked_prefill_size": 4096, "max_total_tokens": 40000, "attention_backend": "torch_native",
              "context_length": 4096, "decode_log_interval": 40, "schedule_policy": "fcfs"}  # fmt: skip
    assert {name: raw[name] for name in wanted} == wanted
    assert report.effective_config["max_running_requests"] == 4096  # left open by the user, set by the engine


def test_real_log_agrees_with_the_servers_counters() -> None:
    """`/metrics` of the same run: 13187 tokens prefilled in 6 passes, 45 cached, pool 40000, load 0.0218 s."""
    report = read_log(PLAIN)
    assert sum(row.new_tokens or 0 for row in report.prefill_batches) == 13187
    assert sum(row.cached_tokens or 0 for row in report.prefill_batches) == 45
    assert len(report.prefill_batches) == 6
    assert report.startup.kv_cache_tokens == 40000
    assert report.startup.weights_load_s == pytest.approx(0.0218, abs=0.005)
    assert report.startup.engine_init_s == pytest.approx(2.0148, abs=0.005)
    # 10 requests run: the tokens in the pool grow by 10 x 40 steps between two decode lines
    tokens = [row.tokens for row in report.decode_batches if row.tokens is not None]
    assert {later - earlier for earlier, later in pairwise(tokens)} == {400}


@pytest.mark.parametrize(
    ("raw", "drafted", "verified"),
    [
        ({"speculative_num_steps": 3, "speculative_num_draft_tokens": 4, "speculative_dspark_block_size": None}, 3, 4),
        ({"speculative_num_steps": None, "speculative_num_draft_tokens": 8, "speculative_dspark_block_size": 7}, 7, 8),
        ({"speculative_num_steps": None, "speculative_num_draft_tokens": None}, None, None),
    ],
)
def test_drafted_tokens_are_one_fewer_than_verified_ones(
    raw: dict[str, int | None], drafted: int | None, verified: int | None
) -> None:
    found = normalise(raw)
    assert (found["speculative_tokens"], found["speculative_verify_tokens"]) == (drafted, verified)


def test_arguments_as_json_have_its_words_for_true_false_and_nothing() -> None:
    report = read_log(
        [
            '[2026-06-20 09:10:00] server_args={"model_path": "/m/x", "tp_size": 8, "context_length": null, '
            '"enable_dp_attention": false, "disable_radix_cache": true, "speculative_algorithm": null, "api_key": "k"}'
        ],
        "sglang",
    )
    config = report.effective_config
    assert (config["dp_attention"], config["prefix_caching"], config["tensor_parallel"]) == (False, False, 8)
    assert (config["speculative_method"], config["max_model_len"]) == (None, None)
    assert config["raw"]["api_key"] == "[secret]"


def test_command_as_a_list_of_words() -> None:
    report = read_log(
        ["cmd: ['python3', '-m', 'sglang.launch_server', '--model-path', '/m', '--tp', '4', '--context-length=8192']"],
        "sglang",
    )
    assert report.effective_config["tensor_parallel"] == 4
    assert report.startup.context_length == 8192


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("sglang: 0.4.3.post4", "0.4.3.post4"),
        ("image: lmsysorg/sglang:v0.5.6.post2-cu129", "0.5.6.post2"),
        ("Collecting sglang==0.5.11rc1", "0.5.11rc1"),
        ("sglang_version='0.5.12.dev3+g1a2b3c'", "0.5.12.dev3+g1a2b3c"),
    ],
)
def test_version_without_what_follows_it(line: str, version: str) -> None:
    assert read_log([line], "sglang").version == version


def test_example_of_a_warning_is_no_command() -> None:
    report = read_log(["  Example: sglang serve --model-path <model> [options]"], "sglang")
    assert report.effective_config == {"raw": {}}


def test_command_over_several_lines_and_with_a_positional_model() -> None:
    for lines in (
        [
            "$ sglang serve org/m-30b \\",
            "    --tp 4 \\",
            "    --mem-fraction-static 0.82 \\",
            "    --disable-radix-cache",
        ],
        [
            "python3 -m sglang_router.launch_server \\",
            "> --model-path org/m-30b --tp-size=4 \\",
            "> --mem-fraction-static 0.82 \\",
            "> --disable-radix-cache",
        ],
        ["$ sglang serve org/m-30b --tp 4 --mem-fraction-static 0.82 --disable-radix-cache", "", "waiting"],
    ):
        log = [*lines, "[2026-03-02 10:00:05] Load weight begin. avail mem=78.50 GB"]
        config = read_log(log, "sglang").effective_config
        assert config["model"] == "org/m-30b"
        assert config["tensor_parallel"] == 4
        assert config["memory_fraction"] == 0.82
        assert config["prefix_caching"] is False


@pytest.mark.parametrize(
    ("arguments", "drafted"),
    [
        ({"speculative_algorithm": "DFLASH", "speculative_num_steps": 1, "speculative_num_draft_tokens": 16}, 15),
        ({"speculative_algorithm": "NGRAM", "speculative_num_steps": None, "speculative_num_draft_tokens": 12}, 11),
        ({"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_num_draft_tokens": 4}, 3),
        ({"speculative_algorithm": "EAGLE3", "speculative_num_steps": 5, "speculative_num_draft_tokens": 32}, 5),
        ({"speculative_algorithm": None, "speculative_num_steps": None, "speculative_num_draft_tokens": None}, None),
    ],
)
def test_tokens_drafted_a_step(arguments: dict[str, object], drafted: int | None) -> None:
    """The window that is verified holds the last accepted token as well, so one fewer is drafted."""
    assert normalise(arguments)["speculative_tokens"] == drafted


def test_no_limit_of_a_chunk_is_no_number() -> None:
    assert normalise({"chunked_prefill_size": -1}) == {"chunked_prefill_tokens": None}


GRAPHS = (
    "server_args=ServerArgs(model_path='/m', tp_size=4, cuda_graph_config=CudaGraphConfig(decode=PhaseConfig("
    "backend='{}', max_bs=256, bs=[1, 2]), prefill=PhaseConfig(backend='disabled', max_bs=-1, bs=[])), "
    "disable_cuda_graph=False)"
)


@pytest.mark.parametrize(("backend", "eager"), [("disabled", True), ("full", False)])
def test_decoding_without_graphs_is_eager(backend: str, eager: bool) -> None:
    assert read_log([GRAPHS.format(backend)], "sglang").effective_config["enforce_eager"] is eager
    answer = {"disable_cuda_graph": False, "cuda_graph_config": {"decode": {"backend": backend, "max_bs": 256}}}
    assert normalise(answer)["enforce_eager"] is eager
