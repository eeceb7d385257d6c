"""The front end of vLLM in Rust: its own wordings of throughput, readiness and what it passes over; V0's settings."""

from __future__ import annotations

import json

from crossover.logs import read_log

HEAD = "(RustFrontend pid=353) {} 06-01 08:{} [{}] "


def test_throughput_of_all_engines_together() -> None:
    line = HEAD.format("INFO", "17:22", "log_stats.rs:273") + (
        "Avg prompt tput: 640.5 toks/s, Avg generation tput: 1820.6 toks/s, Reqs Running: 41, Waiting: 3, Deferred: "
        "2 reqs, Preemptions: 4, GPU KV cache used: 12.5%, Prefix cache hit rate: 40.0%, External prefix cache hit "
        "rate: 5.0%"
    )
    report = read_log([line])
    (interval,) = report.intervals
    assert (interval.prefill_tok_s, interval.decode_tok_s, interval.running, interval.waiting) == (640.5, 1820.6, 41, 3)
    assert (interval.kv_usage, interval.prefix_hit_rate, interval.external_hit_rate, interval.engine_id) == (
        0.125,
        0.4,
        0.05,
        None,
    )
    assert (report.engine, report.unparsed) == ("vllm", 0)
    assert [(found.kind, found.count) for found in report.incidents] == [("preemption", 4)]
    assert report.effective_config["frontend"] == "rust"


def test_start_arguments_without_secrets() -> None:
    arguments = {
        "model": "/m",
        "max_model_len": 16384,
        "max_num_seqs": 8,
        "api_key": ["hidden-value"],
        "speculative_config": {"method": "eagle3", "num_speculative_tokens": 5},
    }
    report = read_log(
        [
            "INFO 06-01 08:15:01 [utils.py:392] Launching Rust frontend: /opt/vllm-rs frontend --listen-fd 17 "
            f"--engine-count 1 --args-json {json.dumps(arguments)} --data-parallel-size 1",
            HEAD.format("WARNING", "16:56", "unsupported.rs:64")
            + "argument 'structured_outputs_config' currently has no effect in Rust frontend, ignoring",
            HEAD.format("WARNING", "16:57", "hf.rs:221")
            + "failed to load tokenizer with fastokens; falling back to HuggingFace tokenizers",
            HEAD.format("INFO", "17:02", "server/src/lib.rs:133")
            + "starting OpenAI server bind_address=0.0.0.0:8000 model=/m",
        ]
    )
    config = report.effective_config
    assert (config["max_model_len"], config["max_running_requests"]) == (16384, 8)
    assert (config["speculative_method"], config["speculative_tokens"]) == ("eagle3", 5)
    assert "hidden-value" not in json.dumps(report.to_dict())
    assert {found.kind for found in report.incidents} == {"config_adjusted", "slow_tokenizer"}
    assert report.startup.ready == "--06-01T08:17:02"


def test_the_flat_arguments_of_v0() -> None:
    lines = [
        "INFO 10-04 05:57:00 api_server.py:527] args: Namespace(model='/m', speculative_model='/d', "
        "num_speculative_tokens=3)",
    ]
    config = read_log(lines).effective_config
    assert (config["speculative_model"], config["speculative_tokens"]) == ("/d", 3)
    lines = [lines[0].replace("/d", "[ngram]")]
    assert read_log(lines).effective_config["speculative_method"] == "ngram"


def test_defaults_of_the_scheduler() -> None:
    head = "INFO 10-04 05:57:00 [arg_utils.py:1] "
    config = read_log(
        [
            head + "Defaulting max_num_batched_tokens to 2048 for OPENAI_API_SERVER usage context.",
            head + "Setting max_num_seqs to 256 for LLM_CLASS usage context.",
        ]
    ).effective_config
    assert (config["max_batched_tokens"], config["max_running_requests"]) == (2048, 256)
