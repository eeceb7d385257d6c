from __future__ import annotations

import pytest

from crossover.errors import InputError
from crossover.simulator.flags import arguments_from_mapping, known_flags, parse_arguments


def test_vllm_forms() -> None:
    words = [
        "vllm",
        "serve",
        "some/model",
        "-tp",
        "8",
        "--max-model-len=4096",
        "--no-enable-prefix-caching",
        "--trust_remote_code",
    ]
    words += ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 4}']
    words += [
        "--attention-config.mla_prefill_backend",
        "TRTLLM_RAGGED",
        "--served-model-name",
        "a",
        "b",
        "--kv-cache-memory",
        "5",
    ]
    assert parse_arguments("vllm", words) == {
        "model": "some/model",
        "tensor-parallel-size": "8",
        "max-model-len": "4096",
        "enable-prefix-caching": False,
        "trust-remote-code": True,
        "speculative-config": {"method": "ngram", "num_speculative_tokens": 4},
        "attention-config": {"mla_prefill_backend": "TRTLLM_RAGGED"},
        "served-model-name": ["a", "b"],
        "kv-cache-memory-bytes": "5",
    }


def test_sglang_forms() -> None:
    words = ["python3", "-m", "sglang.launch_server", "--model-path", "m", "--tensor-parallel-size", "8"]
    words += ["--dcp-size", "8", "--enable-symm-mem"]
    assert parse_arguments("sglang", words) == {
        "model-path": "m",
        "tp-size": "8",
        "dcp-size": "8",
        "enable-symm-mem": True,
    }


@pytest.mark.parametrize(
    ("dialect", "words", "said"),
    [
        ("vllm", ["--mem-fraction-static", "0.9"], "unrecognized arguments: --mem-fraction-static"),
        ("sglang", ["--gpu-memory-utilization", "0.9"], "unrecognized arguments: --gpu-memory-utilization"),
        ("sglang", ["--no-disable-radix-cache"], "unrecognized arguments"),
        ("vllm", ["--max-num-seqs"], "expected one argument"),
        ("vllm", ["--max-num-seqs", "--trust-remote-code"], "expected one argument"),
    ],
)
def test_what_the_engine_would_refuse(dialect: str, words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_arguments(dialect, words)


def test_a_beginning_that_one_flag_has_is_that_flag() -> None:
    assert parse_arguments("vllm", ["--kv-cache-memory=7"]) == {"kv-cache-memory-bytes": "7"}
    assert parse_arguments("sglang", ["--speculative-algo", "EAGLE"]) == {"speculative-algorithm": "EAGLE"}
    with pytest.raises(InputError):
        parse_arguments("vllm", ["--max-num", "7"])


def test_mapping_forms_and_unknown_names() -> None:
    given = {"max_num_seqs": 4, "speculative-config": '{"method": "x"}', "kv-cache-memory": 1, "not-a-flag": 2}
    assert arguments_from_mapping("vllm", given) == {
        "max-num-seqs": 4,
        "speculative-config": {"method": "x"},
        "kv-cache-memory-bytes": 1,
        "not-a-flag": 2,
    }


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_the_lists_are_well_formed(dialect: str) -> None:
    table = known_flags(dialect)
    assert len(table) > 150
    assert {flag.kind for flag in table.values()} <= {"switch", "toggle", "value", "list", "json"}
