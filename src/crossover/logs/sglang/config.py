"""Effective configuration: the printed server arguments, and the lines that say what became of them.

`normalise` also reads the answer of `/get_server_info`, which holds the same names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from crossover.logs.builder import Builder
from crossover.logs.lines import Line
from crossover.logs.literals import pairs_of_call, pairs_of_dict, value_of
from crossover.logs.sglang.startup import at_rank, start_of
from crossover.logs.sglang.values import cache_dtype
from crossover.logs.table import LineKind, kind
from crossover.redaction import HIDDEN, is_secret

COMMON_NAMES: Mapping[str, tuple[str, ...]] = {
    "model": ("model_path",),
    "served_model_name": ("served_model_name",),
    "tokenizer": ("tokenizer_path",),
    "dtype": ("dtype",),
    "quantization": ("quantization",),
    "load_format": ("load_format",),
    "tensor_parallel": ("tp_size",),
    "pipeline_parallel": ("pp_size",),
    "data_parallel": ("dp_size",),
    "expert_parallel": ("ep_size",),
    "decode_context_parallel": ("dcp_size",),
    "prefill_context_parallel": ("attn_cp_size",),
    "dp_attention": ("enable_dp_attention",),
    "nodes": ("nnodes",),
    "dcp_comm_backend": ("dcp_comm_backend",),
    "max_model_len": ("context_length",),
    "kv_cache_dtype": ("kv_cache_dtype",),
    "block_size": ("page_size",),
    "memory_fraction": ("mem_fraction_static",),
    "max_total_tokens": ("max_total_tokens",),
    "max_running_requests": ("max_running_requests",),
    "chunked_prefill_tokens": ("chunked_prefill_size",),
    "max_prefill_tokens": ("max_prefill_tokens",),
    "schedule_policy": ("schedule_policy",),
    "attention_backend": ("attention_backend",),
    "prefill_attention_backend": ("prefill_attention_backend",),
    "decode_attention_backend": ("decode_attention_backend",),
    "linear_attention_backend": ("linear_attn_backend",),
    "linear_attention_prefill_backend": ("linear_attn_prefill_backend",),
    "linear_attention_decode_backend": ("linear_attn_decode_backend",),
    "linear_attention_verify_backend": ("linear_attn_verify_backend",),
    "mamba_backend": ("mamba_backend",),
    "mamba_ssm_dtype": ("mamba_ssm_dtype",),
    "mamba_memory_ratio": ("mamba_full_memory_ratio",),
    "moe_backend": ("moe_runner_backend",),
    "all2all_backend": ("moe_a2a_backend",),
    "sampling_backend": ("sampling_backend",),
    "grammar_backend": ("grammar_backend",),
    "symmetric_memory": ("enable_symm_mem",),
    "allreduce_fusion": ("enable_flashinfer_allreduce_fusion",),
    "torch_compile": ("enable_torch_compile",),
    "enforce_eager": ("disable_cuda_graph",),
    "disable_custom_all_reduce": ("disable_custom_all_reduce",),
    "mixed_chunk": ("enable_mixed_chunk",),
    "speculative_method": ("speculative_algorithm",),
    "speculative_model": ("speculative_draft_model_path",),
    "speculative_steps": ("speculative_num_steps",),
    "speculative_topk": ("speculative_eagle_topk",),
    "speculative_tokens": ("speculative_dspark_block_size", "speculative_num_steps"),
    "speculative_verify_tokens": ("speculative_num_draft_tokens",),
    "speculative_window": ("speculative_draft_window_size",),
    "reasoning_parser": ("reasoning_parser",),
    "tool_call_parser": ("tool_call_parser",),
    "seed": ("random_seed",),
    "stream_interval": ("stream_interval",),
    "decode_log_interval": ("decode_log_interval",),
    "hierarchical_cache": ("enable_hierarchical_cache",),
    "hierarchical_cache_ratio": ("hicache_ratio",),
    "disaggregation": ("disaggregation_mode",),
    "cpu_offload_gib": ("cpu_offload_gb",),
    "device": ("device",),
}
"""Common name -> the argument's names in SGLang; the first that is set counts.

