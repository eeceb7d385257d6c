"""The log of SGLang (0.5.23-like): start-up on GPUs, a line a prefill batch and one every 40 decode steps, "
"access lines."""

from __future__ import annotations

import os
from collections.abc import Mapping

from crossover.simulator.faults import Faults
from crossover.simulator.log_base import SIMULATED, Lines, Note, Phase, oom_retry_text, progress
from crossover.simulator.scheduler import Scheduler, Step
from crossover.simulator.server_info import server_args
from crossover.simulator.settings import Settings

_GRAPH_SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, *range(18, 129, 2)][:67]


class SglangLog:
    """Writes what SGLang would; see `Lines` for when it reaches the output."""

    def __init__(self, settings: Settings, lines: Lines, faults: Faults) -> None:
        self.settings, self.lines, self.faults = settings, lines, faults
        self._pid = os.getpid()
        self._decode_steps = 0
        self._generated = 0.0
        self._since_s = 0.0
        self._rounds = 0
        self._accepted = 0.0
        self._last_batch_s: float | None = None
        self.last_decode_tok_s = 0.0

    # --- lines

    def note(self, note: Note, sim_s: float) -> None:
        """Adds one line with the simulated time; the source is a rank, or `api` for the process that serves."""
        if note.source is None:
            self.lines.add(note.message)
            return
        rank = f" TP{note.source}" if note.source.isdigit() and self.settings.tensor_parallel > 1 else ""
        self.lines.add(f"[{self.lines.clock.stamp(sim_s):%Y-%m-%d %H:%M:%S}{rank}] {note.message}")

    def access(self, address: str, method: str, path: str, status: int, reason: str, sim_s: float) -> None:
        """Adds an access line."""
        self.note(Note(f'INFO:     {address} - "{method} {path} HTTP/1.1" {status} {reason}'), sim_s)

    # --- start-up

    def phases(self, host: str, port: int) -> list[Phase]:
        """Returns the start-up as phases with their lines."""
        named = dict(self.settings.phases)
        scripts: Mapping[str, tuple[tuple[Note, ...], tuple[Note, ...]]] = {
            "process": (self._banner(), ()),
            "engine": (self._ranks("Init torch distributed begin."), self._before_weights()),
            "weights": (
                self._ranks(f"Load weight begin. avail mem={self._free_gib():.2f} GB"),
                self._weights(named.get("weights", 0.0)),
            ),
            "kv_cache": ((), self._pools()),
            "graph": (self._graphs_begin(), self._graphs_end(named.get("graph", 0.0))),
            "warmup": ((), self._limits()),
            "serve": ((), self._serving(host, port)),
            "warmup_request": ((), (Note('INFO:     127.0.0.1:40022 - "POST /generate HTTP/1.1" 200 OK'),)),
        }
        phases = [Phase(name, seconds, *scripts.get(name, ((), ()))) for name, seconds in self.settings.phases]
        last = phases[-1]
        ready = (*last.end, Note("The server is fired up and ready to roll!"))
        return [*phases[:-1], Phase(last.name, last.seconds, last.begin, ready)]

    def _ranks(self, message: str) -> tuple[Note, ...]:
        return tuple(Note(message, str(rank)) for rank in range(self.settings.tensor_parallel))

    def _banner(self) -> tuple[Note, ...]:
        settings = self.settings
        notes = [
            Note(
                f"{SIMULATED}, at {self.lines.clock.scale:g} times the real speed; sglang version: {settings.version}"
            ),
            Note(f"server_args={server_args(settings)!r}"),
        ]
        if settings.not_modelled:
            notes.append(Note(f"SIMULATED: accepted, not modelled: {' '.join(settings.not_modelled)}"))
        return tuple(notes)

    def _before_weights(self) -> tuple[Note, ...]:
        settings = self.settings
        asked = settings.arguments
        common = asked.get("attention-backend")
        decode = asked.get("decode-attention-backend") or common or "cutedsl_mla"
        backend = self.faults.values.get("changed-backend", decode)
        prefill = asked.get("prefill-attention-backend") or common or "trtllm_mla"
        notes = [
            *self._ranks(
                f"Init torch distributed ends. elapsed=21.40 s, mem usage={self.settings.memory.non_torch_gib:.2f} GB"
            )
        ]
        notes.append(
            Note(
                "Using hybrid attention backend for decode and prefill: "
                f"decode_backend={backend}, prefill_backend={prefill}.",
                "0",
            )
        )
        if not settings.custom_all_reduce:
            notes.append(
                Note(
                    "Custom allreduce is disabled, and symmetric memory with multicast is unavailable: falling "
                    "back to NCCL "
                    "all-reduce.",
                    "0",
                )
            )
        notes.append(
            Note(
                "Linear attention kernel backend: decode=triton, prefill=triton; "
                "linear_attn_verify_backend=nv_cutedsl. "
                "KDA kernel dispatcher: decode=TritonKDAKernel, verify=TritonKDAKernel, extend=TritonKDAKernel",
                "0",
            )
        )
        return tuple(notes)

    def _weights(self, seconds: float) -> tuple[Note, ...]:
        memory = self.settings.memory
        free = memory.visible_gib - memory.non_torch_gib - memory.weights_gib
        end = (
            f"Load weight end. elapsed={seconds:.2f} s, type=KimiK3ForConditionalGeneration, avail mem={free:.2f} GB, "
            f"mem usage={memory.weights_gib:.2f} GB."
        )
        notes = [Note(progress("Multi-thread loading shards", 96, seconds), None), *self._ranks(end)]
        if self.settings.kv_dtype.startswith("fp8") and not self.settings.kv_scales:
            notes.append(
                Note(
                    "Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. "
                    "This may lead to "
                    "less accurate results!",
                    "0",
                )
            )
        return tuple(notes)

    def _pools(self) -> tuple[Note, ...]:
        memory = self.settings.memory
        dtype = {"fp8_e4m3": "torch.float8_e4m3fn", "fp8_e5m2": "torch.float8_e5m2"}.get(
            self.settings.kv_dtype, "torch.bfloat16"
        )
        state = memory.mamba_gib
        left = (
            memory.visible_gib - memory.non_torch_gib - memory.weights_gib - memory.kv_gib - memory.draft_kv_gib - state
        )
        notes = [
            *self._ranks(
                f"Mamba Cache is allocated. max_mamba_cache_size: {memory.mamba_slots * 3}, conv_state size: "
                f"{state * 0.04:.2f}GB, ssm_state size: {state * 0.56:.2f}GB intermediate_ssm_state_cache size: "
                f"{state * 0.38:.2f}GB intermediate_conv_window_cache size: {state * 0.02:.2f}GB "
            ),
            *self._ranks(
                f"KV Cache is allocated. dtype: {dtype}, #tokens: {memory.kv_tokens}, KV size: {memory.kv_gib:.2f} GB"
            ),
        ]
        if memory.draft_kv_tokens:
            notes += self._ranks(
                f"KV Cache is allocated. dtype: {dtype}, #tokens: {memory.draft_kv_tokens}, KV size: "
                f"{memory.draft_kv_gib:.2f} GB"
            )
        notes += self._ranks(f"Memory pool end. avail mem={left:.2f} GB")
        return tuple(notes)

    def _graphs_begin(self) -> tuple[Note, ...]:
        return (
            *self._ranks(
                "Capture cuda graph begin. This can take up to several minutes. avail mem="
                f"{self._left_gib() + self.settings.memory.graph_gib:.2f} GB"
            ),
            Note(f"Capture cuda graph bs {_GRAPH_SIZES}", "0"),
        )

    def _graphs_end(self, seconds: float) -> tuple[Note, ...]:
        return (
            Note(progress(f"Capturing batches (bs=1 avail_mem={self._left_gib():.2f} GB)", 67, seconds), None),
            *self._ranks(
                f"Capture cuda graph end. Time elapsed: {seconds:.2f} s. mem "
                f"usage={self.settings.memory.graph_gib:.2f} GB. "
                f"avail mem={self._left_gib():.2f} GB."
            ),
        )

    def _free_gib(self) -> float:
        return self.settings.memory.visible_gib - self.settings.memory.non_torch_gib

    def _left_gib(self) -> float:
        memory = self.settings.memory
        used = memory.weights_gib + memory.kv_gib + memory.draft_kv_gib + memory.mamba_gib + memory.graph_gib
        return memory.visible_gib - memory.non_torch_gib - used

    def _limits(self) -> tuple[Note, ...]:
        settings = self.settings
        notes = []
        if settings.requested_running and settings.max_running < settings.requested_running:
            notes.append(
                Note(
                    f"max_running_requests was reduced from the requested {settings.requested_running} to "
                    f"{settings.max_running}, which the mamba state cache allows.",
                    "0",
                )
            )
        notes.append(
            Note(
                f"max_total_num_tokens={settings.memory.kv_tokens}, chunked_prefill_size="
                f"{settings.extra['chunked_prefill_size']}, max_prefill_tokens={settings.extra['max_prefill_tokens']}, "
                f"max_running_requests={settings.max_running}, context_len={settings.context_tokens}, "
                "available_gpu_mem="
                f"{self._left_gib():.2f} GB",
                "0",
            )
        )
        impl = "MambaRadixCache" if settings.prefix_caching else "ChunkCache"
        notes.append(
            Note(
                f"Tree cache initialized: source=default impl={impl} hybrid_swa=False hybrid_ssm=True "
                "hicache_attached=False",
                "0",
            )
        )
        return tuple(notes)

    def _serving(self, host: str, port: int) -> tuple[Note, ...]:
        named = dict(self.settings.phases)
        timings = (
            f"Engine startup timings (s): load_weight={named.get('weights', 0):.2f}, kv_cache_allocation="
            f"{named.get('kv_cache', 0):.2f}, scheduler_e2e="
            f"{sum(named.get(name, 0) for name in ('kv_cache', 'graph', 'warmup')):.2f}, "
            f"cuda_graph={{prefill=0.00, decode="
            f"{named.get('graph', 0) * 0.4:.2f}, target_verify={named.get('graph', 0) * 0.6:.2f}, draft_prefill=0.00, "
            "draft_decode=0.00, draft_extend=0.00}, tokenizer_e2e=7.79"
        )
        return (
            Note(timings),
            Note(f"INFO:     Started server process [{self._pid}]"),
            Note("INFO:     Waiting for application startup."),
            Note("INFO:     Application startup complete."),
            Note(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)"),
        )

    # --- running

    def on_start(self, sim_s: float) -> None:
        """The server is up."""
        self._since_s = sim_s

    def on_step(self, step: Step, scheduler: Scheduler) -> None:
        """Writes the lines of a step that has ended."""
        if step.prefill:
            self._prefill(step, scheduler)
        for sequence in step.preempted:
            self.note(
                Note(
                    "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: "
                    f"{int(sequence.prompt + sequence.generated)}, #new_token_ratio: 0.5000 -> 0.6000",
                    "0",
                ),
                step.end_s,
            )
        self._generated += sum(tokens for _, tokens, _ in step.outputs)
        if step.decoding:
            self._decode(step, scheduler)

    def on_begin(self, step: Step) -> None:
        """Tells of what delays a step that starts now: kernels to compile, allocations to retry."""
        for rule in step.compiled:
            self.compiled(rule.kernel, step.start_s)
        for retry in range(step.oom_retries):
            self.oom_retry(retry % self.settings.tensor_parallel, step.start_s)

    def compiled(self, kernel: str, sim_s: float) -> None:
        """Tells of a kernel compiled while serving."""
        self.note(Note(f"CuTe DSL KDA kernel compiled for a new shape: {kernel}", "0"), sim_s)

    def oom_retry(self, rank: int, sim_s: float) -> None:
        """Tells of an allocation that failed, and went through after cached blocks were freed."""
        self.note(Note(oom_retry_text(self.settings, rank), str(rank)), sim_s)

    def _prefill(self, step: Step, scheduler: Scheduler) -> None:
        started = set(map(id, step.started))
        new = sum(tokens for _, tokens, _ in step.prefill)
        cached = sum(sequence.cached for sequence, _, _ in step.prefill if id(sequence) in started)
        pending = sum(sequence.prompt - sequence.computed for sequence in scheduler.running)
        pending += sum(sequence.prompt for sequence in scheduler.waiting)
        full = [sequence for sequence in scheduler.running if sequence.computed >= sequence.target]
        done = {id(sequence) for sequence, _, _ in step.prefill}
        decoding = sum(id(sequence) not in done for sequence in full)
        window = step.end_s - (self._last_batch_s if self._last_batch_s is not None else step.start_s)
        rate = new / max(1e-9, min(window, step.duration_s) if window > 0 else step.duration_s)
        self._last_batch_s = step.end_s
        mamba = len(scheduler.running) / max(1, self.settings.memory.mamba_slots)
        self.note(
            Note(
                f"Prefill batch, #new-seq: {len(step.started)}, #new-token: {new}, #cached-token: {cached}, "
                "full token usage: "
                f"{scheduler.kv_usage():.2f}, mamba usage: {min(1.0, mamba):.2f}, #running-req: {decoding}, "
                "#queue-req: "
                f"{len(scheduler.waiting)}, #pending-token: {pending}, cuda graph: False, input throughput "
                f"(token/s): {rate:.2f}",
                "0",
            ),
            step.end_s,
        )

    def _decode(self, step: Step, scheduler: Scheduler) -> None:
        self._decode_steps += 1
        self._rounds += step.decoding
        self._accepted += step.accepted
        if self._decode_steps < self.settings.log_every_steps:
            return
        window = max(1e-9, step.end_s - self._since_s)
        self.last_decode_tok_s = self._generated / window
        running = step.decoding
        tokens = int(scheduler.held_tokens())
        mamba = len(scheduler.running) / max(1, self.settings.memory.mamba_slots)
        speculation = ""
        if self.settings.draft_tokens:
            mean = 1 + self._accepted / self._rounds
            speculation = f"accept len: {mean:.2f}, accept rate: {(mean - 1) / self.settings.draft_tokens:.2f}, "
        graph = "graph" in dict(self.settings.phases)
        self.note(
            Note(
                f"Decode batch, #running-req: {running}, #full token: {tokens}, full token usage: "
                f"{scheduler.kv_usage():.2f}, "
                f"mamba num: {len(scheduler.running)}, mamba usage: {min(1.0, mamba):.2f}, {speculation}cuda "
                f"graph: {graph}, gen "
                f"throughput (token/s): {self.last_decode_tok_s:.2f}, #queue-req: {len(scheduler.waiting)}",
                "0",
            ),
            step.end_s,
        )
        self._decode_steps = self._rounds = 0
        self._generated, self._accepted, self._since_s = 0.0, 0.0, step.end_s

    def next_tick_s(self) -> float:
        """SGLang writes no line by the clock."""
        return float("inf")

    def tick(self, sim_s: float, scheduler: Scheduler) -> None:
        """Nothing: see `next_tick_s`."""

    # --- ends

    def failed(self, message: str, sim_s: float, starting: bool) -> None:
        """Writes the end of an engine that fails, at start or while serving."""
        for line in ("Scheduler hit an exception: Traceback (most recent call last):", message):
            self.note(Note(line, "0"), sim_s)
        if starting:
            self.note(Note("Rank 0 scheduler is dead. Please check if there are relevant logs."), sim_s)
        else:
            self.note(Note("SIGQUIT received. signum=None, frame=None. It usually means one child failed."), sim_s)
        self.note(
            Note(f"kill_process_tree called: parent_pid={self._pid}, include_parent=True, pid={self._pid}"), sim_s
        )

    def port_in_use(self, host: str, port: int, sim_s: float) -> None:
        """Writes what SGLang says of a port that is taken (once the engine is up: uvicorn binds late)."""
        text = (
            f"ERROR:    [Errno 98] error while attempting to bind on address ('{host}', {port}): address already in use"
        )
        self.note(Note(text), sim_s)
        self.note(Note("INFO:     Waiting for application shutdown."), sim_s)
        self.note(Note("INFO:     Application shutdown complete."), sim_s)

    def shutdown(self, sim_s: float, running: int) -> None:
        """Writes the lines of an orderly end."""
        for text in (
            "SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
            f"Gracefully exiting... Remaining number of requests {running}. Remaining requests remaining_rids=[].",
            "INFO:     Shutting down",
            "INFO:     Waiting for application shutdown.",
            "INFO:     Application shutdown complete.",
            f"INFO:     Finished server process [{self._pid}]",
        ):
            self.note(Note(text), sim_s)
