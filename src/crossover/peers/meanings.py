"""What the figures of load-test clients mean: the same column name stands for different things in different tools."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """One way to compute a figure.

    Attributes:
        name: how reports refer to it.
        metric: our metric that it is, or is nearest to; None where it is none of ours and stands apart.
        unit: `s`, `tok/s`, `req/s` or `count`.
        same: whether it is our definition; if not, `formula` says how it differs.
        formula: the computation in words.
    """

    name: str
    metric: str | None
    unit: str
    same: bool
    formula: str


_ALL = (
    Meaning("ttft-first-output", "ttft_s", "s", True, "first event with output of any kind, less the send"),
    Meaning(
        "ttft-first-event", "ttft_s", "s", False,
        "first event with choices less the send: one that only names the role stops the clock",
    ),
    Meaning(
        "ttft-first-content", "ttft_s", "s", False,
        "first event of a field that the tool knows, less the send: reasoning under another name does not count",
    ),
    Meaning("ttfot-first-content", "ttfot_s", "s", True, "first output that is not reasoning, less the send"),
    Meaning("e2e-last-output", "e2e_s", "s", True, "last event with choices, less the send"),
    Meaning("e2e-stream-end", "e2e_s", "s", False, "end of the stream less the send: the closing events are in it"),
    Meaning(
        "tpot-per-request", "tpot_s", "s", True, "(latency - TTFT) / (output tokens - 1), each request counts the same"
    ),
    Meaning(
        "tpot-token-weighted", "tpot_s", "s", False,
        "(last token - first token) / (output tokens - 1), each request weighted by its tokens",
    ),
    Meaning(
        "tpot-per-request-labelled-itl", "tpot_s", "s", True,
        "(latency - TTFT) / (output tokens - 1) of a request, under the name of an ITL",
    ),
    Meaning(
        "tpot-of-retokenized", "tpot_s", "s", False,
        "(latency - TTFT) / (tokens - 1) of a request, tokens being those of its text when it is tokenized again",
    ),
    Meaning(
        "decode-per-token", "tpot_s", "s", False,
        "(last token - first token) / output tokens, of which the first took no part of that time",
    ),
    Meaning(
        "tpot-by-chunks", None, "s", False,
        "(latency - TTFT) / events of a request, under the name of a time per token: chunks of several tokens make it "
        "too long",
    ),
    Meaning(
        "tpot-of-unknown-kind", None, "s", False,
        "a time per token that the run's own figures do not explain: the tool changed its formula, and the output does "
        "not say which it is",
    ),
    Meaning(
        "latency-per-token", None, "s", False, "(last token - request start) / output tokens: TTFT is in it, no TPOT"
    ),
    Meaning("inverse-throughput", None, "s", False, "1 / aggregate output throughput of the run: no TPOT"),
    Meaning("gap-per-chunk", "icl_s", "s", True, "gap between two events of a request, whatever tokens they carry"),
    Meaning(
        "mean-gap-per-chunk", None, "s", False, "mean gap between the events of a request: its spread is lost"
    ),
    Meaning(
        "gap-per-token", "itl_s", "s", True, "gap between two events, shared out over the tokens that the event carries"
    ),
    Meaning(
        "gap-per-retokenized-token", "itl_s", "s", False,
        "gap between two events, shared out over the tokens of the event's text when it is tokenized again",
    ),
    Meaning(
        "gap-of-unknown-kind", None, "s", False,
        "gap a chunk, a token, or a token of the text tokenized again: the output does not say which",
    ),
    Meaning("output-over-wall", "output_tok_s", "tok/s", True, "output tokens / duration of the run"),
    Meaning(
        "output-over-counted-span", None, "tok/s", False,
        "output tokens / span of the events that the tool counted: above what the wall time allows",
    ),
    Meaning(
        "retokenized-over-wall", "output_tok_s", "tok/s", False,
        "tokens of the texts when they are tokenized again / duration of the run",
    ),
    Meaning(
        "gap-zero-inside-chunk", "itl_s", "s", False,
        "gap between two events for the first token of the later one, 0 for its other tokens, which are those of its "
        "text tokenized again",
    ),
    Meaning("total-per-gpu", None, "tok/s", False, "input and output tokens / duration of the run / GPUs"),
    Meaning("output-per-gpu", None, "tok/s", False, "output tokens / duration of the run / GPUs"),
    Meaning("input-per-gpu", None, "tok/s", False, "input tokens / duration of the run / GPUs"),
    Meaning(
        "output-over-decode-time", None, "tok/s", False,
        "output tokens / (latency - TTFT) of a batch: the time of prefill is left out",
    ),
    Meaning("input-over-ttft", None, "tok/s", False, "input tokens / TTFT of a batch"),
    Meaning(
        "engine-last-interval", None, "tok/s", False, "throughput that the engine gave for its last decode interval"
    ),
    Meaning("input-over-wall", None, "tok/s", False, "input tokens / duration of the run"),
    Meaning("total-over-wall", None, "tok/s", False, "input and output tokens / duration of the run"),
    Meaning("peak-chunks-per-second", None, "chunk/s", False, "most events in a second of the run: chunks, no tokens"),
    Meaning("peak-tokens-per-second", None, "tok/s", False, "most tokens in a second of the run"),
    Meaning("peak-of-unknown-kind", None, "1/s", False, "most chunks or tokens in a second: it does not say which"),
    Meaning("peak-requests-in-a-second", None, "count", False, "requests that touch one second: may exceed the limit"),
    Meaning("requests-over-wall", None, "req/s", False, "successful requests / duration of the run, rounded for print"),
    Meaning(
        "request-rate-between-events", None, "req/s", False,
        "rate between the requests, of which there is one interval less than requests: (requests - 1) / duration",
    ),
    Meaning("chunks-per-request", None, "count", False, "events of a request"),
    Meaning("acceptance-rate", None, "share", False, "accepted / drafted tokens, as the engine counts them"),
    Meaning("acceptance-length", None, "count", False, "tokens a step, the bonus token included, as the engine counts"),
    Meaning("goodput-requests", None, "req/s", False, "requests inside the stated limits / duration of the run"),
    Meaning(
        "speed-per-user-with-ttft", None, "tok/s", False, "output tokens / latency of a request: TTFT is in it"
    ),
    Meaning(
        "batch-latency", None, "s", False, "time of a whole batch from its start to its end; no request of a server"
    ),
    Meaning("speed-per-user", None, "tok/s", False, "1 / time per token of a request"),
)  # fmt: skip

MEANINGS: dict[str, Meaning] = {meaning.name: meaning for meaning in _ALL}
