"""The log of vLLM (0.32-like): start-up on GPUs, throughput and speculation every interval, access lines, incidents."""

from __future__ import annotations

import os

from crossover.simulator.faults import Faults
from crossover.simulator.log_base import Lines, Note, Phase, oom_retry_text
from crossover.simulator.log_vllm_start import StartUp
from crossover.simulator.scheduler import Scheduler, Step
from crossover.simulator.settings import Settings

_WORKER_PID, _CORE_PID = 40, 20  # offsets to the process's own id


class VllmLog:
    """Writes what vLLM would; see `Lines` for when it reaches the output.

    Args:
        interval_s: seconds between two throughput lines (VLLM_LOG_STATS_INTERVAL).
    """

    def __init__(self, settings: Settings, lines: Lines, faults: Faults, interval_s: float | None = None) -> None:
        self.settings, self.lines, self.faults = settings, lines, faults
        self.interval_s = interval_s or float(os.environ.get("VLLM_LOG_STATS_INTERVAL", "10"))
        self._pid = os.getpid()
        self._next_s = 0.0
        self._last_s = 0.0
        self._last_speculation_s = 0.0
        self._prompt = self._generated = 0
        self._drafted = self._accepted = self._rounds = 0
        self._positions = [0] * settings.draft_tokens
        self._was_idle = True

    # --- lines

    def note(self, note: Note, sim_s: float) -> None:
        """Adds one line with the simulated time."""
        if note.source is None:
            self.lines.add(note.message)
            return
        stamp = self.lines.clock.stamp(sim_s).strftime("%m-%d %H:%M:%S")
        for text in note.message.split("\n"):
            self.lines.add(f"({self._name(note.source)}) {note.level} {stamp} [{note.where}] {text}")

    def _name(self, source: str) -> str:
        if source == "api":
            return f"APIServer pid={self._pid}"
        if source == "core":
            return f"EngineCore pid={self._pid + _CORE_PID}"
        rank = int(source)
        tail = f"_DCP{rank % self.settings.dcp}" if self.settings.dcp > 1 else ""
        name = f"Worker_TP{rank}{tail}" if self.settings.tensor_parallel > 1 else "Worker"
        return f"{name} pid={self._pid + _WORKER_PID + rank}"

    def access(self, address: str, method: str, path: str, status: int, reason: str, sim_s: float) -> None:
        """Adds an access line."""
        self.lines.add(f'INFO:     {address} - "{method} {path} HTTP/1.1" {status} {reason}')

    def phases(self, host: str, port: int) -> list[Phase]:
        """Returns the start-up as phases with their lines."""
        return StartUp(self.settings, self.faults, self.lines.clock.scale, self._pid).phases(host, port)

    # --- running

    def on_start(self, sim_s: float) -> None:
        """The server is up: throughput lines come from now on."""
        self._last_s = self._last_speculation_s = sim_s
        self._next_s = sim_s + self.interval_s

    def on_step(self, step: Step, scheduler: Scheduler) -> None:
        """Counts a step that has ended."""
        for sequence, new, before in step.prefill:
            if before + new >= sequence.prompt and not sequence.preemptions:
                self._prompt += sequence.prompt
        for _, tokens, _ in step.outputs:
            self._generated += int(tokens)
        if step.drafted:
            self._drafted += step.drafted
            self._accepted += int(step.accepted)
            self._rounds += step.decoding

    def on_begin(self, step: Step) -> None:
        """Tells of what delays a step that starts now: kernels to compile, allocations to retry."""
        for rule in step.compiled:
            self.compiled(rule.kernel, step.start_s)
        for retry in range(step.oom_retries):
            self.oom_retry(retry % self.settings.tensor_parallel, step.start_s)

    def compiled(self, kernel: str, sim_s: float) -> None:
        """Tells of a kernel compiled while serving."""
        self.note(
            Note(
                f"Triton kernel JIT compilation during inference: {kernel}. This causes a latency spike; "
                "consider extending "
                "warmup to cover this shape/config.",
                "0",
                "WARNING",
                "jit_monitor.py:103",
            ),
            sim_s,
        )

    def oom_retry(self, rank: int, sim_s: float) -> None:
        """Tells of an allocation that failed, and went through after cached blocks were freed."""
        self.note(Note(oom_retry_text(self.settings, rank), str(rank), "WARNING", "gpu_worker.py:912"), sim_s)

    def next_tick_s(self) -> float:
        """Returns when `tick` is due."""
        return self._next_s

    def tick(self, sim_s: float, scheduler: Scheduler) -> None:
        """Writes the throughput line of the interval, and the speculation line when there was any; idle stays "
        "silent."""
        self._next_s += self.interval_s
        window = max(1e-9, sim_s - self._last_s)
        self._last_s = sim_s
        idle = scheduler.idle and not self._prompt and not self._generated
        if not (idle and self._was_idle):
            hit = f", Prefix cache hit rate: {scheduler.cache.hit_rate():.1%}" if self.settings.prefix_caching else ""
            preempted = f", Preemptions: {scheduler.preemptions}" if scheduler.preemptions else ""
            self.note(
                Note(
                    f"Engine 000: Avg prompt throughput: {self._prompt / window:.1f} tokens/s, Avg generation "
                    "throughput: "
                    f"{self._generated / window:.1f} tokens/s, Running: {len(scheduler.running)} reqs, Waiting: "
                    f"{len(scheduler.waiting)} reqs{preempted}, GPU KV cache usage: {scheduler.kv_usage():.1%}{hit}",
                    where="loggers.py:335",
                ),
                sim_s,
            )
        self._was_idle = idle
        self._prompt = self._generated = 0
        if self._rounds:
            self._speculation(sim_s)

    def _speculation(self, sim_s: float) -> None:
        window = max(1e-9, sim_s - self._last_speculation_s)
        self._last_speculation_s = sim_s
        mean = 1 + self._accepted / self._rounds
        positions = ", ".join(f"{rate:.3f}" for rate in _per_position(mean, self.settings.draft_tokens))
        self.note(
            Note(
                f"SpecDecoding metrics: Mean acceptance length: {mean:.2f}, Accepted throughput: "
                f"{self._accepted / window:.2f} tokens/s, Drafted throughput: {self._drafted / window:.2f} "
                "tokens/s, Accepted: "
                f"{self._accepted} tokens, Drafted: {self._drafted} tokens, Per-position acceptance rate: "
                f"{positions}, Avg Draft "
                f"acceptance rate: {self._accepted / self._drafted:.1%}",
                where="metrics.py:120",
            ),
            sim_s,
        )
        self._drafted = self._accepted = self._rounds = 0

    # --- ends

    def failed(self, message: str, sim_s: float, starting: bool) -> None:
        """Writes the end of an engine that fails, at start or while serving: the cause first, then what "
        "follows from it."""
        rank_zero = (
            Note("WorkerProc hit an exception.", "0", "ERROR", "multiproc_executor.py:1055"),
            Note("Traceback (most recent call last):", "0", "ERROR", "multiproc_executor.py:1055"),
            Note(f"{message}", "0", "ERROR", "multiproc_executor.py:1055"),
        )
        if starting:
            rest: tuple[Note, ...] = (
                Note("EngineCore failed to start.", "core", "ERROR", "core.py:1187"),
                Note(message, "core", "ERROR", "core.py:1187"),
                Note(
                    f"(APIServer pid={self._pid}) RuntimeError: Engine core initialization failed. See root "
                    "cause above. Failed "
                    "core proc(s): {}",
                    None,
                ),
            )
        else:
            rest = (
                Note("EngineCore encountered a fatal error.", "core", "ERROR", "core.py:1207"),
                Note("AsyncLLM output_handler failed.", "api", "ERROR", "async_llm.py:708"),
                Note(
                    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack "
                    "trace (above) for the "
                    "root cause.",
                    "api",
                    "ERROR",
                    "async_llm.py:708",
                ),
            )
        for note in rank_zero + rest:
            self.note(note, sim_s)

    def port_in_use(self, host: str, port: int, sim_s: float) -> None:
        """Writes what vLLM says of a port that is taken (before it starts the engine)."""
        for line in ("Traceback (most recent call last):", "OSError: [Errno 98] Address already in use"):
            self.lines.add(f"(APIServer pid={self._pid}) {line}")

    def shutdown(self, sim_s: float, running: int) -> None:
        """Writes the lines of an orderly end."""
        for message, source, where in (
            ("[shutdown] API server: shutdown triggered", "api", "launcher.py:254"),
            ("[shutdown] API server: stopping engine client mode=abort timeout=0s", "api", "launcher.py:270"),
            ("[shutdown] MPClient: start timeout=0s", "api", "core_client.py:770"),
            ("[shutdown] EngineCore: trigger received signal=SIGTERM", "core", "core.py:1454"),
            ("[shutdown] EngineCore: start mode=abort timeout=0s", "core", "core.py:1635"),
        ):
            self.note(Note(message, source, where=where), sim_s)
        self.lines.add("INFO:     Shutting down")
        self.lines.add("INFO:     Application shutdown complete.")


def _per_position(mean: float, drafted: int) -> list[float]:
    from crossover.simulator.acceptance import conditional_rate

    rate = conditional_rate(mean, drafted)
    return [rate**position for position in range(1, drafted + 1)]
