"""The semantics table: streams made by hand, with the times and counts that they must give.

Every expected value is read off the stream's own script: a token's time is the time at which its chunk was put.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from handmade import START_NS, counted, delta, event, usage_event

from crossover import metrics
from crossover.client import Interpretation, interpret

END = b"0\r\n\r\n"
Make = Callable[..., Path]


def close(tokens: int | None, at_ms: float, done: bool = True) -> list[tuple[float, bytes]]:
    """The stream's end: usage (if any tokens are given), [DONE], last chunk."""
    parts = event(usage_event(tokens)) if tokens is not None else b""
    return [(at_ms, parts + (event("[DONE]") if done else b"") + END)]


def seconds(interpretation: Interpretation, request: int = 0) -> pd.DataFrame:
    """The output events of a request with their time in seconds after the send."""
    events = interpretation.events
    output = events[(events["request"] == request) & events["kind"].isin(["reasoning", "content", "tool"])]
    return output.assign(t=(output["t_kernel_ns"] - START_NS) / 1e9)


def figures(interpretation: Interpretation) -> dict[str, Any]:
    return metrics.summarise(interpretation.events, interpretation.requests)


def test_role_only_first_chunk_stops_no_clock(recording: Make) -> None:
    # Role at 6 ms, tokens at 200, 220, 240 ms.
    reads = [(6, event(delta(role="assistant", content="")))]
    reads += [(200 + 20 * i, event(delta(content=" a"))) for i in range(3)]
    found = interpret(recording(reads + close(3, 240)))
    assert found.events["kind"].tolist() == ["role", "content", "content", "content", "usage", "done"]
    result = figures(found)
    assert result["ttft_s"]["mean"] == pytest.approx(0.200)
    assert result["tpot_s"]["mean"] == pytest.approx(0.020)
    assert result["e2e_s"]["mean"] == pytest.approx(0.240)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content", "reasoningContent"])
def test_reasoning_then_content(recording: Make, name: str) -> None:
    # 50 reasoning chunks at 200, 210, ... 690 ms, then content at 700, 710 ms: TTFT 200 ms, TTFOT 700 ms.
    reads = [(200 + 10 * i, event(delta(**{name: "r"}))) for i in range(50)]
    reads += [(700 + 10 * i, event(delta(content="c", **{name: None}))) for i in range(2)]
    found = interpret(recording(reads + close(52, 710)))
    kinds = found.events["kind"].value_counts()
    assert (kinds["reasoning"], kinds["content"]) == (50, 2)
    result = figures(found)
    assert result["ttft_s"]["mean"] == pytest.approx(0.200)
    assert result["ttfot_s"]["mean"] == pytest.approx(0.700)
    assert result["tpot_s"]["mean"] == pytest.approx(0.010)


def test_reasoning_only_has_no_time_to_first_other_output(recording: Make) -> None:
    reads = [(100 + 10 * i, event(delta(reasoning=" r"))) for i in range(5)]
    found = interpret(recording(reads + close(5, 140)))
    assert found.requests["status"].tolist() == ["ok"]
    result = figures(found)
    assert result["ttft_s"]["mean"] == pytest.approx(0.100)
    assert result["ttfot_s"]["mean"] is None
    assert result["output_tok_s"] == pytest.approx(5 / 0.140)


def test_four_tokens_a_chunk(recording: Make) -> None:
    # 25 chunks of 4 tokens, 80 ms apart, from 200 ms on; each chunk says how many tokens there are so far.
    reads = [(200 + 80 * i, event(delta(content=" a b c d", usage=counted(4 * i + 4)))) for i in range(25)]
    found = interpret(recording(reads + close(100, 200 + 80 * 24)))
    assert found.requests["tokens_source"].tolist() == ["continuous_usage"]
    assert seconds(found)["tokens"].tolist() == [4] * 25
    result = figures(found)
    assert result["icl_s"]["p50"] == pytest.approx(0.080)
    assert result["itl_s"]["p50"] == pytest.approx(0.020)
    # (last - first) / (n - 1) = 24 x 80 ms / 99
    assert result["tpot_s"]["mean"] == pytest.approx(24 * 0.080 / 99)


