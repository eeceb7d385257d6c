"""vLLM's effective configuration: what was asked for, what the engine made of it, which backends it took.

Common names are the keys of `COMMON`'s values; the engine's own names stand under `raw`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from crossover.logs.builder import Builder
from crossover.logs.lines import Line
from crossover.logs.literals import pairs_of_call, pairs_of_dict
from crossover.logs.numbers import NUM, whole
from crossover.logs.table import Handler, kind
from crossover.redaction import is_secret

COMMON: Mapping[str, str] = {
    "model": "model",
    "served_model_name": "served_model_name",
    "dtype": "dtype",
    "quantization": "quantization",
    "tensor_parallel_size": "tensor_parallel",
    "pipeline_parallel_size": "pipeline_parallel",
    "data_parallel_size": "data_parallel",
    "enable_expert_parallel": "expert_parallel",
    "decode_context_parallel_size": "decode_context_parallel",
    "prefill_context_parallel_size": "prefill_context_parallel",
    "dcp_comm_backend": "dcp_comm_backend",
    "kv_cache_dtype": "kv_cache_dtype",
    "calculate_kv_scales": "calculate_kv_scales",
    "block_size": "block_size",
    "max_model_len": "max_model_len",
    "max_seq_len": "max_model_len",
    "max_num_seqs": "max_running_requests",
    "max_num_batched_tokens": "max_batched_tokens",
    "long_prefill_token_threshold": "long_prefill_token_threshold",
    "gpu_memory_utilization": "memory_fraction",
    "kv_cache_memory_bytes": "kv_cache_memory_bytes",
    "kv_cache_memory": "kv_cache_memory_bytes",
    "enable_prefix_caching": "prefix_caching",
    "enable_chunked_prefill": "chunked_prefill",
    "chunked_prefill_enabled": "chunked_prefill",
    "async_scheduling": "async_scheduling",
    "enforce_eager": "enforce_eager",
    "disable_custom_all_reduce": "disable_custom_all_reduce",
    "attention_backend": "attention_backend",
    "moe_backend": "moe_backend",
    "all2all_backend": "all2all_backend",
    "load_format": "load_format",
    "reasoning_parser": "reasoning_parser",
    "tool_call_parser": "tool_call_parser",
    "mamba_ssm_cache_dtype": "mamba_ssm_dtype",
    "mamba_cache_dtype": "mamba_cache_dtype",
    "trust_remote_code": "trust_remote_code",
    "tokenizer_mode": "tokenizer_mode",
    "enable_flashinfer_autotune": "flashinfer_autotune",
    "seed": "seed",
    "device_config": "device",
}
"""vLLM's own name to the common one."""

_SPECULATION = {
    "method": "speculative_method",
    "num_speculative_tokens": "speculative_tokens",
    "num_spec_tokens": "speculative_tokens",
    "model": "speculative_model",
    "draft_model": "speculative_model",
    "attention_backend": "speculative_attention_backend",
    "draft_sample_method": "draft_sample_method",
    "rejection_sample_method": "rejection_sample_method",
    "draft_tensor_parallel_size": "draft_tensor_parallel",
    "max_model_len": "draft_max_model_len",
}
_NESTED = {
    ("attention_config", "backend"): "attention_backend",
    ("attention_config", "mla_prefill_backend"): "mla_prefill_backend",
    ("attention_config", "use_prefill_query_quantization"): "prefill_query_quantization",
    ("kernel_config", "moe_backend"): "moe_backend",
    ("kernel_config", "enable_flashinfer_autotune"): "flashinfer_autotune",
    ("compilation_config", "mode"): "compilation_mode",
    ("compilation_config", "level"): "compilation_mode",
    ("compilation_config", "cudagraph_mode"): "graph_mode",
    ("compilation_config", "max_cudagraph_capture_size"): "max_graph_size",
    ("compilation_config", "max_capture_size"): "max_graph_size",
}


