"""The prefix cache was as the experiment wanted it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed
from crossover.audits.table import Table, interval_of

IDENTITY = "prompts that share nothing find nothing in the prefix cache"
TOLERANCE = "2 % of the prompt tokens, or 64 tokens a prompt (a chat template)"
REASON = "a cached prompt has no prefill: TTFT is then that of another workload"
_SHARE, _TEMPLATE_TOKENS = 0.02, 64
_DISJOINT = ("random", "documents", "jsonl", "sharegpt", "sharegpt-shaped")
_AFFECTED = ("ttft_s", "ttfot_s", "e2e_s", "output_tok_s", "goodput")


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Judges the hit rate against the isolation policy and the dataset."""
    isolation = evidence.cell.get("isolation") or {}
    if isolation.get("policy") == "reset" and isolation.get("reset_ok") is False:
        yield Finding(
            "contaminated",
            "prefix cache",
            "the engine did not accept the reset of its prefix cache",
            advice="enable the reset endpoint, or use disjoint prompts",
            withholds=_AFFECTED,
        )
        return
    if evidence.workload.get("dataset") not in _DISJOINT or isolation.get("policy") == "none":
        yield not_applicable("prefix_hit_rate", "the workload shares prefixes, or the experiment does not isolate")
        return
    rate, source = _rate(evidence)
    if rate is None:
        yield not_applicable("prefix_hit_rate", "neither counters nor log show a hit rate")
        return
    limit = _limit(evidence)
    words = f"{rate:.1%} of the prompt tokens came from the prefix cache ({source})"
    if rate > limit:
        yield Finding(
            "contaminated",
            "prefix_hit_rate",
            f"{words}, at most {limit:.1%} is expected",
            rate,
            limit,
            "reset the cache between cells, and never warm up with measurement prompts",
            _AFFECTED,
        )
    else:
        yield passed("prefix_hit_rate", words, rate, limit)


def check_table(table: Table) -> Iterator[Finding]:
    """Judges hit rates that a published engine log states of a dataset without shared prefixes."""
    dataset = str(table.section("workload").get("dataset") or "").lower()
    for cell, log in table.section("engine_log").items():
        rate = interval_of(log.get("prefix_hit_rate")) if isinstance(log, dict) else None
        if rate is not None and dataset.startswith("random") and rate.low > _SHARE:
            yield Finding(
                "contaminated",
                f"engine_log.{cell}.prefix_hit_rate",
                f"{rate.middle:.1%} of random prompts came from the prefix cache: they were sent before",
                rate.middle,
                _SHARE,
                "use new prompts, or reset the cache between runs",
            )


def _rate(evidence: Evidence) -> tuple[float | None, str]:
    """The counters' change is of this very cell; a rate in a vLLM log is of its recent requests."""
    counters = evidence.cell.get("counters") or {}
    before, after = counters.get("before") or {}, counters.get("after") or {}
    names = ("cached_tokens", "prompt_tokens")
    if all(side.get(name) is not None for side in (before, after) for name in names):
        cached, prompt = (float(after[name]) - float(before[name]) for name in names)
        if prompt > 0:
            return cached / prompt, "engine counters"
    rate = (evidence.engine or {}).get("prefix_hit_rate")
    return (None if rate is None else float(rate)), "engine log"


def _limit(evidence: Evidence) -> float:
    tokens = evidence.observations.prompt_tokens
    known = tokens[~np.isnan(tokens)]
    return max(_SHARE, _TEMPLATE_TOKENS / float(known.mean())) if len(known) and known.mean() > 0 else _SHARE
