"""Which source wins, what a disagreement is, and what has no source."""

from __future__ import annotations

from crossover.configuration import effective_configuration


def found(engine, report, info, **requested):
    configuration = effective_configuration(engine, report, info, {"arguments": requested})
    return {setting.name: setting for setting in configuration.settings}, configuration


LOG = {
    "engine": "vllm",
    "effective_config": {"block_size": 16, "kv_cache_dtype": "auto", "tensor_parallel": 8, "raw": {"engine": {"x": 1}}},
    "startup": {"max_running_requests": 64, "kv_cache_tokens": 1000, "graph_sizes": []},
    "incidents": [],
}


def test_the_source_nearest_to_the_truth_wins_and_the_others_are_shown() -> None:
    info = {"/metrics": {"vllm:cache_config_info": [{"labels": {"block_size": "1600", "cache_dtype": "fp8_e4m3"}}]}}
    settings, configuration = found("vllm", LOG, info)
    assert (settings["block_size"].value, settings["block_size"].source) == (1600, "/metrics")
    assert settings["block_size"].stated == (("/metrics", 1600), ("log", 16))
    assert settings["block_size"].disagree
    # `auto` is no other value than a real one.
    assert settings["kv_cache_dtype"].value == "fp8_e4m3"
    assert not settings["kv_cache_dtype"].disagree
    assert "raw" not in settings
    # Capacities are no settings: a difference in them confounds nothing.
    assert settings["kv_cache_tokens"].value == 1000
    assert "kv_cache_tokens" not in configuration.values
    assert configuration.values["max_running_requests"] == 64


def test_a_value_that_a_more_trusted_source_leaves_open_comes_from_the_next() -> None:
    info = {"/metrics": {"vllm:cache_config_info": [{"labels": {"cache_dtype": "auto", "block_size": "None"}}]}}
    log = LOG | {"effective_config": {"kv_cache_dtype": "bfloat16", "block_size": 16}}
    settings, _ = found("vllm", log, info)
    assert (settings["kv_cache_dtype"].value, settings["kv_cache_dtype"].source) == ("bfloat16", "log")
    assert (settings["block_size"].value, settings["block_size"].source) == (16, "log")


def test_older_servers_print_their_configuration_as_text() -> None:
    text = "model='/m', max_seq_len=4096, tensor_parallel_size=2, enforce_eager=False, kv_cache_dtype=fp8"
    settings, _ = found("vllm", None, {"/server_info": {"vllm_config": text}}, **{"tensor-parallel-size": 4})
    assert settings["max_model_len"].value == 4096
    assert (settings["tensor_parallel"].requested, settings["tensor_parallel"].value) == (4, 2)
    assert settings["tensor_parallel"].verdict == "changed"
    assert settings["kv_cache_dtype"].source == "/server_info"


def test_what_was_left_to_the_engine_is_neither_kept_nor_changed() -> None:
    log = LOG | {"effective_config": {"moe_backend": "TRITON"}}
    settings, _ = found("vllm", log, {}, **{"moe-backend": "auto"})
    assert (settings["moe_backend"].value, settings["moe_backend"].verdict) == ("TRITON", "left open")


def test_data_parallel_engines_give_the_limit_that_binds() -> None:
    states = [
        {"tp_size": 4, "effective_max_running_requests_per_dp": 32, "memory_usage": {"token_capacity": 900}},
        {"tp_size": 4, "effective_max_running_requests_per_dp": 30, "memory_usage": {"token_capacity": 1000}},
    ]
    settings, _ = found("sglang", None, {"/server_info": {"dp_size": 2, "internal_states": states}})
    assert settings["max_running_requests"].value == 30
    assert settings["kv_cache_tokens"].value == 900
    assert settings["tensor_parallel"].value == 4


def test_warnings_that_change_a_setting_are_settings() -> None:
    incidents = [
        {"kind": "fp8_kv_scale_default", "message": "Defaulting to scaling factors of 1.0."},
        {"kind": "allreduce_fallback", "message": "Custom allreduce is disabled because ..."},
    ]
    log = LOG | {"effective_config": {"disable_custom_all_reduce": False}, "incidents": incidents}
    settings, _ = found("vllm", log, {}, **{"disable-custom-all-reduce": False})
    assert settings["kv_scale"].value == 1.0
    assert settings["disable_custom_all_reduce"].verdict == "changed"


def test_an_unknown_engine_states_what_its_models_path_states() -> None:
    info = {"/v1/models": {"data": [{"id": "m", "max_model_len": 2048}]}, "/info": {"anything": 1}}
    settings, configuration = found("openai", None, info, threads=4, command=["serve"])
    assert settings["max_model_len"].value == 2048
    assert settings["threads"].verdict == "not stated"
    assert set(settings) == {"max_model_len", "threads"}
    assert configuration.sources == ("/v1/models",)


def test_strange_answers_are_no_statements() -> None:
    info = {
        "/server_info": [1],
        "/v1/models": {"data": None},
        "/metrics": {"vllm:cache_config_info": []},
        "/version": 3,
    }
    assert effective_configuration("vllm", None, info).settings == ()
    assert effective_configuration("sglang", None, {"/get_server_info": "busy", "/metrics": None}).settings == ()