def normalise(own: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Returns vLLM's settings under the common names; what is None (left to the engine) is left out."""
    common: dict[str, Any] = {}
    for name, value in own:
        if value is None or value == "None":
            continue
        if name in ("speculative_config", "compilation_config", "attention_config", "kernel_config"):
            common.update(_nested(name, value))
        elif name in _V0_SPECULATION:
            common.update(_v0_speculation(name, value))
        elif name in COMMON and not (name == "dtype" and value == "auto"):
            common[COMMON[name]] = _plain(value) if isinstance(value, str) else value
    return common


_GLUED = re.compile(
    r"(True|False) \w{1,60}="
)  # 0.6.4 left out a comma: `chunked_prefill_enabled=False multi_step_...=`


def _plain(value: str) -> Any:
    glued = _GLUED.match(value)
    return glued[1] == "True" if glued else value.removeprefix("torch.")


_V0_SPECULATION = ("speculative_model", "num_speculative_tokens")


def _v0_speculation(name: str, value: Any) -> dict[str, Any]:
    """V0 had flat arguments: the model `[ngram]` is a method, any other one a draft model."""
    if name == "num_speculative_tokens":
        return {"speculative_tokens": value}
    if value == "[ngram]":
        return {"speculative_method": "ngram"}
    return {"speculative_model": value}


def _nested(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str) and "(" in value:
        value = dict(pairs_of_call(value.partition("(")[2]))
    if not isinstance(value, Mapping):
        return {}
    if name == "speculative_config":
        found = {_SPECULATION[key]: item for key, item in value.items() if key in _SPECULATION}
    else:
        found = {
            _NESTED[name, key]: _enum(item) for key, item in value.items() if (name, key) in _NESTED
        }  # fmt: skip
    return {key: item for key, item in found.items() if item is not None}


def _enum(value: Any) -> Any:
    """`<CUDAGraphMode.NONE: 0>` and `CUDAGraphMode.NONE` name a mode: NONE."""
    if isinstance(value, str) and (match := re.fullmatch(r"<?\w{1,40}\.([A-Z_0-9]{1,40})(?:: [^>]{0,40}>)?", value)):
        return match[1]
    return value


def asked(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`non-default args: {...}` or V0's `args: Namespace(...)`: what the user asked for, under
    `raw.requested`.
    """
    another = line.text.find(match[0], match.end())  # a statement glued behind this one is read by itself
    rest = line.text[match.end() : another if another >= 0 else None]
    pairs = dict(pairs_of_call(rest) if match[1].startswith("Namespace") else pairs_of_dict(rest))
    if not pairs:
        return
    builder.new_start()
    builder.facts.pop("shutdown", None)
    request(builder, pairs)


def request(builder: Builder, asked_for: Mapping[str, Any]) -> None:
    """Keeps what was asked for under vLLM's own names, without secrets, and configures the common ones."""
    pairs = {name: value for name, value in asked_for.items() if not is_secret(name)}
    builder.raw.setdefault("requested", {}).update(pairs)
    builder.configure(normalise(pairs.items()))


def effective(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Initializing a V1 LLM engine (v0.32.0) with config: ...`: what the engine made of it."""
    if builder.facts.pop("shutdown", None) or builder.dead or (builder.shared is not None and builder.shared.dead):
        builder.new_start()
    pairs = list(pairs_of_call(line.text[match.end() :]))
    builder.raw.setdefault("engine", {}).update(dict(pairs))
    builder.configure(normalise(pairs))
    if match[1] and match[1].lstrip("v")[0].isdigit():
        builder.version = match[1].lstrip("v")
    compilation = builder.raw["engine"].get("compilation_config")
    if isinstance(compilation, Mapping):
        _graph_sizes(builder, compilation)


def _graph_sizes(builder: Builder, compilation: Mapping[str, Any]) -> None:
    sizes = compilation.get("cudagraph_capture_sizes")
    if isinstance(sizes, list) and sizes and all(isinstance(size, int) for size in sizes):
        builder.set("graph_sizes", sizes)


def setting(name: str, convert: Callable[[str], Any] = str, *, first: bool = False) -> Handler:
    """A handler for one setting in group 1."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        value = convert(match[1])
        if not first or builder.config.get(name, "auto") == "auto":
            builder.config[name] = value

    return handle


def attention(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The target model speaks first; a draft model may take another backend later."""
    name = next(group for group in match.groups() if group)
    name = name.strip().rstrip(".")
    if builder.single.get("attention_backend_seen"):
        if name not in (builder.config.get("attention_backend"), None):
            builder.raw.setdefault("attention_backends_further", name)
        return
    builder.single["attention_backend_seen"] = True
    builder.config["attention_backend"] = name


def block_size(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Setting attention block size to 1600 tokens to ensure that attention page size is >= ...`."""
    builder.config["block_size"] = whole(match[1])
    builder.note("block_size_raised", line)


def resolve(builder: Builder) -> None:
    """Fills the start-up facts that are settings."""
    config = builder.config
    for fact, name in (
        ("context_length", "max_model_len"),
        ("chunked_prefill_tokens", "max_batched_tokens"),
        ("dp_size", "data_parallel"),
    ):
        if isinstance(config.get(name), int):
            builder.set_first(fact, config[name])
    if isinstance(config.get("max_running_requests"), int):
        builder.per_rank["max_running_requests"] = {None: config["max_running_requests"]}
    if config.get("enforce_eager") is True or config.get("graph_mode") in ("NONE", 0, "0"):
        builder.single.pop("graph_sizes", None)


KINDS = (
    kind(
        "asked",
        ("non-default args:", "args: Namespace("),
        r"(?:non-default )?args: (\{|Namespace\()",
        asked,
        joins=False,
        spans=300,
    ),
    kind(
        "effective",
        ("LLM engine (v", "LLM engine with config"),
        r"Initializing an? (?:V\d )?LLM engine (?:\((v?\d[\w.+-]{0,80}|v?[a-z]\w{0,20})\) )?with config: ",
        effective,
        figure=False,
        joins=False,
        spans=300,
    ),
    kind("max_model_len", "Using max model len", r"Using max model len (\d+)\b", setting("max_model_len", int)),
    kind(
        "draft_length",
        "Overriding draft model max model len",
        r"Overriding draft model max model len from \d+ to (\d+)\b",
        setting("draft_max_model_len", int),
        figure=False,
    ),
    kind(
        "max_batched_tokens",
        "max_num_batched_tokens=",
        r"[Cc]hunked prefill is enabled with max_num_batched_tokens=(\d+)\b",
        setting("max_batched_tokens", int),
        figure=False,
    ),
    kind(
        "defaults",
        ("efaulting max_num_", "etting max_num_"),
        r"(?:Default|Sett)ing max_num_(seqs|batched_tokens) to (\d+) for",
        lambda builder, line, match: builder.config.setdefault(COMMON[f"max_num_{match[1]}"], int(match[2])),
        figure=False,
    ),
    kind(
        "max_graph_size",
        "max cuda graph capture size to",
        r"Overriding max cuda graph capture size to (\d+)",
        setting("max_graph_size", int),
        figure=False,
    ),
    kind(
        "memory_fraction",
        "--gpu-memory-utilization=",
        r"[Tt]he current --gpu-memory-utilization=(0?\.\d+|1\.0+)\b",
        setting("memory_fraction", float),
        figure=False,
        joins=False,
    ),
    kind(
        "attention_backend",
        (
            " attention backend",
            " backend on V1 engine",
            "AttentionBackendEnum.",
            "Using Flash Attention backend",
            "Using FlashInfer backend",
            "Using XFormers backend",
            "Using FlashAttention-2 backend",
            "Using ROCmFlashAttention",
            "_ATTN backend",
            "_MLA backend",
            "_ATTENTION backend",
            "FLASHINFER backend",
            "FLASHMLA backend",
            "_FA backend",
        ),
        r"Using (?:AttentionBackendEnum\.([A-Z_0-9]{3,40}) backend|([A-Z_0-9]{3,40}) attention backend"
        r"|([A-Z][A-Za-z0-9 _-]{2,40}?) backend on V1 engine"
        r"|([A-Z][A-Z0-9_]{3,40}) backend\b(?! for)"
        r"|(Flash Attention|FlashInfer|XFormers|FlashAttention-2|ROCmFlashAttention) backend)",
        attention,
        figure=False,
    ),
    kind(
        "mla_prefill",
        "MLA prefill backend",
        r"Using ([A-Za-z0-9_ ]{3,40}?) MLA prefill backend",
        setting("mla_prefill_backend"),
        figure=False,
    ),
    kind(
        "moe_backend",
        ("MoE backend", "backend for FP8 MoE", "backend for SM", "backend for Unquantized MoE"),
        r"Using '?([A-Za-z0-9_ -]{2,40}?)'? (?:[A-Z]\w{1,20} MoE backend|backend for (?:\w{2,20} MoE|SM\d))",
        setting("moe_backend", first=True),
        figure=False,
    ),
    kind(
        "all_reduce_backends",
        "all-reduce backends (in dispatch order)",
        r"Using \[([^\]\n]{0,200})\] all-reduce backends \(in dispatch order\) for group 'tp",
        setting("all_reduce_backends", lambda text: [name.strip(" '\"") for name in text.split(",") if name.strip()]),
        figure=False,
    ),
    kind(
        "linear_attention",
        (" KDA ", " GDN ", "FlashKDA"),
        r"Using ([A-Za-z0-9_/]{3,30}(?: KDA| GDN)? (?:prefill|decode)) kernel",
        setting("linear_attention_kernel", first=True),
        figure=False,
    ),
    kind(
        "kv_dtype",
        "to store kv cache",
        r"Using ([a-z][a-z0-9_]{2,30}) data type to store kv cache",
        setting("kv_cache_dtype"),
        figure=False,
    ),
    kind("block_size", "attention block size to", rf"etting attention block size to {NUM} tokens", block_size),
    kind(
        "forced_block_size",
        ("kv cache block size to", "optimal block size is"),
        r"(?:(?:[Ff]orc|[Ss]ett)ing kv cache block size to|OpenVINO (?:[CG]PU )?optimal block size is) (\d+)(?=,| for)",
        setting("block_size", int),
        figure=False,
    ),
    kind(
        "mamba_padding",
        "Padding mamba page size",
        r"Padding mamba page size by (\d+\.\d+)%",
        lambda builder, line, match: builder.raw.update(mamba_page_padding=round(float(match[1]) / 100, 8)),
    ),
    kind(
        "model_runner",
        "Model Runner",
        r"Using (V\d) Model Runner",
        setting("model_runner"),
        figure=False,
    ),
    kind(
        "async_scheduling",
        "synchronous scheduling is ",
        r"Asynchronous scheduling is (enabled|disabled)",
        setting("async_scheduling", lambda text: text == "enabled"),
        figure=False,
    ),
)