Tokens that are drafted a step are the block or the number of steps; the window that is verified has one more. So the
window tells where there are no steps (n-grams), or their number is only a formality (DFlash, 1).
"""

_FLAGGED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "all2all_backend": (("enable_deepep_moe", "deepep"), ("enable_pplx_moe", "pplx")),
    "moe_backend": (
        ("enable_flashinfer_trtllm_moe", "flashinfer_trtllm"),
        ("enable_flashinfer_cutlass_moe", "flashinfer_cutlass"),
        ("enable_flashinfer_moe", "flashinfer_cutlass"),
    ),
    "attention_backend": (("enable_flashinfer_mla", "flashinfer"), ("enable_flashmla", "flashmla")),
}
"""Common name -> the flags that chose a backend before it was named (0.4), and which one."""

NEGATED: Mapping[str, str] = {
    "prefix_caching": "disable_radix_cache",
    "overlap_schedule": "disable_overlap_schedule",
    "flashinfer_autotune": "disable_flashinfer_autotune",
}
"""Common name -> the argument that turns it off."""

_OTHERWISE: Mapping[str, str] = {
    "prefill_attention_backend": "attention_backend",
    "decode_attention_backend": "attention_backend",
    "linear_attention_prefill_backend": "linear_attention_backend",
    "linear_attention_decode_backend": "linear_attention_backend",
    "linear_attention_verify_backend": "linear_attention_backend",
}
"""A setting that was left open takes the value of another one."""

_FLAGS = {
    "model": "model_path",
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "ep": "ep_size",
    "expert_parallel_size": "ep_size",
    "dcp": "dcp_size",
    "mem_fraction": "mem_fraction_static",
    "speculative_algo": "speculative_algorithm",
    "speculative_draft": "speculative_draft_model_path",
}
"""Short and other spellings of command-line flags."""


def normalise(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Returns server arguments under the common names; an argument that is not there gives no name.

    Args:
        raw: SGLang's own names, from the log or from `/get_server_info`.
    """
    common: dict[str, Any] = {}
    for name, arguments in COMMON_NAMES.items():
        given = [raw[argument] for argument in arguments if argument in raw]
        if given:
            common[name] = next((value for value in given if value is not None), None)
    method, window = str(common.get("speculative_method")).upper(), common.get("speculative_verify_tokens")
    if isinstance(window, int) and window > 1 and (method == "DFLASH" or common.get("speculative_tokens") is None):
        common["speculative_tokens"] = window - 1
    if common.get("chunked_prefill_tokens") == -1:
        common["chunked_prefill_tokens"] = None
    if _decodes_without_graph(raw):
        common["enforce_eager"] = True
    for name, argument in NEGATED.items():
        if isinstance(raw.get(argument), bool):
            common[name] = not raw[argument]
    for name, flags in _FLAGGED.items():
        chosen = next((backend for flag, backend in flags if raw.get(flag) is True), None)
        if chosen is not None and common.get(name) is None:
            common[name] = chosen
    if common.get("disaggregation") == "null":
        common["disaggregation"] = None
    for name, otherwise in _OTHERWISE.items():
        if name in common and common[name] is None:
            common[name] = common.get(otherwise)
    return common


_NO_DECODE_GRAPH = re.compile(r"\bdecode\W{1,4}(?:PhaseConfig\()?\W{0,4}backend\W{1,4}disabled\b")


def _decodes_without_graph(raw: Mapping[str, Any]) -> bool:
    """Whether decoding was told to run without graphs, by the options of 2026 that speak of one phase."""
    if raw.get("disable_decode_cuda_graph") is True or raw.get("cuda_graph_backend_decode") == "disabled":
        return True
    return _NO_DECODE_GRAPH.search(str(raw.get("cuda_graph_config", ""))) is not None