def test_usage_counts_80_where_100_were_asked(recording: Make) -> None:
    reads = [(200 + 20 * i, event(delta(content=" a"))) for i in range(80)]
    found = interpret(recording(reads + close(80, 200 + 20 * 79), asked=100))
    assert found.requests["completion_tokens"].tolist() == [80]
    assert "output_length" in [finding["finding"] for finding in found.findings]
    # 80 tokens by 200 + 79 x 20 ms; taking 100 would give 25 % more.
    assert figures(found)["output_tok_s"] == pytest.approx(80 / 1.780)


def test_without_usage_a_request_is_incomplete_and_never_averaged_in(recording: Make) -> None:
    reads = [(200 + 20 * i, event(delta(content=" a"))) for i in range(3)]
    found = interpret(recording(reads + close(None, 240)))
    row = found.requests.iloc[0]
    assert (row["status"], row["reason"]) == ("incomplete", "no_usage")
    assert pd.isna(row["completion_tokens"])
    assert figures(found)["ttft_s"]["mean"] is None


def test_without_done_a_request_is_incomplete(recording: Make) -> None:
    reads = [(200, event(delta(content=" a")))]
    found = interpret(recording(reads + close(1, 220, done=False)))
    assert found.requests[["status", "reason"]].iloc[0].tolist() == ["incomplete", "no_done"]


def test_empty_chunks_are_no_output(recording: Make) -> None:
    # The engine holds two tokens back (events with empty text), then shows them with the third.
    texts = ["a", "", "", "b"]
    reads = [(100 + 10 * i, event(delta(content=text, usage=counted(i + 1)))) for i, text in enumerate(texts)]
    found = interpret(recording(reads + close(4, 130)))
    assert found.events["kind"].tolist()[:4] == ["content", "empty", "empty", "content"]
    # Three tokens became visible with the last chunk.
    assert found.events["tokens"].tolist()[:4] == [1, 0, 0, 3]
    assert figures(found)["itl_s"]["mean"] == pytest.approx(0.010)


def test_whitespace_is_output(recording: Make) -> None:
    reads = [(100, event(delta(content="\n\n"))), (150, event(delta(content=" ")))]
    found = interpret(recording(reads + close(2, 150)))
    assert figures(found)["ttft_s"]["mean"] == pytest.approx(0.100)
    assert figures(found)["tpot_s"]["mean"] == pytest.approx(0.050)


def test_one_output_token_has_no_tpot(recording: Make) -> None:
    found = interpret(recording([(100, event(delta(content="a"))), *close(1, 100)]))
    result = figures(found)
    assert result["ttft_s"]["mean"] == result["e2e_s"]["mean"] == pytest.approx(0.100)
    assert result["tpot_s"]["mean"] is None
    assert result["tpot_s"]["n"] == 0


def test_cut_in_the_middle_of_a_stream(recording: Make) -> None:
    reads = [(200 + 20 * i, event(delta(content=" a"))) for i in range(3)]
    whole = [*reads, *close(3, 240)]
    cut = [*reads, (260, event(delta(content=" lost"))[:30])]
    found = interpret(recording(whole, cut, end="closed"))
    # The first one has its [DONE]: that the connection then closes changes nothing.
    assert found.requests["status"].tolist() == ["ok", "incomplete"]
    assert found.requests["reason"].tolist() == [None, "cut"]
    assert len(seconds(found, 1)) == 3
    assert figures(found)["ttft_s"]["n"] == 1


def test_429_then_success(recording: Make) -> None:
    body = b'{"error": {"message": "too many"}}'
    refusal = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    good = [(200, event(delta(content=" a"))), *close(1, 200)]
    found = interpret(recording([(5, refusal)], good))
    assert found.requests["status"].tolist() == ["failed", "ok"]
    first = found.requests.iloc[0]
    assert (first["reason"], first["http_status"]) == ("http_4xx", 429)
    assert "too many" in first["message"]
    assert figures(found)["ttft_s"]["mean"] == pytest.approx(0.200)


