"""How servers and gateways in use write their streams: wire transcripts, and what each must give.

Field names, comments and error shapes are those that the named software documents or sends; texts and times are made
up. Expected values are read off the transcripts: output at 200, 220 and 240 ms, unless a test says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from handmade import counted, delta, event, usage_event

from crossover import metrics
from crossover.client import Interpretation, interpret

Make = Callable[..., Path]
END = b"0\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def plain(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def words(*payloads: dict[str, Any], usage: int | None = 3, done: bool = True) -> list[tuple[float, bytes]]:
    """The payloads at 200, 220, ... ms; then usage and [DONE] with the last."""
    reads = [(200 + 20 * i, event(payload)) for i, payload in enumerate(payloads)]
    last = reads[-1][0]
    tail = (event(usage_event(usage)) if usage is not None else b"") + (event("[DONE]") if done else b"") + END
    return [*reads, (last, tail)]


def row_of(found: Interpretation) -> dict[str, Any]:
    return found.rows[0]


def kinds(found: Interpretation) -> list[str]:
    return [kind for kind in found.events["kind"].tolist() if kind not in ("usage", "done")]


def three(**fields: Any) -> list[dict[str, Any]]:
    return [delta(content=text, **fields) for text in (" a", " b", " c")]


def check_three_words(found: Interpretation) -> None:
    """Three tokens at 200, 220, 240 ms: TTFT 0.2 s, E2E 0.24 s, TPOT (0.24 - 0.2) / 2 s."""
    row = row_of(found)
    assert (row["status"], row["reason"], row["completion_tokens"], row["output_events"]) == ("ok", None, 3, 3)
    result = metrics.summarise(found.events, found.requests)
    assert result["ttft_s"]["mean"] == pytest.approx(0.2)
    assert result["e2e_s"]["mean"] == pytest.approx(0.24)
    assert result["tpot_s"]["mean"] == pytest.approx(0.02)
    assert found.findings == []


AZURE_FIRST = {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}], "id": ""}
AZURE_FILTER = {
    "choices": [
        {
            "index": 0,
            "finish_reason": None,
            "content_filter_results": {"hate": {"filtered": False}},
            "content_filter_offsets": {"check_offset": 44, "start_offset": 44, "end_offset": 198},
        }
    ]
}
BEFORE = {
    "azure": plain(AZURE_FIRST),
    "azure_filter": plain(AZURE_FILTER),
    "openrouter": b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n",
    "ping": b": ping - 2026-01-01 00:00:00+00:00\r\n\r\n",
    "anthropic_ping": b'event: ping\ndata: {"type": "ping"}\n\n',
    "empty_data": b"data:\n\n",
    "retry": b"retry: 3000\nid: 1\n\n",
    "litellm": plain(delta(role="assistant", content="", provider_specific_fields={"citations": None}, audio=None)),
    "minimax": plain(delta(role="assistant", content="", name="Mini", audio_content="")),
    "null_delta": plain({"choices": [{"index": 0, "delta": None, "finish_reason": None}]}),
    "null_choices": plain({"choices": None, "usage": None}),
    "byte_order_mark": b"\xef\xbb\xbf",
    "logprobs": plain({"choices": [{"index": 0, "delta": {"content": ""}, "logprobs": {"content": []}}]}),
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_comes_before_the_output_stops_no_clock(recording: Make, name: str) -> None:
    # It comes at 6 ms; a byte order mark belongs to the first event.
    if name == "byte_order_mark":
        reads = words(*three())
        reads[0] = (200, chunk(BEFORE[name] + plain(three()[0])))
    else:
        reads = [(6, chunk(BEFORE[name])), *words(*three())]
    check_three_words(interpret(recording(reads)))


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n", b"\r\n\n"], ids=repr)
@pytest.mark.parametrize("prefix", [b"data: ", b"data:", b"event: message\ndata: ", b"id: 7\ndata: "], ids=repr)
def test_lines_may_be_written_in_many_ways(recording: Make, prefix: bytes, end: bytes) -> None:
    wire = [prefix + json.dumps(payload).encode() + end for payload in [*three(), usage_event(3)]]
    reads = [(200 + 20 * i, chunk(data)) for i, data in enumerate(wire[:3])]
    check_three_words(interpret(recording([*reads, (240, chunk(wire[3] + prefix + b"[DONE] " + end) + END)])))


@pytest.mark.parametrize(
    ("head", "frame", "end"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n", lambda data: data, b""),
        (STREAM + b"Connection: close\r\n\r\n", lambda data: data, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + STREAM + b"\r\n", lambda data: data, b""),
        (
            STREAM + b"Transfer-Encoding: chunked\r\nTrailer: X-Cost\r\n\r\n",
            lambda data: b"%X;part=1\r\n%s\r\n" % (len(data), data),
            b"0\r\nX-Cost: 1\r\n\r\n",
        ),
    ],
    ids=["http_1_0", "close_delimited", "after_100_continue", "extensions_and_trailer"],
)
def test_every_framing(recording: Make, head: bytes, frame: Callable[[bytes], bytes], end: bytes) -> None:
    wire = [frame(plain(payload)) for payload in three()]
    last = frame(plain(usage_event(3)) + b"data: [DONE]\n\n") + end
    reads = [(200, head + wire[0]), (220, wire[1]), (240, wire[2]), (240, last)]
    check_three_words(interpret(recording(reads)))


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        # Mistral: content as a list of parts, the reasoning among them.
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}, "reasoning"),
        ({"content": [{"type": "text", "text": "Hm"}]}, "content"),
        ({"content": [{"type": "reasoning", "text": "Hm"}]}, "reasoning"),
        ({"content": None, "thinking": "Hm"}, "reasoning"),
        # LiteLLM repeats the reasoning in further fields.
        (
            {
                "content": "",
                "reasoning_content": "Hm",
                "thinking_blocks": [{"type": "thinking", "thinking": "Hm"}],
                "provider_specific_fields": {"thinking_blocks": [{"type": "thinking", "thinking": "Hm"}]},
            },
            "reasoning",
        ),
        ({"content": None, "refusal": "No"}, "content"),
        ({"audio": {"id": "a1", "transcript": "Hm"}}, "content"),
        ({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"arguments": "{"}}]}, "tool"),
    ],
)
def test_output_in_every_form_starts_the_clock(recording: Make, first: dict[str, Any], kind: str) -> None:
    # The first output at 200 ms, content at 220 and 240 ms: TTFOT is 0.22 s after reasoning, else 0.2 s.
    found = interpret(recording(words(delta(**first), *three()[:2])))
    check_three_words(found)
    assert kinds(found) == [kind, "content", "content"]
    ttfot = metrics.summarise(found.events, found.requests)["ttfot_s"]["mean"]
    assert ttfot == pytest.approx(0.22 if kind == "reasoning" else 0.2)


def test_an_unreadable_part_of_a_content_list_is_named(recording: Make) -> None:
    found = interpret(recording(words(delta(content=[{"type": "widget", "body": "x"}]), *three())))
    assert [finding["finding"] for finding in found.findings if finding["severity"] == "error"] == ["unknown_field"]


ERRORS = {
    # OpenRouter: the error stands beside a choice.
    "openrouter": (
        plain(
            {
                "error": {"code": "server_error", "message": "Provider disconnected"},
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
            }
        ),
        "Provider disconnected",
    ),
    "vllm_flat": (plain({"object": "error", "message": "Engine is dead", "code": 500}), "Engine is dead"),
    "openai": (plain({"error": {"message": "Engine is dead", "type": "server_error"}}), "Engine is dead"),
    "tgi": (plain({"error": "Request failed during generation", "error_type": "generation"}), "Request failed"),
    "anthropic": (
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
        "Overloaded",
    ),
    "event_line": (b"event: error\ndata: backend went away\n\n", "backend went away"),
    "llama_cpp": (b'error: {"code":500,"message":"slot lost","type":"server_error"}\n\n', "slot lost"),
    "in_choice": (
        plain({"choices": [{"index": 0, "delta": {"content": ""}, "error": {"code": 502, "message": "Upstream"}}]}),
        "Upstream",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_stream_is_never_taken_for_an_end(recording: Make, name: str) -> None:
    # Two tokens, then the error; usage and [DONE] follow, as some gateways send them all the same.
    data, said = ERRORS[name]
    reads = [(200, event(three()[0])), (220, event(three()[1])), (240, chunk(data))]
    reads.append((240, event(usage_event(2)) + event("[DONE]") + END))
    found = interpret(recording(reads))
    row = row_of(found)
    assert (row["status"], row["reason"]) == ("incomplete", "server_error")
    assert said in row["message"]
    assert metrics.summarise(found.events, found.requests)["ttft_s"]["mean"] is None


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("stop", "ok"), ("length", "ok"), ("content_filter", "ok"), ("eos_token", "ok"), ("tool_calls", "ok"),
        ({"type": "length", "length": 3}, "ok"),
        ("abort", "incomplete"), ("cancelled", "incomplete"), ("timeout", "incomplete"),
        ({"type": "abort", "message": "x"}, "incomplete"), ("insufficient_system_resource", "incomplete"),
    ],
)  # fmt: skip
def test_finish_reasons(recording: Make, tmp_path: Path, reason: Any, status: str) -> None:
    found = interpret(recording(words(*three(), delta(content="", finish_reason=reason))))
    row = row_of(found)
    assert (row["status"], row["reason"]) == (status, None if status == "ok" else "aborted")
    assert row["finish_reason"] == (reason["type"] if isinstance(reason, dict) else reason)
    assert found.requests["finish_reason"].tolist() == [row["finish_reason"]]


def test_one_choice_of_two_that_was_aborted_decides(recording: Make) -> None:
    ends = [delta(content="", index=i, finish_reason=reason) for i, reason in enumerate(("abort", "stop"))]
    assert row_of(interpret(recording(words(*three(), *ends))))["reason"] == "aborted"


@pytest.mark.parametrize(
    ("counts", "source"),
    [
        ([1, 2, 3], "continuous_usage"),
        # Zeros, one number in each, or the chunk's own tokens: no running total. Three events for three tokens.
        ([0, 0, 0], "events"),
        ([3, 3, 3], "events"),
        ([1, 1, 1], "events"),
        ([2, 1, 3], "events"),
    ],
)
def test_usage_in_every_event_is_a_running_total_only_if_it_runs(
    recording: Make, counts: list[int], source: str
) -> None:
    payloads = [delta(content=" a", usage=counted(count)) for count in counts]
    found = interpret(recording(words(*payloads)))
    check_three_words(found)
    assert row_of(found)["tokens_source"] == source
    assert found.events["tokens"].tolist()[:3] == [1, 1, 1]


def test_usage_together_with_the_finish_reason_or_inside_the_choice(recording: Make) -> None:
    ending = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": counted(3)}]}
    check_three_words(interpret(recording(words(*three(), ending, usage=None))))


def test_usage_of_nothing_cannot_be_right(recording: Make) -> None:
    found = interpret(recording(words(*three(), usage=0)))
    assert (row_of(found)["status"], row_of(found)["reason"]) == ("incomplete", "wrong_usage")


def test_numbers_and_letters_that_python_writes_are_read(recording: Make) -> None:
    # json.dumps writes NaN, and halves of a surrogate pair, which strict parsers refuse.
    odd = b'{"choices":[{"index":0,"delta":{"content":"\\ud83d"},"logprobs":{"value":-Infinity}}]}'
    reads = words(*three())
    reads[0] = (200, chunk(b"data: " + odd + b"\n\n"))
    check_three_words(interpret(recording(reads)))


@pytest.mark.parametrize(
    ("response", "reason", "said"),
    [
        (b"301 Moved\r\nLocation: https://api.example/v1\r\n\r\n", "http_3xx", "to https://api.example/v1"),
        (b'401 No\r\n\r\n{"error":{"message":"Incorrect API key","code":"x"}}', "http_4xx", "Incorrect API key"),
        (b'404 No\r\n\r\n{"detail":"Not Found"}', "http_4xx", "Not Found"),
        (b'422 No\r\n\r\n{"detail":[{"loc":["body"],"msg":"field required"}]}', "http_4xx", "field required"),
        (b'400 No\r\n\r\n{"object":"error","message":"too\\nlong"}', "http_4xx", "too long"),
        (
            b"503 No\r\n\r\n<html>\r\n<head><title>503 Service Temporarily Unavailable</title></head>\r\n<body>",
            "http_5xx",
            "503 Service Temporarily Unavailable",
        ),
        (b"502 No\r\n\r\n<p>bad\n gateway</p>", "http_5xx", "bad gateway"),
        (b"429 No\r\n\r\n", "http_4xx", None),
        (b"200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00", "encoded", "Content-Encoding: gzip"),
        (b'200 OK\r\n\r\n{"error":{"message":"no stream"}}', "not_streamed", "no stream"),
    ],
)
def test_answers_that_are_no_stream_say_why_on_one_line(
    recording: Make, response: bytes, reason: str, said: str | None
) -> None:
    row = row_of(interpret(recording([(50, b"HTTP/1.1 " + response)])))
    assert (row["status"], row["reason"], row["message"]) == ("failed", reason, said)


def test_a_refusal_names_its_http_status_in_the_finding(recording: Make) -> None:
    found = interpret(recording([(50, b"HTTP/1.1 429 No\r\n\r\n")], [(50, b"HTTP/1.1 404 No\r\n\r\nno such model")]))
    (finding,) = found.findings
    assert finding["count"] == 2
    assert finding["why"] == "failed: the server refused the request (HTTP 404, 429); the first said: no such model"
