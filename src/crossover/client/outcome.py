"""What became of a request: ok, failed or incomplete, with the reason."""

from __future__ import annotations

from crossover.client.framing import Head
from crossover.client.stream import ABORTED, Stream

OK, FAILED, INCOMPLETE = "ok", "failed", "incomplete"

REASONS = {
    "refused": "no connection: the port refused it",
    "unreachable": "no connection: no route to the host",
    "connect_timeout": "no connection within the connect timeout",
    "client_limit": "no connection: this machine ran out of sockets, ports or memory; not the server's fault",
    "tls": "the TLS handshake or a record failed: the certificate is not trusted (SSL_CERT_FILE names a file of "
    "trusted ones) or the port speaks no TLS (then http:// is right)",
    "no_response": "the connection ended before a response began",
    "no_http": "the response is no HTTP/1.x",
    "http_3xx": "the server answered with a redirection",
    "http_4xx": "the server refused the request",
    "http_5xx": "the server failed",
    "not_streamed": "the answer is no event stream",
    "encoded": "the answer is compressed, although it was asked for as it is",
    "server_error": "the stream carried an error event",
    "malformed": "an event is no JSON object of the expected shape",
    "timeout": "longer than the request timeout",
    "stall": "silent for longer than the stall timeout",
    "stopped": "the measurement was stopped",
    "cut": "the connection ended inside the response",
    "aborted": "the engine ended the request with a finish reason such as abort or error",
    "no_output": "the response ended without any output",
    "no_done": "the stream ended without [DONE]",
    "no_usage": "the stream carried no usage, so the number of tokens is not known",
    "wrong_usage": "usage counts no tokens, although output came",
}
"""Each reason with its meaning."""

HINTS = {
    401: "name the variable that holds the API key with --api-key-env",
    403: "this API key may not use the model",
    404: "see whether the URL's path and the model's name are right",
    429: "overload, or a quota is used up",
}
"""What an HTTP status usually asks for."""

_NO_CONNECTION = frozenset({"refused", "unreachable", "connect_timeout", "client_limit", "tls"})
_GIVEN_UP = frozenset({"timeout", "stall", "stopped"})


def judge(end: str | None, head: Head | None, stream: Stream | None) -> tuple[str, str | None]:
    """Returns (status, reason); the reason is None for ok.

    Failed requests gave nothing that could be measured; incomplete ones began to give output and did not end
    as they should. Both are counted, and neither is averaged in.

    Args:
        end: how the recorder saw the request end; None if the recorder itself was killed.
        head: the response's head, if any came.
        stream: its events, where the head allows any.
    """
    if head is None or stream is None:
        return FAILED, _without_response(end)
    if head.status >= 300:
        return FAILED, f"http_{head.status // 100}xx"
    if head.encoding is not None:
        return FAILED, "encoded"
    has_output = bool(stream.columns.output.any())
    reason = _stream_fault(end, stream, has_output)
    if reason is None:
        return OK, None
    return (INCOMPLETE if has_output else FAILED), reason


def _without_response(end: str | None) -> str:
    if end in _NO_CONNECTION or end in _GIVEN_UP or end == "no_http":
        return str(end)
    return "stopped" if end is None else "no_response"


def _stream_fault(end: str | None, stream: Stream, has_output: bool) -> str | None:
    if stream.error is not None:
        return "server_error"
    if stream.malformed is not None:
        return "malformed"
    if not stream.done and end != "complete":
        return end if end in _GIVEN_UP else ("stopped" if end is None else "cut")
    if not stream.events:
        return "not_streamed"
    if stream.finish_reason in ABORTED:
        return "aborted"
    if not has_output:
        return "no_output"
    if not stream.done:
        return "no_done"
    count = stream.usage.get("completion_tokens") if stream.usage else None
    if count.__class__ is not int:
        return "no_usage"
    return None if count > 0 else "wrong_usage"