def redacted(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments with the secrets among them blanked."""
    return {
        name: HIDDEN if value not in (None, "", False) and is_secret(name) else value for name, value in raw.items()
    }


_JSON_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None}


def parse_arguments(text: str) -> dict[str, Any]:
    """Reads the inside of `ServerArgs(...)`, of a dictionary or of a JSON object; an item without a whole value is
    left out.
    """
    pairs = pairs_of_dict if text.lstrip()[:1] in ("'", '"') else pairs_of_call
    found = {name: value for name, value in pairs(text) if name.isidentifier()}
    if text.lstrip().startswith('"'):  # JSON, so that these are no text
        found |= {name: _JSON_WORDS[value] for name, value in found.items() if str(value) in _JSON_WORDS}
    return found


_STAMP_INSIDE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z ")


def _take_arguments(builder: Builder, text: str) -> bool:
    """`docker logs -t` stamps each piece of 16 KiB, so that a stamp may stand inside."""
    raw = redacted(parse_arguments(_STAMP_INSIDE.sub("", text)))
    if not raw:
        return False
    builder.raw.update(raw)
    builder.configure(normalise(raw))
    size = raw.get("dp_size")
    if isinstance(size, int) and not isinstance(size, bool):
        builder.set("dp_size", size)
    for name, argument in (
        ("context_length", "context_length"),
        ("chunked_prefill_tokens", "chunked_prefill_size"),
    ):
        value = raw.get(argument)
        if isinstance(value, int) and value > 0:
            builder.set_first(name, value)
    return True


def _begin(builder: Builder) -> None:
    """Arguments are printed once a start: whatever was loaded before belongs to an earlier server."""
    if any(rank.loads for rank in start_of(builder).ranks.values()):
        builder.dead = True
    builder.new_start()


def _arguments(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    _begin(builder)
    return _take_arguments(builder, match[1] + ")")


def _arguments_cut(builder: Builder, line: Line, match: re.Match[str]) -> None:
    if not builder.raw:
        _begin(builder)
        _take_arguments(builder, match[1])


def _command(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A command line is what was asked for; anything the engine says itself is nearer to the truth."""
    words = match[2]
    if "<model>" in words:  # the example of a deprecation warning
        return
    words = re.sub(r"\\\s+(?:> )?", " ", words)  # a command over several lines
    if not words.startswith("-"):  # `sglang serve org/model --tp 4`
        words = f"--model-path {words}"
    asked = parse_command(re.sub(r"['\"], +['\"]", " ", words).rstrip("'\"]) ") if match[1] else words)
    for name, value in normalise(redacted(asked)).items():
        builder.config.setdefault(name, value)
    if isinstance(asked.get("context_length"), int):
        builder.set_first("context_length", asked["context_length"])
    if isinstance(asked.get("chunked_prefill_size"), int) and asked["chunked_prefill_size"] > 0:
        builder.set_first("chunked_prefill_tokens", asked["chunked_prefill_size"])
    if isinstance(asked.get("dp_size"), int):
        builder.set_first("dp_size", asked["dp_size"])


def parse_command(text: str) -> dict[str, Any]:
    """Reads `--flag value`, `--flag=value` and bare flags into SGLang's argument names."""
    try:
        words = shlex.split(text[:20_000])
    except ValueError:
        words = text[:20_000].split()
    found: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            flag, _, value = word[2:].partition("=")
            name = flag.replace("-", "_")
            name = _FLAGS.get(name, name)
            found[name] = value_of(value) if value else True
        elif name:
            found[name] = value_of(word) if found[name] is True else f"{found[name]} {word}"
    return found


def _kv_dtype(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Each model says it before its pool; what comes after the first pool is the draft model's."""
    if at_rank(builder, line).pool_seen:
        return
    builder.configure({"kv_cache_dtype": cache_dtype(match[1])})


def _tree_cache(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`ChunkCache` keeps nothing between requests: the radix cache is off."""
    builder.configure({"prefix_caching": match[1] != "ChunkCache", "prefix_cache_implementation": match[1]})


def _version(builder: Builder, line: Line, match: re.Match[str]) -> None:
    builder.version = match[1]


_COMMAND_LINES = 24

KINDS: tuple[LineKind, ...] = (
    kind(
        "server_args",
        "server_args=",
        r"server_args=(?:ServerArgs\(|\{)(.*)[)}]\s*$",
        _arguments,
        figure=False,
    ),
    kind(
        "server_args_cut",
        "server_args=",
        r"server_args=(?:ServerArgs\(|\{)(.*,)",
        _arguments_cut,
        figure=False,
        joins=False,
    ),
    kind(
        "command",
        (
            "sglang.launch_server ",
            "sglang_router.launch_server ",
            "sglang serve ",
            "sglang.launch_server'",
            'sglang.launch_server"',
        ),
        r"(?:sglang(?:_router)?\.launch_server|sglang serve)(['\"]?),? +\1(?:\\\s+(?:> )?)?"
        r"((?:[\w.~-]{0,60}/[^\s'\"<>]{1,200} )?(?:\\\s+(?:> )?)?--?\w.*(?<![\s\\]))\s*$",
        _command,
        figure=False,
        joins=_COMMAND_LINES,
    ),
    kind(
        "kv_dtype",
        ("Using KV cache dtype", "Setting KV cache dtype"),
        r"(?:Using KV cache dtype:|Setting KV cache dtype to) ([\w.]*\w)",
        _kv_dtype,
        figure=False,
    ),
    kind(
        "tree_cache",
        "Tree cache initialized",
        r"Tree cache initialized: .*?impl=(\w+)",
        _tree_cache,
        figure=False,
    ),
    kind(
        "version",
        ("sglang version", "SGLang version", "sglang==", "sglang_version", "sglang: 0", "lmsysorg/sglang:v"),
        r"(?i:sglang(?:[ _]version)?)[:= ]{1,3}['\"]?v?(\d+\.\d+\.\d+(?:\.?(?:post|dev|rc)\d+)*(?:\+[\w.]+)?)",
        _version,
        figure=False,
    ),
)
