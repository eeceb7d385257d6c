"""KV caches that are carried between servers or read back from outside the device, and did not arrive."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.table import kind

_COUNT = re.compile(r"(\d{1,9}) request\(s\)")


def failed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Requests without their cache: they fail, or the engine decides so right below."""
    builder.incidents.add(Kind.KV_TRANSFER_FAILED, line, count=_requests(line, match), key=match[0][:12])


def recovered(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The cache came late or not at all, and is computed again, or was let go."""
    builder.incidents.add(
        Kind.KV_TRANSFER_FAILED,
        line,
        count=_requests(line, match),
        severity=Severity.WARNING,
        advice="these requests lost their cache and are computed again: their latencies include it",
        key=match[0][:12],
    )


def transferred(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """NIXL's figures of one interval, over all ranks; a transfer is that of one rank. Sums go to `raw`; MB are MiB.

    The printed throughput is of one rank at a time, and no rate of the server: it is not kept.
    """
    count, size = int(match[1]), float(match[2])
    raw = builder.raw
    raw["kv_transfers"] = raw.get("kv_transfers", 0) + count
    raw["kv_transferred_gib"] = round(raw.get("kv_transferred_gib", 0.0) + count * size / 1024, 6)


def _requests(line: Line, match: re.Match[str]) -> int:
    """How many requests the line is about: the connector names one each, the scheduler counts them."""
    found = _COUNT.search(line.text, match.start(), min(len(line.text), match.start() + 120))
    return max(int(found[1]), 1) if found else 1


KINDS = (
    kind(
        "transferred",
        "KV Transfer metrics: Num",
        r"KV Transfer metrics: Num successful transfers=(\d{1,12}), [^\n]{0,160}?Avg MB per transfer=(\d[\d.]{0,15}),",
        transferred,
    ),
    kind(
        "transfer_failed",
        (
            "due to KV load failure",
            "NIXL transfer ",
            "NIXL send_notif failed",
            "pulling kv_caches for",
            "Error happens during tran",
            "data transfer failed for",
            "RDMA transfer failed for",
            "RDMA read TIMED OUT",
            "bootstrap server",
        ),
        r"Failing \d{1,9} request\(s\) due to KV load failure|NIXL transfer (?:\S{1,24} )?fail(?:ed|ure)"
        r"|NIXL send_notif failed|pulling kv_caches for [^\n]{1,120} failed|Error happens during transf?err?ing kvcache"
        r"|(?:Meta|AgentMeta|XferMeta)data transfer failed for|RDMA (?:transfer failed|read TIMED OUT) for"
        r"|Failed to (?:connect to|find remote engine_id [^\n]{1,80} from) bootstrap server",
        failed,
        figure=False,
        joins=False,
    ),
    kind(
        "transfer_recovered",
        (
            "Recovered from KV load failure",
            "Releasing expired KV blocks",
            "without being sent. Freeing its blocks",
            "expired before sending on P side",
            "Timeout waiting for P side ready",
            "retrieved tokens is less than the expected",
            "Failed to receive all KVs",
        ),
        r"Recovered from KV load failure|Releasing expired KV blocks|timed out after \d{1,6} seconds without being sent"
        r"|expired before sending on P side|Timeout waiting for P side ready"
        r"|retrieved tokens is less than the expected|Failed to receive all KVs",
        recovered,
        figure=False,
        joins=False,
    ),
)
