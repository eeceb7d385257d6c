"""Line kinds that every engine shares: the HTTP server, CUDA and NCCL errors, downloads, crashes."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.crash import remember_error
from crossover.logs.diagnoses import evidence_kinds
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line, message_of
from crossover.logs.table import Handler, LogTable, kind


def event(incident: Kind, *, key: str = "", fatal: bool = False, repeats: bool = True) -> Handler:
    """A handler that records one incident; `fatal` if the server cannot be used after it."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        builder.incidents.add(incident, line, key=key, repeats=repeats)
        if fatal:
            builder.dead = True

    return handle


def started(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """uvicorn is up. For vLLM that is readiness, unless the port was taken; SGLang's reader looks further."""
    builder.ready(line)


def port_in_use(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Another process holds the port. The server had announced itself before it noticed."""
    port = re.search(r"\('[\d.:a-f]{0,40}', (\d{1,5})\)|port:? (\d{1,5})", line.text)
    holder = re.search(r"psutil\.Process\(pid=(\d{1,9})", line.text)
    number = (port[1] or port[2]) if port else None
    if number:
        builder.facts["port"] = number
    if holder:
        builder.facts["port_holder"] = holder[1]
    message = f"port {builder.facts.get('port', '')} is in use".replace("  ", " ")
    if holder:
        message += f" by process {holder[1]}"
    builder.incidents.add(Kind.PORT_IN_USE, line, message=message, repeats=False)
    builder.incidents.refine(Kind.PORT_IN_USE, message)
    builder.dead = True
    builder.not_ready()


def error(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Any exception: remembered, as it may be the root cause of what comes; some say what they are."""
    text = message_of(line.text[match.start(1) :])
    remember_error(builder, line, text)
    if match[1] and _CONFLICT.search(line.text, match.start()) and not _NOT_CONFLICT.search(line.text):
        builder.incidents.add(Kind.CONFIG_CONFLICT, line, message=text, key=text[:80], repeats=False)


_CONFLICT = re.compile(
    r"not (?:yet )?(?:supported|compatible|allowed|implemented) (?:with|when|for|together|if|in combination)"
    r"|cannot be (?:used|combined|enabled|set) |is not supported for this|incompatible with|mutually "
    r"exclusive"
    r"|must be divisible by|does not support|requires attention impl|requires --|can not be used|conflicts? "
    r"with"
    r"|(?:DCP|PCP|[Cc]ontext parallel\w{0,8})[^\n]{0,80}(?:not support|requires?|must|cannot)|Workspace is locked"
    r"|only supported (?:with|when|for)|must not be (?:used|set)|is unsupported with"
)
_NOT_CONFLICT = re.compile(r"Engine core init|out of memory|CUDA error|KV cache|AssertionError: res=")

_EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def corrupt(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A weight file is not what it should be: the digest of nothing means that no byte arrived."""
    empty = _EMPTY_SHA256 in line.text
    builder.incidents.add(
        Kind.DOWNLOAD_CORRUPT,
        line,
        message=line.message[:200] + (": the digest is that of an empty file" if empty else ""),
        advice="0 bytes were received (network or proxy): delete the temporary file and download again"
        if empty
        else None,
        key="digest" if "integrity" in match[0] or "digest" in match[0] else "file",
    )


KINDS = (
    kind("started", "Application startup complete", "Application startup complete", started, figure=False),
    kind(
        "container_created",
        ("ontainer created", "reated container"),
        r"[Cc]ontainer created|[Cc]reated container",
        lambda builder, line, match: builder.set_first("container_created", line.t),
        figure=False,
    ),
    kind(
        "port_in_use",
        ("ddress already in use", "[Errno 98]", "[errno 98]", "EADDRINUSE", " is used by process"),
        r"[Aa]ddress already in use|\[[Ee]rrno 98\]|EADDRINUSE|port \d{1,5} is used by process",
        port_in_use,
        figure=False,
        joins=False,
    ),
    kind(
        "oom_retry",
        ("failed with OOM", "cudaMalloc failed; retry", "soft OOM", "OOM retry"),
        r"failed with OOM|cudaMalloc failed; retry|soft OOM|OOM retry",
        event(Kind.OOM_RETRY),
        figure=False,
        joins=False,
    ),
    kind(
        "out_of_memory",
        ("out of memory", "OutOfMemoryError"),
        r"(?:CUDA|HIP|NPU|XPU) (?:error: )?out of memory|OutOfMemoryError|Out of memory: Killed",
        event(Kind.OUT_OF_MEMORY),
        figure=False,
        joins=False,
    ),
    kind(
        "slow_tokenizer",
        ("slow tokenizer", "slow version of"),
        r"[Uu]sing a slow tokenizer|slow version of this tokenizer|slow tokenizer",
        event(Kind.SLOW_TOKENIZER, repeats=False),
        figure=False,
    ),
    kind(
        "nccl_timeout",
        "collective operation timeout",
        r"caught collective operation timeout",
        event(Kind.NCCL_TIMEOUT, fatal=True),
        figure=False,
        joins=False,
    ),
    kind(
        "nccl_error",
        ("NCCL error", "ncclSystemError", "ncclInternalError", "ncclUnhandledCudaError", "ncclRemoteError"),
        r"NCCL error|nccl(?:System|Internal|UnhandledCuda|Remote)Error",
        event(Kind.NCCL_ERROR),
        figure=False,
        joins=False,
    ),
    kind(
        "shm",
        (
            "/dev/shm",
            "shared memory segment",
            "No space left on device",
            "insufficient shared memory",
            "out of shared memory",
            "unable to open shared memory",
            "unable to mmap",
        ),
        r"(?:creating|open|opening|attach\w*|extend|map\w*) [^\n]{0,60}(?:/dev/shm|shared memory segment)"
        r"|/dev/shm[^\n]{0,120}(?:No space left|too small|failed|insufficient)"
        r"|No space left on device[^\n]{0,60}(?:shm|psm_|/dev/shm)|insufficient shared memory|out of shared "
        r"memory|unable to (?:open shared memory|mmap)",
        event(Kind.SHM_TOO_SMALL, fatal=True),
        figure=False,
        joins=False,
    ),
    kind(
        "cuda_error",
        ("CUDA error", "device-side assert", "illegal memory access"),
        r"CUDA error: (?!out of memory)\w|device-side assert triggered|illegal memory access",
        event(Kind.CUDA_ERROR),
        figure=False,
        joins=False,
    ),
    kind(
        "corrupt",
        (
            "integrity check failed",
            "MetadataIncompleteBuffer",
            "file not fully covered",
            "InvalidHeaderDeserialization",
            "HeaderTooLarge",
            "onsistency check failed",
            "SafetensorError",
            "PytorchStreamReader failed",
        ),
        r"integrity check failed|MetadataIncompleteBuffer|file not fully covered|InvalidHeaderDeserialization"
        r"|HeaderTooLarge|[Cc]onsistency check failed|SafetensorError|PytorchStreamReader failed",
        corrupt,
        figure=False,
        joins=False,
    ),
    kind(
        "model_unsupported",
        (
            "are not supported for now",
            "Transformers does not recognize this architecture",
            "unrecognized arguments",
        ),
        r"[Mm]odel architectures? [^\n]{0,120} not supported for now|does not recognize this architecture"
        r"|error: unrecognized arguments",
        event(Kind.MODEL_UNSUPPORTED, fatal=True),
        figure=False,
        joins=False,
    ),
    kind(
        "model_not_found",
        (
            "is not a local folder and is not a valid model",
            "Repo id must be in the form",
            "Repository Not Found",
            "Cannot find any model weights",
            "does not appear to have a file named",
        ),
        r"is not a local folder|Repo id must be|Repository Not Found|Cannot find any model weights"
        r"|does not appear to have a file named",
        event(Kind.MODEL_NOT_FOUND, fatal=True),
        figure=False,
        joins=False,
    ),
    kind(
        "too_long",
        ("maximum context length is", "is longer than the maximum model length"),
        r"maximum context length is \d+|is longer than the maximum model length",
        event(Kind.REQUEST_TOO_LONG),
        figure=False,
        joins=False,
    ),
    kind(
        "start_timeout",
        ("Timed out waiting for", "did not become ready", "ENGINE_READY_TIMEOUT"),
        r"Timed out waiting for (?:engine|all workers|handshake|clients)|engine did not become ready"
        r"|Did not receive response from front-end",
        event(Kind.START_TIMEOUT, fatal=True),
        figure=False,
        joins=False,
    ),
    kind(
        "killed",
        ("exit code -9", "exit code: -9", "exitcode=-9", "exitcode: -9", "SIGKILL", "OOMKilled", "exit code 137"),
        r"exit ?code:?[ =](?:-9\b|137\b)|exitcode=-9|signal 9 \(SIGKILL\)|OOMKilled",
        event(Kind.KILLED, fatal=True),
        figure=False,
        joins=False,
    ),
    kind(
        "error",
        ("Error: ", "Exception: "),
        r"(?<![\w.'\"(/])((?:[a-z_]\w{0,40}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception)): \S",
        error,
        figure=False,
        joins=False,
    ),
)
TABLE = LogTable(engine=None, kinds=(*KINDS, *evidence_kinds()))
