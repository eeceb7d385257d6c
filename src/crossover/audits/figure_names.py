"""The words that figures are named with: units, statistics, and quantities by kind of unit."""

from __future__ import annotations

from collections.abc import Iterable

TIME, RATE, REQUEST_RATE, COUNT = "s", "tok/s", "req/s", "count"
USER_RATE, GPU_RATE = "tok/s/user", "tok/s/GPU"

_SECONDS = ("s", "sec", "secs", "second", "seconds")
_TOKENS = ("tok", "toks", "token", "tokens")
_REQUESTS = ("req", "reqs", "request", "requests", "sample", "samples")


def _per(nouns: Iterable[str], last: Iterable[str], ends: Iterable[str] = ("",)) -> list[str]:
    """Spells a rate: `tok_s`, `tokens_per_second`, with an end such as `_user` or `_per_user`."""
    return [
        f"{noun}{per}_{unit}{end}" for noun in nouns for per in ("", "_per") for unit in last for end in ends
    ]  # fmt: skip


UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(_SECONDS, (TIME, 1.0)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), (TIME, 1e-3)),
    **dict.fromkeys(("us", "usec", "microseconds"), (TIME, 1e-6)),
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), (TIME, 1e-9)),
    **dict.fromkeys(("min", "minutes"), (TIME, 60.0)),
    **dict.fromkeys([*_per(_TOKENS, _SECONDS), "tps"], (RATE, 1.0)),
    **dict.fromkeys(_per(_TOKENS, ("min", "minute")), (RATE, 1 / 60)),
    **dict.fromkeys([*_per(_REQUESTS, _SECONDS), "qps", "rps"], (REQUEST_RATE, 1.0)),
    **dict.fromkeys(_per(_REQUESTS, ("min", "minute")), (REQUEST_RATE, 1 / 60)),
    **dict.fromkeys([*_per(_TOKENS, _SECONDS, ("_user", "_per_user")), "tps_user", "tps_per_user"], (USER_RATE, 1.0)),
    **dict.fromkeys([*_per(_TOKENS, _SECONDS, ("_gpu", "_per_gpu")), "tps_gpu", "tps_per_gpu"], (GPU_RATE, 1.0)),
}
PER_SECOND = frozenset({"per_s", "per_sec", "per_second", "1_s"})
"""A unit that leaves open what is counted: requests where the name says so, else tokens."""

COUNTED = frozenset({"tokens", "tok", "token", "requests", "request", "count"})
"""What stands in brackets behind a count: `Output Sequence Length (tokens)`."""

STATISTICS = {
    "mean": "mean", "avg": "mean", "average": "mean", "median": "p50", "mdn": "p50", "med": "p50", "min": "min",
    "minimum": "min", "max": "max", "maximum": "max", "peak": "peak", "std": "std", "stddev": "std", "stdev": "std",
}  # fmt: skip

