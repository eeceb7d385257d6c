"""Names of figures, and printed numbers as intervals."""

import pytest

from crossover.audits.figures import recognise
from crossover.audits.printed import Interval, Printed, parse_number
from crossover.audits.table import context_of, variant_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ttft_p90_ms", ("ttft", "p90", 1e-3)),
        ("P90 TTFT (ms)", ("ttft", "p90", 1e-3)),
        ("Average time to first token (s)", ("ttft", "mean", 1.0)),
        ("mean_latency_s", ("latency", "mean", 1.0)),
        ("total_s", ("total", "mean", 1.0)),
        ("Benchmark duration (s)", ("total", "mean", 1.0)),
        ("output_tokens_per_s", ("output_rate", "mean", 1.0)),
        ("Output token throughput (tok/s)", ("output_rate", "mean", 1.0)),
        ("Peak output token throughput (tok/s)", ("output_rate", "peak", 1.0)),
        ("Total Token throughput (tok/s)", ("total_rate", "mean", 1.0)),
        ("tok_s", ("output_rate", "mean", 1.0)),
        ("requests_per_s", ("request_rate", "mean", 1.0)),
        ("median_itl_ms", ("itl", "p50", 1e-3)),
        ("output_throughput", ("output_rate", "mean", 1.0)),
        ("duration", ("total", "mean", 1.0)),
        ("completed", ("requests", "mean", 1.0)),
        ("output_tokens", ("output_tokens", "mean", 1.0)),
        ("e2el_p99_ms", ("latency", "p99", 1e-3)),
    ],
)
def test_recognised(name, expected):
    found = recognise(name)
    assert (found.quantity, found.statistic, found.factor) == expected


@pytest.mark.parametrize("name", ["ttft", "vibes_ms", "score", "acceptance_rate_percent", "latency"])
def test_a_name_without_quantity_or_unit_is_not_used(name):
    assert recognise(name) is None


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("12.28", 12.275, 12.285), ("72.60", 72.595, 72.605), ("34,838.8", 34838.75, 34838.85), ("501", 500.5, 501.5)],
)
def test_a_printed_number_stands_for_what_rounds_to_it(text, low, high):
    found = Interval.around(parse_number(text))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_interval_arithmetic():
    a, b = Interval(1, 2), Interval(3, 4)
    assert a + b == Interval(4, 6)
    assert b - a == Interval(1, 3)
    assert a * b == Interval(3, 8)
    assert (b / a).high == 4
    assert a.gap(b) == pytest.approx(1 / 3.5)
    assert a.agrees(Interval(1.5, 9))
    assert Printed(3.0).half_width == 0.5


def test_names_of_cells():
    assert context_of("vllm-64k") == 64_000
    assert context_of("total_64k_vllm_lead") == 64_000
    assert context_of("sglang 1M") == 1_000_000
    assert context_of("c16") is None
    assert variant_of("vLLM 64K") == "vllm"
    assert variant_of("sglang-dcp1-200k") == "sglang-dcp1"


def test_a_number_times_a_power_of_ten_keeps_its_digits():
    seconds = parse_number("1,000.00") * 1e-3
    assert isinstance(seconds, Printed)
    assert (seconds, seconds.text) == (1.0, "1.00000")
    assert seconds.half_width == 5e-6
    assert not isinstance(parse_number("1.5") * 3.0, Printed)
    assert (parse_number("12.3") / 1e3).text == "0.0123"


@pytest.mark.parametrize("text", ["1e999", "0e999", "9" * 400, "", "-", "1.2.3"])
def test_what_is_no_number_of_a_figure(text):
    assert parse_number(text) is None
