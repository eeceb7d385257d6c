"""Memory that ran out: the device's, with the phase in which it did, the host's, the disk's."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.crash import remember_error
from crossover.logs.handlers import event, failure
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.spoken import goes_on, only_warns
from crossover.logs.table import kind

_PHASES = {
    "load": (
        "while the model was loaded",
        "the weights do not fit: use more devices (tensor parallel), a quantised checkpoint, or free the device",
    ),
    "profile": (
        "in the profiling run",
        "lower the token budget of a step (max-num-batched-tokens, chunked-prefill-size) or max-num-seqs",
    ),
    "kv": (
        "while the KV cache was allocated",
        "lower the memory fraction (gpu-memory-utilization, mem-fraction-static), or free the device",
    ),
    "capture": (
        "during graph capture",
        "lower the memory fraction, or capture fewer and smaller graphs (max-num-seqs, cuda-graph-max-bs)",
    ),
    "sampler": (
        "while the sampler was warmed up",
        "lower max-num-seqs or the memory fraction",
    ),
}
_FRAMES = {
    "load_model": "load", "load_weights": "load", "process_weights_after_loading": "load", "create_weights": "load",
    "profile_run": "profile", "determine_available_memory": "profile", "determine_num_available_blocks": "profile",
    "initialize_kv_cache": "kv", "_allocate_kv_cache_tensors": "kv", "init_memory_pool": "kv",
    "_allocate_kv_cache": "kv", "_create_buffers": "kv",
    "capture_model": "capture", "capture_one_batch_size": "capture", "init_cuda_graphs": "capture",
    "init_device_graphs": "capture", "_dummy_sampler_run": "sampler",
}  # fmt: skip
_NEAR_LINES = 120
_ALLOCATION = re.compile(r"Tried to allocate ([\d.]{1,12} \w{1,3})\.?(?: GPU (\d{1,3}))?(.{0,200}?is free)?")


def frame(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A traceback passes through a phase of the start; the innermost frame of a phase stands last."""
    builder.facts["phase"] = (line.number, _FRAMES[match[1]])


def out_of_memory(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """An allocation on the device failed.

    Nested tracebacks, the processes above and other ranks tell the same failure again: one allocation of one rank, by
    its figures, counts once, and the rank with the most failures counts for all.
    """
    if goes_on(line):
        return
    remember_error(builder, line, line.message)
    where, advice = _PHASES.get(_phase(builder, line) or "", ("", None))
    figures = _ALLOCATION.search(line.text)
    rank = rank_label(line)
    if rank is None and figures and figures[2]:
        rank = int(figures[2])
    builder.incidents.add(
        Kind.OUT_OF_MEMORY, line, message=f"{where}: {line.message}" if where else None, advice=advice, rank=rank,
        event=figures[0] if figures else None, repeats=False, severity=Severity.WARNING if only_warns(line) else None,
    )  # fmt: skip


def _phase(builder: Builder, line: Line) -> str | None:
    if "warming up sampler" in line.text:
        return "sampler"
    if "determine_num_available_blocks" in line.text:
        return "profile"
    if re.search(r"[Cc]apture (?:cuda|device) graph failed", line.text):
        return "capture"
    number, phase = builder.facts.get("phase", (line.number - _NEAR_LINES - 1, None))
    return phase if 0 <= line.number - number <= _NEAR_LINES else None


KINDS = (
    kind(
        "phase_frame",
        tuple(f", in {name}" for name in _FRAMES),
        rf'File "[^"\n]{{1,300}}", line \d{{1,6}}, in ({"|".join(_FRAMES)})\b',
        frame,
        figure=False,
        joins=False,
    ),
    kind(
        "out_of_memory",
        (
            "out of memory",
            "OutOfMemory",
            "cudaErrorMemoryAllocation",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "CUBLAS_STATUS_ALLOC_FAILED",
            "HSA_STATUS_ERROR_OUT_OF_RESOURCES",
        ),
        r"(?:CUDA|HIP|NPU|XPU)(?: driver)? (?:error: )?out of memory|[Cc]uda failure (?:\d{1,4} )?'out of memory'"
        r"|failed with error out of memory|(?<!ray\.exceptions\.)OutOfMemoryError|cudaErrorMemoryAllocation"
        r"|CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|CUBLAS_STATUS_ALLOC_FAILED|HSA_STATUS_ERROR_OUT_OF_RESOURCES",
        out_of_memory,
        figure=False,
        joins=False,
    ),
    kind(
        "workspace",
        ("Failed to allocate memory for ", "Ran out of memory in memory space "),
        r"Failed to allocate memory for \w{1,60} with size \d|Ran out of memory in memory space \w",
        event(Kind.OUT_OF_MEMORY, key="workspace", repeats=False, cause=True),
        figure=False,
        joins=False,
    ),
    kind(
        "out_of_host_memory",
        (
            "DefaultCPUAllocator:",
            "Cannot allocate memory",
            "std::bad_alloc",
            "Not enough host memory",
            "Unable to allocate ",
        ),
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory|\[Errno 12\] Cannot allocate memory|std::bad_alloc"
        r"|Not enough host memory|MemoryError: Unable to allocate \d",
        event(
            Kind.OUT_OF_MEMORY,
            key="host",
            repeats=False,
            cause=True,
            advice="the host has too little memory, not the device",
        ),
        figure=False,
        joins=False,
    ),
    kind(
        "host_killed",
        ("ut of memory: Killed process", "oom-kill:", "OOMKilled", "oom_reaper: "),
        r"ut of memory: Killed process \d|\boom-kill:|\bOOMKilled\b|oom_reaper: reaped process",
        failure(
            Kind.KILLED,
            "the kernel killed it, as the host or the container ran out of memory: give it more, or load with less",
        ),
        figure=False,
        joins=False,
    ),
    kind(
        "disk",
        ("No space left on device", "no space left on device", "Disk quota exceeded"),
        r"\[Errno 28\] No space left on device(?![^\n]{0,60}(?:shm|psm_))|No space left on device \(os error 28\)"
        r"|: no space left on device|\[Errno 122\] Disk quota exceeded",
        failure(Kind.DISK_FULL),
        figure=False,
        joins=False,
    ),
)