# What is left of a name without statistic and unit, for each kind of unit.
QUANTITIES: dict[str, dict[str, str]] = {
    TIME: {
        **dict.fromkeys(
            (
                "total", "total_time", "duration", "benchmark_duration", "benchmark_time", "time_taken_for_tests",
                "wall", "wall_time", "elapsed", "elapsed_time", "total_duration", "test_duration", "benchmark",
                "time_taken", "total_test_time", "run_time", "runtime",
            ),
            "total",
        ),
        **dict.fromkeys(
            (
                "latency", "e2e", "e2el", "e2e_latency", "request_latency", "req_latency", "end_to_end",
                "end_to_end_latency", "end_to_end_latency_per_request", "end_to_end_request_latency",
                "e2e_request_latency", "latency_per_request", "lat",
            ),
            "latency",
        ),
        **dict.fromkeys(
            ("ttft", "time_to_first_token", "first_token_latency", "time_to_first_token_ttft", "first_chunk_latency"),
            "ttft",
        ),
        **dict.fromkeys(("ttfot", "ttfo", "time_to_first_output_token"), "ttfot"),
        **dict.fromkeys(
            ("tpot", "time_per_output_token", "time_per_output_token_tpot", "time_to_output_token"), "tpot"
        ),
        **dict.fromkeys(
            ("itl", "inter_token_latency", "inter_token", "intertoken_latency", "time_between_tokens", "tbt"), "itl"
        ),
        **dict.fromkeys(("icl", "inter_chunk_latency", "package_latency"), "icl"),
    },
    RATE: {
        **dict.fromkeys(
            (
                "", "output", "out", "output_throughput", "output_token_throughput", "output_tokens_throughput",
                "throughput", "generation", "generation_throughput", "output_token", "output_tokens", "generated",
                "throughput_output", "tput_output", "tput", "total_output_throughput", "total_output_token_throughput",
                "output_throughput_of_server", "overall_output_throughput", "completed", "completed_tokens",
            ),
            "output_rate",
        ),
        **dict.fromkeys(
            (
                "total", "tot", "total_token", "total_tokens", "total_token_throughput", "total_throughput",
                "throughput_total", "tput_total", "total_throughput_of_server",
            ),
            "total_rate",
        ),
        **dict.fromkeys(
            (
                "input", "input_token_throughput", "input_throughput", "prompt", "input_tokens",
                "input_throughput_of_server", "tput_input",
            ),
            "input_rate",
        ),
        **dict.fromkeys(("decode", "stable_decode"), "decode_rate"),
        **dict.fromkeys(
            (
                "output_inference_speed_per_request", "output_inference_speed", "output_token_throughput_per_user",
                "throughput_per_user", "tput_user",
            ),
            "user_rate",
        ),
    },
    REQUEST_RATE: dict.fromkeys(
        (
            "", "request", "request_throughput", "req_throughput", "throughput", "requests", "request_stats",
            "total_request_throughput", "completed",
        ),
        "request_rate",
    ),
    USER_RATE: dict.fromkeys(
        (
            "", "output", "output_throughput", "output_token_throughput", "output_token_throughput_per_user",
            "throughput",
        ),
        "user_rate",
    ),
    GPU_RATE: {},
    COUNT: {
        **dict.fromkeys(
            (
                "requests", "successful_requests", "completed", "succeed_requests", "success_requests",
                "completed_requests", "successful", "request_count", "num_requests", "number_of_requests",
                "number_of_completed_requests", "n_req", "success",
            ),
            "requests",
        ),
        **dict.fromkeys(
            ("failed", "failed_requests", "errored", "errors", "number_of_errored_requests", "error_request_count"),
            "failed",
        ),
        **dict.fromkeys(("incomplete", "incomplete_requests"), "incomplete"),
        **dict.fromkeys(
            ("total_requests", "num_prompts", "expected_number_of_requests", "requests_made"), "made_requests"
        ),
        **dict.fromkeys(
            (
                "output_tokens", "output_tokens_per_request", "output_sequence_length", "output_length", "output_len",
                "osl", "output_tok_per_req", "output_token_count", "outputtokens",
                "output_num_tokens",
            ),
            "output_tokens",
        ),
        **dict.fromkeys(
            (
                "input_tokens", "input_tokens_per_request", "input_sequence_length", "input_length", "input_len",
                "isl", "input_tok_per_req", "prompt_length", "len_token_sequence", "inputtokens",
                "input_num_tokens",
            ),
            "input_tokens",
        ),
        **dict.fromkeys(("target_token_len", "target_input_tokens"), "asked_input_tokens"),
        **dict.fromkeys(("total_output_tokens", "total_generated_tokens"), "total_output_tokens"),
        "total_generated_tokens_retokenized": "total_retokenized",
        "total_input_tokens": "total_input_tokens",
        **dict.fromkeys(
            ("request_concurrency", "reqeuest_concurrency", "concurrency_limit", "number_of_concurrency"),
            "max_concurrency",
        ),
        **dict.fromkeys(
            (
                "concurrency", "requests_concurrency", "request_stats_concurrency", "conc", "concur",
                "number_of_concurrent_requests", "num_concurrent_requests", "concurrent_users",
            ),
            "concurrency",
        ),
        "concurrent_requests": "concurrent_requests",
        **dict.fromkeys(
            ("package_per_request", "packages_per_request", "events_per_request", "output_num_chunks"), "events"
        ),
    },
}  # fmt: skip

# Names that tools print without a unit; the unit is part of the tool's documentation.
UNITLESS: dict[str, tuple[str, str, float]] = {
    "duration": ("total", TIME, 1.0),
    "output_throughput": ("output_rate", RATE, 1.0),
    "total_token_throughput": ("total_rate", RATE, 1.0),
    "request_throughput": ("request_rate", REQUEST_RATE, 1.0),
    "qps": ("request_rate", REQUEST_RATE, 1.0),
}
