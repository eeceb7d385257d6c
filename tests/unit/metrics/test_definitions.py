"""Definitions on streams whose figures can be worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from crossover.errors import InputError
from crossover.metrics import METRICS, Context, compute_all, observe, summarise

T0 = 1_790_000_000_000_000_000
MS = 1_000_000


def tables(streams, sent_ms=0, completion="sum", status="ok"):
    """Streams are lists of (ms, kind, tokens) by request; sends default to 0 for all."""
    events, requests = [], []
    for request, stream in enumerate(streams):
        for seq, (at_ms, kind, tokens) in enumerate(stream):
            stamp = T0 + int(at_ms * MS)
            events.append((request, seq, stamp, stamp + 1000, kind, tokens))
        known = sum(tokens or 0 for _, _, tokens in stream)
        sent = sent_ms[request] if isinstance(sent_ms, list) else sent_ms
        count = known if completion == "sum" else completion
        state = status[request] if isinstance(status, list) else status
        requests.append((request, T0 + int(sent * MS), state, 100, count, f"id-{request}"))
    return (
        pd.DataFrame(events, columns=["request", "seq", "t_kernel_ns", "t_user_ns", "kind", "tokens"]),
        pd.DataFrame(
            requests, columns=["request", "sent_ns", "status", "prompt_tokens", "completion_tokens", "request_id"]
        ),
    )


def test_reasoning_stops_ttft_and_a_role_does_not():
    # role at 6 ms, reasoning at 200, 220, 240, content at 260 and 280, usage and done after it.
    stream = [(6, "role", 0), (200, "reasoning", 1), (220, "reasoning", 1), (240, "reasoning", 1)]
    stream += [(260, "content", 1), (280, "content", 1), (281, "usage", 0), (282, "done", 0)]
    found = summarise(*tables([stream]))
    assert found["ttft_s"]["mean"] == pytest.approx(0.200)
    assert found["ttfot_s"]["mean"] == pytest.approx(0.260)
    assert found["e2e_s"]["mean"] == pytest.approx(0.280)  # not the usage event at 281
    assert found["tpot_s"]["mean"] == pytest.approx(0.080 / 4)
    assert found["icl_s"]["mean"] == pytest.approx(0.020)
    assert found["output_tok_s"] == pytest.approx(5 / 0.280)


def test_reasoning_only_has_no_ttfot():
    found = summarise(*tables([[(200, "reasoning", 1), (220, "reasoning", 1)]]))
    assert found["ttfot_s"]["mean"] is None
    assert found["ttfot_s"]["n"] == 0
    assert "not reasoning" in found["ttfot_s"]["withheld"]["mean"]


def test_four_tokens_a_chunk_share_the_gap():
    # Chunks of 4 tokens every 80 ms: ICL 80 ms, ITL 20 ms, TPOT (240 ms) / 15 = 16 ms.
    found = summarise(*tables([[(at, "content", 4) for at in (100, 180, 260, 340)]]))
    assert found["icl_s"]["mean"] == pytest.approx(0.080)
    assert found["itl_s"]["mean"] == pytest.approx(0.020)
    assert found["itl_s"]["n"] == 12  # the first chunk's four tokens have no gap before them
    assert found["tpot_s"]["mean"] == pytest.approx(0.240 / 15)


def test_a_held_back_token_counts_with_the_next_output():
    # 100: 1 token; 120: empty text with a token; 140: output with a token -> the gap of 40 ms holds two tokens.
    found = summarise(*tables([[(100, "content", 1), (120, "empty", 1), (140, "content", 1)]]))
    assert found["itl_s"]["mean"] == pytest.approx(0.020)
    assert found["itl_s"]["n"] == 2
    assert found["icl_s"]["mean"] == pytest.approx(0.040)


def test_an_output_without_a_token_hands_its_gap_on():
    # 100: 1, 110: text of an earlier token, 140: 2 tokens -> one gap of 40 ms for two tokens.
    found = summarise(*tables([[(100, "content", 1), (110, "content", 0), (140, "content", 2)]]))
    assert found["itl_s"]["mean"] == pytest.approx(0.020)


def test_one_output_token_has_no_tpot_and_is_not_zero():
    # Case: 64 requests, 101 tokens: 27 requests of one token, 37 of two; TPOT is over 37.
    streams = [[(100, "content", 1)]] * 27 + [[(100, "content", 1), (150, "content", 1)]] * 37
    found = summarise(*tables(streams))
    assert found["tpot_s"]["n"] == 37
    assert found["tpot_s"]["mean"] == pytest.approx(0.050)
    assert found["tpot_s"]["min"] > 0


def test_all_output_in_one_event_has_no_tpot():
    found = summarise(*tables([[(100, "content", 5)]]))
    assert found["tpot_s"]["mean"] is None


def test_usage_says_80_where_the_events_carry_unknown_tokens():
    stream = [(100, "content", None), (200, "content", None)]
    found = summarise(*tables([stream], completion=80))
    assert found["itl_s"]["mean"] is None
    assert found["tpot_s"]["mean"] == pytest.approx(0.1 / 79)
    assert found["output_tok_s"] == pytest.approx(80 / 0.2)


def test_without_usage_there_is_no_throughput():
    events, requests = tables([[(100, "content", 1)]], completion=None)
    entries = compute_all(observe(events, requests), Context())
    assert entries["output_tok_s"]["value"] is None
    assert "usage" in entries["output_tok_s"]["withheld"]


def test_failed_and_incomplete_requests_are_counted_and_not_averaged():
    good = [(100, "content", 1), (200, "content", 1)]
    cut = [(100, "content", 1), (900, "content", 1)]
    events, requests = tables([good, cut, []], status=["ok", "incomplete", "failed"])
    observations = observe(events, requests)
    assert (observations.ok, observations.incomplete, observations.failed) == (1, 1, 1)
    found = summarise(events, requests)
    assert found["e2e_s"]["mean"] == pytest.approx(0.2)
    assert found["output_tok_s"] == pytest.approx(2 / 0.9)  # its tokens do not count, its time does


def test_throughput_is_over_wall_time_from_the_first_send():
    stream = [(300, "content", 1), (400, "content", 1)]
    later = [(500, "content", 1), (600, "content", 1)]
    found = summarise(*tables([stream, later], sent_ms=[100, 200]))
    assert found["duration_s"] == pytest.approx(0.5)
    assert found["output_tok_s"] == pytest.approx(4 / 0.5)


def test_stable_decode_counts_only_spans_in_which_all_decode():
    # A decodes 0..1000 ms at a token each 100 ms, B 500..1500 likewise: both decode in 500..1000:
    # 5 + 5 tokens in 0.5 s.
    first = [(at, "content", 1) for at in range(0, 1001, 100)]
    second = [(at, "content", 1) for at in range(500, 1501, 100)]
    found = summarise(*tables([first, second], sent_ms=-10), concurrency=2)
    assert found["stable_decode_tok_s"] == pytest.approx(20.0)


def test_stable_decode_splits_a_chunk_at_the_edge_of_the_span():
    # B starts at 50 ms, in the middle of A's gap of 100 ms with 10 tokens: half of A's tokens are inside;
    # the span ends with A at 100 ms, where B's chunk of 4 tokens (50..150) is halfway: 5 + 2 tokens in 50 ms.
    first = [(0, "content", 1), (100, "content", 10)]
    second = [(50, "content", 1), (150, "content", 4)]
    found = summarise(*tables([first, second], sent_ms=-10), concurrency=2)
    assert found["stable_decode_tok_s"] == pytest.approx(7 / 0.05)


def test_no_common_span_is_said_so():
    events, requests = tables([[(0, "content", 1), (100, "content", 1)], [(200, "content", 1), (300, "content", 1)]])
    entry = compute_all(observe(events, requests), Context(concurrency=2))["stable_decode_tok_s"]
    assert entry["value"] is None
    assert "no span" in entry["withheld"]


def test_goodput_counts_failures_as_misses():
    # TTFT 100, 300 ms (limit 200), one failure: 1 of 3.
    streams = [[(100, "content", 1), (120, "content", 1)], [(300, "content", 1), (320, "content", 1)], []]
    events, requests = tables(streams, status=["ok", "ok", "failed"])
    context = Context(goodput_limits={"ttft_s": 0.2, "tpot_s": 0.05})
    entry = compute_all(observe(events, requests), context)["goodput"]
    assert entry["value"] == pytest.approx(1 / 3)
    # Clopper-Pearson for 1 of 3: [0.0084, 0.9057] in any table.
    assert entry["ci95"] == pytest.approx([0.0084, 0.9057], abs=1e-4)


def test_two_choices_keep_their_gaps_apart_and_have_no_tpot():
    events, requests = tables([[(100, "content", 1), (101, "content", 1), (200, "content", 1), (201, "content", 1)]])
    events["choice"] = [0, 1, 0, 1]
    found = summarise(events, requests)
    assert found["icl_s"]["mean"] == pytest.approx(0.1)
    assert found["icl_s"]["n"] == 2
    assert found["tpot_s"]["mean"] is None


def test_user_stamps_where_the_kernel_gave_none():
    events, requests = tables([[(100, "content", 1), (200, "content", 1)]])
    events["t_kernel_ns"] = pd.array([None, None], dtype="Int64")
    assert summarise(events, requests)["ttft_s"]["mean"] == pytest.approx(0.100001)


def test_percentiles_below_the_floor_are_withheld_with_the_reason():
    found = summarise(*tables([[(100 + i, "content", 1), (200, "content", 1)] for i in range(10)]))["ttft_s"]
    assert found["p90"] is None
    assert "29" in found["withheld"]["p90"]
    assert found["p50"] == pytest.approx(0.1045)


def test_a_missing_column_is_named():
    events, requests = tables([[(100, "content", 1)]])
    with pytest.raises(InputError, match="tokens"):
        observe(events.drop(columns="tokens"), requests)


def test_no_event_at_all():
    events, requests = tables([[], []], status="failed")
    found = summarise(events, requests)
    assert found["duration_s"] is None
    assert found["output_tok_s"] is None
    assert found["ttft_s"]["n"] == 0


def test_every_definition_says_all_of_itself():
    for name, metric in METRICS.items():
        definition = metric.definition
        assert definition.name == name
        assert all([definition.formula, definition.clock, definition.exclusions, definition.source, definition.title])


def test_ten_requests_of_3000_tokens_take_well_under_a_second():
    import time

    count, length = 10, 3000
    events = pd.DataFrame(
        {
            "request": np.repeat(np.arange(count), length),
            "seq": np.tile(np.arange(length), count),
            "t_kernel_ns": T0 + np.tile(np.arange(length) * 20 * MS, count) + MS,
            "kind": "content",
            "tokens": 1,
        }
    )
    events["t_user_ns"] = events["t_kernel_ns"]
    requests = pd.DataFrame(
        {"request": range(count), "sent_ns": T0, "status": "ok", "prompt_tokens": 9, "completion_tokens": length}
    )
    requests["request_id"] = "x"
    start = time.perf_counter()
    found = summarise(events, requests, concurrency=count)
    assert time.perf_counter() - start < 1.0
    assert found["stable_decode_tok_s"] == pytest.approx(count / 0.02)