def test_two_choices_are_told_apart(recording: Make) -> None:
    # Two choices side by side: 3 tokens each at 100, 120, 140 ms and at 110, 130, 150 ms; each counts its own tokens.
    reads = []
    for i in range(3):
        reads.append((100 + 20 * i, event(delta(content="a", index=0, usage=counted(i + 1)))))
        reads.append((110 + 20 * i, event(delta(content="b", index=1, usage=counted(i + 1)))))
    found = interpret(recording(reads + close(6, 150)))
    row = found.requests.iloc[0]
    assert (row["status"], row["choices"], row["completion_tokens"]) == ("ok", 2, 6)
    assert "choices" in [finding["finding"] for finding in found.findings]
    output = seconds(found)
    assert output["tokens"].tolist() == [1] * 6
    assert output.groupby("choice")["t"].diff().dropna().tolist() == pytest.approx([0.020] * 4)
    assert figures(found)["ttft_s"]["mean"] == pytest.approx(0.100)
    assert figures(found)["output_tok_s"] == pytest.approx(6 / 0.150)
    # Within a choice the gaps are 20 ms; a time per token of the two together has no meaning.
    assert figures(found)["icl_s"]["mean"] == pytest.approx(0.020)
    assert figures(found)["itl_s"]["mean"] == pytest.approx(0.020)
    assert figures(found)["tpot_s"]["mean"] is None


def test_malformed_event(recording: Make) -> None:
    reads = [(100, event(delta(content="a"))), (110, event('{"choices": [{')), (120, event(delta(content="b")))]
    found = interpret(recording(reads + close(3, 120)))
    row = found.requests.iloc[0]
    assert (row["status"], row["reason"]) == ("incomplete", "malformed")
    assert "event 2" in row["message"]


@pytest.mark.parametrize("payload", ['{"choices": [5]}', "[1]", '{"choices": [{"delta": 3}]}', '{"usage": "many"}'])
def test_an_event_of_another_shape_is_malformed(recording: Make, payload: str) -> None:
    found = interpret(recording([(100, event(delta(content="a"))), (110, event(payload)), *close(1, 120)]))
    assert found.requests["reason"].tolist() == ["malformed"]


def test_error_event(recording: Make) -> None:
    reads = [(100, event(delta(content="a"))), (110, event({"error": {"message": "out of memory"}}))]
    found = interpret(recording(reads + close(None, 120)))
    row = found.requests.iloc[0]
    assert (row["status"], row["reason"]) == ("incomplete", "server_error")
    assert "out of memory" in row["message"]


def test_unknown_field_is_named(recording: Make) -> None:
    found = interpret(recording([(100, event(delta(thoughts="hm"))), (200, event(delta(content="a"))), *close(2, 200)]))
    finding = next(item for item in found.findings if item["finding"] == "unknown_field")
    assert finding["severity"] == "error"
    assert "'thoughts'" in finding["why"]


def test_tool_call_is_output_once_it_says_something(recording: Make) -> None:
    empty = [{"index": 0, "id": "call", "function": {"name": "", "arguments": ""}}]
    named = [{"index": 0, "function": {"name": "find", "arguments": ""}}]
    reads = [(100, event(delta(tool_calls=empty))), (150, event(delta(tool_calls=named)))]
    found = interpret(recording(reads + close(2, 150)))
    assert found.events["kind"].tolist()[:2] == ["empty", "tool"]
    assert figures(found)["ttfot_s"]["mean"] == pytest.approx(0.150)


