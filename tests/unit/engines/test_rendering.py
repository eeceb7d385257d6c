"""Arguments become the words that the engine's parser takes. Expected command lines are written by hand."""

from __future__ import annotations

import pytest

from crossover.engines import ENGINES, get_engine
from crossover.errors import InputError

PLACE = {"model_path": "/w", "host": "127.0.0.1", "port": 8000}


def words(engine, arguments, **more):
    return list(get_engine(engine).command(arguments, **{**PLACE, **more}))


def test_vllm_booleans_json_lists_and_numbers():
    arguments = {
        "trust-remote-code": True,
        "enable_prefix_caching": False,
        "gpu-memory-utilization": 0.95,
        "max-model-len": 1000000,
        "attention-config": {"mla_prefill_backend": "TRTLLM_RAGGED", "use_prefill_query_quantization": True},
        "cudagraph-capture-sizes": [1, 2, 4],
        "middleware": ["a.b", "c.d"],
        "allowed-origins": ["http://a"],
        "disable-log-stats": False,
        "quantization": None,
        "override": "-1",
    }
    assert words("vllm", arguments) == [
        *["vllm", "serve", "/w", "--trust-remote-code", "--no-enable-prefix-caching"],
        *["--gpu-memory-utilization", "0.95", "--max-model-len", "1000000"],
        "--attention-config",
        '{"mla_prefill_backend":"TRTLLM_RAGGED","use_prefill_query_quantization":true}',
        *["--cudagraph-capture-sizes", "1", "2", "4", "--middleware", "a.b", "--middleware", "c.d"],
        *["--allowed-origins", '["http://a"]', "--override=-1"],
        *["--host", "127.0.0.1", "--port", "8000"],
    ]


def test_sglang_has_no_negative_switches():
    arguments = {"enable-symm-mem": True, "disable-cuda-graph": False, "cuda-graph-bs": [1, 2]}
    assert words("sglang", arguments) == [
        *["python3", "-m", "sglang.launch_server", "--model-path", "/w", "--enable-symm-mem"],
        *["--cuda-graph-bs", "1", "2", "--host", "127.0.0.1", "--port", "8000"],
    ]


def test_the_arguments_own_address_and_name_win():
    given = words("sglang", {"host": "0.0.0.0", "port": 30000, "served_model_name": "x"}, served_model_name="y")
    assert given[-6:] == ["--host", "0.0.0.0", "--port", "30000", "--served-model-name", "x"]
    assert get_engine("sglang").address({"host": "0.0.0.0", "port": 30000}) == ("0.0.0.0", 30000)
    assert get_engine("vllm").address({}) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "served", "expected"),
    [({}, None, "/w"), ({}, "n", "n"), ({"served-model-name": ["a", "b"]}, "n", "a")],
)
def test_the_name_under_which_the_model_is_listed(arguments, served, expected):
    assert get_engine("vllm").model_name(arguments, model_path="/w", served_model_name=served) == expected


def test_the_draft_model_is_taken_from_its_folder():
    speculative = {"speculative-config": {"model": "hub/draft", "num_speculative_tokens": 7}}
    assert '{"model":"/d","num_speculative_tokens":7}' in words("vllm", speculative, draft_path="/d")
    assert words("sglang", {}, draft_path="/d")[-2:] == ["--speculative-draft-model-path", "/d"]


def test_environment_values_and_what_a_cache_reset_needs():
    vllm = get_engine("vllm")
    environment = vllm.environment(
        {"VLLM_USE_V2_MODEL_RUNNER": 1, "A": True, "VLLM_NO_USAGE_STATS": None}, cache_reset=True
    )
    assert environment == {"VLLM_USE_V2_MODEL_RUNNER": "1", "A": "1", "VLLM_SERVER_DEV_MODE": "1"}
    assert "VLLM_SERVER_DEV_MODE" not in vllm.environment({})


def test_any_server_can_be_started_by_a_command():
    arguments = {"command": ["serve", "{model_path}", '{{"port":{port}}}'], "threads": 2}
    assert words("openai", arguments) == ["serve", "/w", '{{"port":8000}}', "--threads", "2"]
    with pytest.raises(InputError, match="no command of its own"):
        words("openai", {})


def test_unknown_engine():
    assert set(ENGINES) == {"openai", "sglang", "vllm"}
    with pytest.raises(InputError, match="unknown engine 'vlm'; use one of openai, sglang, vllm"):
        get_engine("vlm")
