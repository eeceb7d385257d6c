"""The start-up of vLLM (0.32-like) on GPUs, phase by phase, as its log tells it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crossover.simulator.faults import Faults
from crossover.simulator.log_base import SIMULATED, Note, Phase, progress
from crossover.simulator.settings import Settings


class StartUp:
    """Writes the lines of the start-up.

    Args:
        scale: simulated seconds in a real one, for the line that says so.
        pid: the serving process.
    """

    def __init__(self, settings: Settings, faults: Faults, scale: float, pid: int) -> None:
        self.settings, self.faults, self.scale, self._pid = settings, faults, scale, pid

    def phases(self, host: str, port: int) -> list[Phase]:
        """Returns the start-up as phases with their lines."""
        settings, memory = self.settings, self.settings.memory
        ranks = range(settings.tensor_parallel)
        scripts: Mapping[str, tuple[tuple[Note, ...], tuple[Note, ...]]] = {
            "process": (self._banner(), self._configuration()),
            "engine": ((), self._engine_config()),
            "weights": (
                (Note(f"Starting to load model {settings.model}...", "0", where="gpu_model_runner.py:5120"),),
                self._weights(dict(settings.phases).get("weights", 0.0)),
            ),
            "profile": (self._before_profile(), ()),
            "kv_cache": (
                tuple(
                    Note(f"Available KV cache memory: {memory.kv_gib:.2f} GiB", str(rank), where="gpu_worker.py:497")
                    for rank in ranks
                ),
                self._kv_cache(),
            ),
            "warmup": (
                (),
                ()
                if settings.autotune
                else (
                    Note("Skipping FlashInfer autotune because it is disabled.", "0", "WARNING", "kernel_warmup.py:61"),
                ),
            ),
            "autotune": (
                (Note("Running FlashInfer autotune...", "0", where="kernel_warmup.py:66"),),
                (Note("FlashInfer autotune finished.", "0", where="kernel_warmup.py:71"),),
            ),
            "graph": ((), self._graphs(dict(settings.phases).get("graph", 0.0))),
            "serve": (self._engine_ready(), self._serving(host, port)),
        }
        return [Phase(name, seconds, *scripts.get(name, ((), ()))) for name, seconds in settings.phases]

    def _banner(self) -> tuple[Note, ...]:
        where = "api_utils.py:347"
        return (
            Note(f"{SIMULATED} at {self.scale:g} times the real speed", where=where),
            Note(f"version {self.settings.version}", where=where),
            Note(f"model   {self.settings.model}", where=where),
            Note(f"non-default args: {_non_default(self.settings)!r}", where="api_utils.py:286"),
        )

    def _configuration(self) -> tuple[Note, ...]:
        settings = self.settings
        notes = [
            Note("Resolved architecture: KimiK3ForConditionalGeneration", where="model.py:733"),
            Note(f"Using max model len {settings.context_tokens}", where="model.py:2152"),
            Note(
                f"Chunked prefill is enabled with max_num_batched_tokens={settings.prefill_budget_tokens}.",
                where="scheduler.py:241",
            ),
        ]
        if settings.kv_dtype.startswith("fp8"):
            notes.append(
                Note(
                    f"Using {settings.kv_dtype} data type to store kv cache. It reduces the GPU memory "
                    "footprint and boosts the "
                    "performance. Meanwhile, it may cause accuracy drop without a proper scaling factor.",
                    where="cache.py:262",
                )
            )
        if settings.not_modelled:
            notes.append(
                Note(f"SIMULATED: accepted, not modelled: {' '.join(settings.not_modelled)}", where="sim.py:1")
            )
        notes += [
            Note(
                "Breakable CUDA graph is on: compilation mode set to CompilationMode.NONE.",
                level="WARNING",
                where="vllm.py:1703",
            ),
            Note("Enabled custom fusions: norm_quant, act_quant, allreduce_rms", where="compilation.py:317"),
            Note(
                "Setting attention block size to 1536 tokens to ensure that attention page size is >= mamba page size.",
                where="config.py:547",
            ),
            Note(
                "Padding mamba page size by 0.70% to ensure that mamba page size and attention page size are "
                "exactly equal.",
                where="config.py:571",
            ),
        ]
        return tuple(notes)

    def _engine_config(self) -> tuple[Note, ...]:
        settings = self.settings
        speculative = "None"
        if settings.draft_tokens:
            draft = (settings.arguments.get("speculative-config") or {}).get("model")
            speculative = (
                f"SpeculativeConfig(method={settings.draft_method!r}, model={draft!r}, "
                f"num_spec_tokens={settings.draft_tokens})"
            )
        config = (
            f"model={settings.model!r}, speculative_config={speculative}, tokenizer={settings.model!r}, "
            f"trust_remote_code={bool(settings.arguments.get('trust-remote-code'))}, dtype=torch.bfloat16, "
            f"max_seq_len={settings.context_tokens}, load_format={settings.arguments.get('load-format', 'auto')}, "
            f"tensor_parallel_size={settings.tensor_parallel}, pipeline_parallel_size=1, data_parallel_size=1, "
            f"decode_context_parallel_size={settings.dcp}, dcp_comm_backend=ag_rs, "
            f"disable_custom_all_reduce={not settings.custom_all_reduce}, quantization=mxfp4, "
            f"enforce_eager={'graph' not in dict(settings.phases)}, kv_cache_dtype={settings.kv_dtype}, "
            f"device_config=cuda, seed=0, served_model_name={settings.model}, "
            f"enable_prefix_caching={settings.prefix_caching}, enable_chunked_prefill=True, "
            f"reasoning_parser={settings.reasoning_parser or ''!r}"
        )
        asked = settings.arguments.get("attention-backend") or "FLASHINFER_MLA"
        backend = self.faults.values.get("changed-backend", asked)
        others = ["FLASHINFER_MLA", "FLASH_ATTN_MLA", "TRITON_MLA"]
        prefill = (settings.arguments.get("attention-config") or {}).get("mla_prefill_backend", "TRTLLM_RAGGED")
        moe = "FLASHINFER_TRTLLM_MXFP4_MXFP8"
        notes = [
            Note(
                f"Initializing a V1 LLM engine (v{settings.version}) with config: {config}", "core", where="core.py:133"
            ),
        ]
        notes += [
            Note(
                f"world_size={settings.tensor_parallel} rank={rank} local_rank={rank} "
                f"distributed_init_method=tcp://127.0.0.1:51{rank:03d} backend=nccl",
                str(rank),
                where="parallel_state.py:1906",
            )
            for rank in range(settings.tensor_parallel)
        ]
        if not settings.custom_all_reduce:
            notes.append(
                Note("Custom allreduce is disabled by user settings.", "0", "WARNING", "cuda_communicator.py:88")
            )
        notes += [
            Note(f"Using {backend} attention backend out of potential backends: {others}.", "0", where="cuda.py:423"),
            Note(f"Using {prefill} MLA prefill backend", "0", where="mla_attention.py:611"),
            Note("Using FlashKDA prefill kernel", "0", where="kda.py:142"),
            Note(f"Using {moe!r} Mxfp4 MoE backend.", "0", where="mxfp4.py:118"),
        ]
        return tuple(notes)

    def _weights(self, seconds: float) -> tuple[Note, ...]:
        weights = self.settings.memory.weights_gib
        notes = [Note(progress("Loading safetensors using Fastsafetensor loader", 12, seconds), None)]
        notes += [
            Note(f"Loading weights took {seconds:.2f} seconds", str(rank), where="default_loader.py:501")
            for rank in range(self.settings.tensor_parallel)
        ]
        if self.settings.draft_tokens:
            notes.append(Note("Loading drafter model...", "0", where="gpu_model_runner.py:5144"))
        notes += [
            Note(
                f"Model loading took {weights:.2f} GiB memory and {seconds + 3.4:.6f} seconds",
                str(rank),
                where="gpu_model_runner.py:5167",
            )
            for rank in range(self.settings.tensor_parallel)
        ]
        return tuple(notes)

    def _before_profile(self) -> tuple[Note, ...]:
        if not self.settings.kv_dtype.startswith("fp8") or self.settings.kv_scales:
            return ()
        return (
            Note(
                "Using KV cache scaling factor 1.0 for fp8_e4m3. If this is unintended, verify that k/v_scale "
                "scaling factors "
                "are properly set in the checkpoint.",
                "0",
                "WARNING",
                "kv_cache.py:151",
            ),
        )

    def _kv_cache(self) -> tuple[Note, ...]:
        tokens, context = self.settings.memory.kv_tokens, self.settings.context_tokens
        return (
            Note(
                f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {context:,} tokens per request: "
                f"{tokens / context:.2f}x",
                "core",
                where="kv_cache_utils.py:2327",
            ),
        )

    def _graphs(self, seconds: float) -> tuple[Note, ...]:
        memory = self.settings.memory
        requested = memory.fraction * memory.visible_gib
        safe = memory.kv_gib - memory.graph_gib - 0.15
        full = memory.visible_gib - memory.weights_gib - memory.non_torch_gib - memory.activation_gib - memory.graph_gib
        notes = [Note(progress("Capturing CUDA graphs (decode, FULL)", 51, seconds), None)]
        notes += [
            Note(
                f"Graph capturing finished in {seconds - (rank % 3):.0f} secs, took {memory.graph_gib:.2f} GiB",
                str(rank),
                where="gpu_model_runner.py:6290",
            )
            for rank in range(self.settings.tensor_parallel)
        ]
        notes.append(
            Note(
                f"Free memory on device ({memory.visible_gib - 0.63:.2f}/{memory.visible_gib:.2f} GiB) on "
                "startup. Desired GPU "
                f"memory utilization is ({memory.fraction:g}, {requested:.2f} GiB). Actual usage is "
                f"{memory.weights_gib:.2f} GiB "
                f"for weight, {memory.activation_gib:.2f} GiB for peak activation, {memory.non_torch_gib:.2f} "
                "GiB for non-torch "
                f"memory, and {memory.graph_gib:.2f} GiB for CUDAGraph memory. Replace gpu_memory_utilization "
                "config with "
                f"`--kv-cache-memory={int(safe * 2**30)}` ({safe:.2f} GiB) to fit into requested memory, or "
                f"`--kv-cache-memory={int(full * 2**30)}` ({full:.2f} GiB) to fully utilize gpu memory. "
                "Current kv cache memory "
                f"in use is {memory.kv_gib:.2f} GiB.",
                "0",
                where="gpu_worker.py:781",
            )
        )
        return tuple(notes)

    def _engine_ready(self) -> tuple[Note, ...]:
        inside = sum(
            seconds
            for name, seconds in self.settings.phases
            if name in ("profile", "kv_cache", "warmup", "autotune", "graph")
        )
        return (
            Note(
                f"init engine (profile, create kv cache, warmup model) took {inside:.2f} s", "core", where="core.py:402"
            ),
        )

    def _serving(self, host: str, port: int) -> tuple[Note, ...]:
        return (
            Note("Supported tasks: ['generate']", where="entry.py:136"),
            Note(f"Starting vLLM server on http://{host}:{port}", where="entry.py:140"),
            Note(f"INFO:     Started server process [{self._pid}]", None),
            Note("INFO:     Waiting for application startup.", None),
            Note("INFO:     Application startup complete.", None),
        )


def _non_default(settings: Settings) -> dict[str, Any]:
    """Returns the arguments as vLLM prints them: underscores, numbers as numbers."""
    printed: dict[str, Any] = {"model_tag": settings.model, "model": settings.model}
    for name, value in settings.arguments.items():
        if name == "model":
            continue
        key = name.replace("-", "_")
        printed[key] = _as_number(value)
    return printed


def _as_number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