def test_completions_text(recording: Make) -> None:
    first = {"choices": [{"index": 0, "text": "", "finish_reason": None}]}
    second = {"choices": [{"index": 0, "text": " a", "finish_reason": "length"}]}
    found = interpret(recording([(100, event(first)), (120, event(second)), *close(1, 120)]))
    assert found.events["kind"].tolist()[:2] == ["empty", "content"]
    assert found.requests["finish_reason"].tolist() == ["length"]


def test_token_ids_count_where_usage_does_not(recording: Make) -> None:
    reads = [(100, event(delta(content="ab", token_ids=[1, 2]))), (140, event(delta(content="c", token_ids=[3])))]
    found = interpret(recording(reads + close(3, 140)))
    assert found.requests["tokens_source"].tolist() == ["token_ids"]
    assert seconds(found)["tokens"].tolist() == [2, 1]


def test_tokens_that_nothing_tells_are_missing_not_one(recording: Make) -> None:
    reads = [(100, event(delta(content="ab"))), (140, event(delta(content="c")))]
    found = interpret(recording(reads + close(5, 140)))
    assert seconds(found)["tokens"].isna().all()
    assert figures(found)["itl_s"]["mean"] is None
    assert figures(found)["icl_s"]["mean"] == pytest.approx(0.040)


def test_several_events_in_one_read_share_its_stamp_and_are_counted(recording: Make) -> None:
    both = event(delta(content="a")) + event(delta(content="b"))
    found = interpret(recording([(100, both), (120, event(delta(content="c"))), *close(3, 120)]))
    assert seconds(found)["t"].tolist() == pytest.approx([0.100, 0.100, 0.120])
    assert found.fitness["coalesced_reads"] == 1


def test_an_event_has_the_stamp_of_the_read_that_completed_it(recording: Make) -> None:
    data = event(delta(content="a"))
    found = interpret(recording([(100, data[:20]), (130, data[20:]), *close(1, 150)]))
    assert seconds(found)["t"].tolist() == pytest.approx([0.130])
    assert (found.requests["first_byte_ns"] - START_NS).tolist() == [100_000_000]


def test_clock_scale_stretches_about_the_first_send(recording: Make) -> None:
    reads = [(5, event(delta(content="a"))), (5.5, event(delta(content="b")))]
    found = interpret(recording(reads + close(2, 5.5)), clock_scale=40)
    assert seconds(found)["t"].tolist() == pytest.approx([0.200, 0.220])
    assert figures(found)["tpot_s"]["mean"] == pytest.approx(0.020)
    # The recorder's own figures stay in real time: 20 us between stamp and read.
    assert found.fitness["lag_s"]["p50"] == pytest.approx(20e-6)


def test_lag_beyond_the_limit_rejects(recording: Make) -> None:
    from crossover.client import FitnessLimits

    found = interpret(
        recording([(100, event(delta(content="a"))), *close(1, 100)]), limits=FitnessLimits(lag_p99_s=1e-5)
    )
    assert found.fitness["verdict"] == "rejected"
    assert [finding["finding"] for finding in found.findings] == ["recorder_unfit"]


def test_reads_without_a_stamp_are_counted_and_fall_back_to_user_time(recording: Make) -> None:
    found = interpret(recording([(-1, event(delta(content="a"))), *close(1, 100)]))
    assert found.fitness["unstamped_reads"] == 1
    assert found.fitness["verdict"] == "rejected"
    assert not found.events["t_kernel_ns"].isna().any()


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("refused", "refused"),
        ("timeout", "timeout"),
        ("reset", "no_response"),
        ("closed", "no_response"),
        ("stopped", "stopped"),
    ],
)
def test_requests_without_a_response(recording: Make, end: str, reason: str) -> None:
    found = interpret(recording([], end=end))
    assert found.requests[["status", "reason"]].iloc[0].tolist() == ["failed", reason]
    assert found.requests["first_byte_ns"].isna().all()


def test_an_answer_that_is_no_stream(recording: Make) -> None:
    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"choices": []}'
    found = interpret(recording([(5, answer)]))
    assert found.requests[["status", "reason"]].iloc[0].tolist() == ["failed", "not_streamed"]
