"""What follows from a report's own figures: checks on it, and what it leaves out.

Printed rates are rounded (0.05 requests/s for 0.0462), so rates are taken from counts and the duration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossover.peers.report import PeerReport


def implied(report: PeerReport) -> dict[str, Any]:
    """Returns what the figures of a report imply; None where one that it takes is missing.

    Keys:
        request_rate_per_s: successful requests / duration.
        output_tok_s, total_tok_s: tokens / duration.
        output_tok_s_limit: the output throughput that the printed duration allows at most (the same figure).
        mean_output_tokens, mean_prompt_tokens: tokens / successful requests.
        e2e_mean_s: as printed, else TTFT + TPOT x (tokens - 1).
        tpot_mean_s: (mean latency - mean TTFT) / (mean tokens - 1), from the means alone.
        achieved_concurrency: request rate x mean latency (Little's law).
        decoding_at_once: output throughput x mean TPOT: why a slow token and a fast server are no
            contradiction.
        tokens_per_chunk: mean gap a chunk / mean TPOT.
        single_token_requests: a range of how many requests had one token and so no TPOT, where the tokens are
            so few.
    """
    ok, duration = report.requests.ok, report.duration_s
    completion, prompt = report.completion_tokens, report.prompt_tokens
    mean_output = _ratio(completion, ok) if completion is not None else report.mean_completion_tokens
    mean_prompt = _ratio(prompt, ok) if prompt is not None else report.mean_prompt_tokens
    ttft, tpot = report.figure("ttft_s"), report.figure("tpot_s")
    e2e = report.figure("e2e_s")
    if e2e is None and ttft is not None and tpot is not None and mean_output is not None:
        e2e = ttft + tpot * (mean_output - 1)
    rate = _ratio(ok, duration)
    output = _ratio(completion, duration)
    return {
        "request_rate_per_s": rate,
        "output_tok_s": output,
        "total_tok_s": _ratio(None if None in (completion, prompt) else (completion or 0) + (prompt or 0), duration),
        "mean_output_tokens": mean_output,
        "mean_prompt_tokens": mean_prompt,
        "e2e_mean_s": e2e,
        "tpot_mean_s": _tpot(report.figure("e2e_s"), ttft, mean_output),
        "achieved_concurrency": _product(rate, e2e),
        "decoding_at_once": _product(output, tpot),
        "tokens_per_chunk": _tokens_per_chunk(report, tpot, mean_output),
        "single_token_requests": _single_token(ok, completion),
    }


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _product(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a * b


def _tpot(e2e: float | None, ttft: float | None, tokens: float | None) -> float | None:
    if e2e is None or ttft is None or tokens is None or tokens < 2:
        return None
    return (e2e - ttft) / (tokens - 1)


def _tokens_per_chunk(report: PeerReport, tpot: float | None, mean_output: float | None) -> float | None:
    for figure in report.figures:
        if figure.meaning == "chunks-per-request":
            return _ratio(mean_output, figure.value)
    return _ratio(report.figure("icl_s"), tpot)


def _single_token(ok: int | None, completion: int | None) -> list[int] | None:
    """With n tokens over k requests and n < 2 k, at least 2 k - n requests had a single one, and at most k - 1 or k."""
    if not ok or completion is None or completion >= 2 * ok or completion < ok:
        return None
    return [2 * ok - completion, ok - (completion > ok)]
