"""Rare forms of vLLM's throughput and speculation lines."""

from __future__ import annotations

import pytest

from crossover.logs import read_log
from crossover.logs.lines import message_of

HEAD = "(APIServer pid=1) INFO 08-21 18:38:44 [loggers.py:273] Engine 000: "


def test_requests_that_fetch_their_cache_do_not_cut_the_line() -> None:
    line = (
        "Avg prompt throughput: 1.3 tokens/s, Avg generation throughput: 14.7 tokens/s, Running: 5 reqs, Waiting: 2 "
        "reqs, Deferred: 2 reqs, KV fetch: 1 waiting to start, 2 in progress, 0 completed waiting, Preemptions: 3, GPU "
        "KV cache usage: 12.0%, Prefix cache hit rate: 10.0%, External prefix cache hit rate: 5.0%, MM cache hit rate: "
        "50.0%, MFU: 6.6 TF/s/GPU 105.0 GB/s/GPU"
    )
    report = read_log([HEAD + line])
    (found,) = report.intervals
    assert (found.running, found.waiting, found.preemptions) == (5, 2, 3)
    assert (found.kv_usage, found.prefix_hit_rate, found.external_hit_rate) == (0.12, 0.1, 0.05)
    assert report.unparsed == 0


@pytest.mark.parametrize(
    ("length", "wanted"),
    [("0.77", 1.77), ("1.77", 1.77)],
)
def test_the_acceptance_length_counts_the_bonus_token_whatever_the_version_prints(length: str, wanted: float) -> None:
    """17 accepted of 110 drafted, 5 a step: 22 steps, 17/22 = 0.773 = the sum of the rates; 0.8 printed that."""
    line = (
        f"INFO 05-01 14:28:09 [metrics.py:87] SpecDecoding metrics: Draft acceptance rate: 15.5%, Mean acceptance "
        f"length: {length}, Accepted: 17 tokens, Drafted: 110 tokens, Per-position acceptance rate: 0.318, 0.182, "
        f"0.091, 0.091, 0.091"
    )
    (found,) = read_log([line]).speculation
    assert found.accept_len == wanted


def test_engines_of_older_versions_are_numbered_data_parallel_ranks() -> None:
    """0.8 wrote EngineCore_1 where later ones write EngineCore_DP1: 1000 + 900 tokens in all."""
    line = "(EngineCore_{0} pid=209549{0}) INFO 04-17 23:05:00 [kv_cache_utils.py:634] GPU KV cache size: {1} tokens"
    startup = read_log([line.format(0, "1,000"), line.format(1, "900")]).startup
    assert (startup.dp_size, startup.kv_cache_tokens, startup.kv_cache_tokens_total) == (2, 900, 1900)


def test_a_worker_may_name_its_rank_apart() -> None:
    line = "(VllmWorker TP{0} pid=128534{0}) INFO 08-26 09:12:26 [runner.py:1] Model loading took {1} GiB and 5.0 s"
    found = read_log([line.format(0, "7.5"), line.format(1, "7.25")])
    assert [(item.rank, item.gib) for item in found.memory] == [({"tp": 0}, 7.5), ({"tp": 1}, 7.25)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("авг 18 14:15:09 llm python3[28000]: (APIServer pid=28000) RuntimeError: gone", "RuntimeError: gone"),
        ("vllm-1  | (APIServer pid=1) RuntimeError: gone", "RuntimeError: gone"),
        ("vllm-1  | ValueError: gone", "ValueError: gone"),
        ("ValueError: gone (see (EngineCore pid=3) above)", "ValueError: gone (see (EngineCore pid=3) above)"),
    ],
)
def test_messages_are_without_the_prefix_of_a_collector(line: str, message: str) -> None:
    assert message_of(line) == message


@pytest.mark.parametrize(
    "below",
    [
        "Traceback (most recent call last):",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB.",
        "Loading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]",
        "[Gloo] Rank 0 is connected to 0 peer ranks. Expected number of connected peer ranks is : 0",
    ],
)
def test_what_begins_below_the_arguments_is_no_part_of_them(below: str) -> None:
    config = (
        "(EngineCore_DP0 pid=7) INFO 11-04 02:08:02 [core.py:710] Initializing a V1 LLM engine (v0.12.0) with config: "
        "model='/m', tensor_parallel_size=1"
    )
    assert read_log([config, below]).effective_config["tensor_parallel"] == 1


def test_speculation_as_0_5_words_it() -> None:
    """`tokens tokens` is printed so; 1 + 900 / (6000 / 3) = 1.45."""
    (found,) = read_log(
        [
            "INFO 07-24 04:00:31 metrics.py:316] Speculative metrics: Draft acceptance rate: 0.150, System efficiency: "
            "0.300, Number of speculative tokens: 3, Number of accepted tokens: 900, Number of draft tokens tokens: "
            "6000, Number of emitted tokens tokens: 2400."
        ]
    ).speculation
    assert (found.accepted_tokens, found.drafted_tokens, found.accept_len, found.accept_rate) == (900, 6000, 1.45, 0.15)


@pytest.mark.parametrize("prefix", ["", "0: ", "12:", "engine-1  | "])
def test_a_line_below_an_open_one_counts_once_whatever_stands_before_it(prefix: str) -> None:
    """With the prefix of a tool that numbers lines or ranks, the lines without a head begin no entry of their own and
    are tried as the rest of the one above; the second ends with a comma, as early versions printed it."""
    lines = [
        "INFO 10-16 19:05:47 metrics.py:367] Speculative metrics: Draft acceptance rate: 0.642, System efficiency: "
        "0.598, Number of speculative tokens: 3, Number of accepted tokens: 8547, Number of draft tokens: 13311, "
        "Number of emitted tokens: 10616.",
        "Speculative metrics: Draft acceptance rate: 1.00, Number of accepted tokens: 66, Number of draft tokens: 66, ",
        "Speculative metrics: Draft acceptance rate: 0.90, Number of accepted tokens: 63, Number of draft tokens: 70, ",
    ]
    found = read_log([prefix + line for line in lines]).speculation
    assert [(one.accepted_tokens, one.drafted_tokens) for one in found] == [(8547, 13311), (66, 66), (63, 70)]
