"""Starts that fail for what is around the engine: driver, device, packages, disk, the Hub."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.crash import remember_error
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.table import Handler, LineKind, kind


def _fatal(incident: Kind, advice: str | None) -> Handler:
    """A handler for what ends a start; the processes repeat it in words of their own, so that it counts once."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        if line.level in ("WARNING", "WARN", "INFO", "DEBUG") or _HARMLESS.search(line.text):
            return
        builder.incidents.add(incident, line, advice=advice, repeats=False)
        remember_error(builder, line, line.message)
        builder.dead = True

    return handle


# Imports that are tried and done without: said by Python's warnings, and by SGLang, whose lines have no level.
_HARMLESS = re.compile(
    r"Warning: |\bIgnore |ignoring|ignored? (?:this|import)|import (?:failed|error)\b|[Ff]alling back"
)


def _row(
    name: str, trigger: str | tuple[str, ...], pattern: str, incident: Kind, advice: str | None = None
) -> LineKind:
    return kind(name, trigger, pattern, _fatal(incident, advice), figure=False, joins=False)


KINDS = (
    _row(
        "driver",
        ("driver on your system is too old", "unsupported display driver", "nvidia-container-cli:"),
        r"NVIDIA driver on your system is too old|unsupported display driver / cuda driver combination"
        r"|nvidia-container-cli: requirement error",
        Kind.DEVICE_UNUSABLE,
        "the driver is older than this image's CUDA: take an image for an older CUDA, or renew the driver",
    ),
    _row(
        "no_device",
        (
            "No CUDA GPUs are available",
            "Failed to infer device type",
            "could not select device driver",
            "libcuda.so.1: cannot open",
            "CUDA unknown error",
            "nexpected error from cudaGetDeviceCount",
        ),
        r"No CUDA GPUs are available|Failed to infer device type|could not select device driver"
        r"|libcuda\.so\.1: cannot open|CUDA unknown error|nexpected error from cudaGetDeviceCount",
        Kind.DEVICE_UNUSABLE,
    ),
    _row(
        "other_architecture",
        ("no kernel image is available", "exec format error"),
        r"no kernel image is available|exec format error",
        Kind.DEVICE_UNUSABLE,
        "this build is not for this processor or GPU architecture: take an image that names it",
    ),
    _row(
        "packages",
        (
            "No module named",
            "undefined symbol:",
            "cannot open shared object file",
            "Failed to find C compiler",
            "Could not find nvcc",
            "command not found",
        ),
        r"(?<!\w: )ModuleNotFoundError: No module named '(?!vllm\.|sglang\.)|undefined symbol: "
        r"|lib(?!cuda\.so)[\w.+-]{1,60}: cannot open shared object file|Failed to find C compiler|Could not find nvcc"
        r"|(?:vllm|sglang|python3?): command not found",
        Kind.ENVIRONMENT_BROKEN,
    ),
    _row(
        "disk",
        "[Errno 28] No space left on device",
        r"(?:OSError|IOError|error)\S*: \[Errno 28\] No space left on device(?![^\n]{0,60}(?:shm|psm_))",
        Kind.DISK_FULL,
    ),
    _row(
        "hub",
        (
            "GatedRepoError",
            "RepositoryNotFoundError",
            "LocalEntryNotFoundError",
            "HfHubHTTPError",
            "OfflineModeIsEnabled",
            "host='huggingface.co'",
            "We couldn't connect to 'https://huggingface.co'",
        ),
        r"(?:GatedRepo|RepositoryNotFound|LocalEntryNotFound|HfHubHTTP)Error: |OfflineModeIsEnabled: "
        r"|host='huggingface\.co'[^\n]{0,80}Max retries exceeded|We couldn't connect to 'https://huggingface\.co'",
        Kind.MODEL_NOT_FOUND,
        "the Hub refused, or cannot be reached: check token, network and HF_HUB_OFFLINE, or give a local folder",
    ),
    _row(
        "clients",
        "waiting for clients",
        r"Timed out after \d+ seconds waiting for clients",
        Kind.START_TIMEOUT,
        "not all ranks came: check that every node has started, its address, and the firewall",
    ),
    _row(
        "quantization",
        "Unknown quantization method",
        r"Unknown quantization method",
        Kind.MODEL_UNSUPPORTED,
    ),
)
