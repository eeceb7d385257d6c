"""Backends that the engine chose, and says so: attention, mixture of experts, linear attention, context parallelism."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.lines import Line
from crossover.logs.table import LineKind, kind

_ATTENTION = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")


def _attention(builder: Builder, line: Line, match: re.Match[str]) -> None:
    backend = next(group for group in match.groups() if group)
    builder.configure(dict.fromkeys(_ATTENTION, backend))


def _hybrid_attention(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"decode_attention_backend": match[1], "prefill_attention_backend": match[2]})


def _prefill_attention(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"prefill_attention_backend": match[1]})


def _experts(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"moe_backend": match[1]})


def _dcp_device(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"dcp_comm_backend": match[2], "device_name": match[1]})


def _dcp_backend(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"decode_context_parallel": int(match[1]), "dcp_comm_backend": match[2]})


def _replicated_q(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"dcp_replicated_q": True})


def _kda(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.configure({"kda_kernels": {"decode": match[1], "verify": match[2], "extend": match[3]}})


def _linear_attention(builder: Builder, line: Line, match: re.Match[str]) -> None:
    names = ("decode", "prefill", "verify")
    found = zip(names, match.groups(), strict=True)
    builder.configure({f"linear_attention_{name}_backend": backend for name, backend in found if backend})


KINDS: tuple[LineKind, ...] = (
    kind(
        "attention_backend",
        ("ttention backend", "MLA optimization is tu"),
        r"ttention backend not (?:explicitly )?(?:specified|set)\. Use (\w+) backend"
        r"|Us(?:e|ing) (\w+) as (?:the )?(?:default )?(?:prefill and decode )?attention backend"
        r"|Use (\w+) attention backend for|MLA optimization is tu\w+ on\. Use (\w+) backend",
        _attention,
        figure=False,
    ),
    kind(
        "prefill_attention_backend",
        "prefill attention backend",
        r"Us(?:e|ing) (\w+) as (?:the )?(?:default )?prefill attention backend",
        _prefill_attention,
        figure=False,
    ),
    kind(
        "moe_backend",
        ("as MoE runner backend", "as moe runner backend"),
        r"Us(?:e|ing) (\w+) as (?:MoE|moe) runner backend",
        _experts,
        figure=False,
    ),
    kind(
        "hybrid_attention_backend",
        "Using hybrid attention backend for decode and prefill",
        r"decode_backend=(\w+), prefill_backend=(\w+)",
        _hybrid_attention,
        figure=False,
    ),
    kind(
        "dcp_device",
        "selects communication backend on",
        r"DCP selects communication backend on '([^']{1,80})': [^>]{1,40}-> '(\w+)'",
        _dcp_device,
        figure=False,
    ),
    kind(
        "dcp_backend",
        "selects communication backend '",
        r"DCP \(dcp_size=(\d{1,4})\) selects communication backend '(\w+)'",
        _dcp_backend,
        figure=False,
    ),
    kind(
        "replicated_q",
        "replicated Q projection",
        r"DCP enables replicated Q projection",
        _replicated_q,
        figure=False,
    ),
    kind(
        "linear_attention_backend",
        "Linear attention kernel backend",
        r"Linear attention kernel backend: decode=(\w+), prefill=(\w+)(?:, verify=(\w+))?",
        _linear_attention,
        figure=False,
    ),
    kind(
        "kda_dispatcher",
        "KDA kernel dispatcher",
        r"KDA kernel dispatcher: decode=(\w+), (?:verify=(\w+), )?extend=(\w+)",
        _kda,
        figure=False,
    ),
)
