"""Line kinds that every engine shares: the HTTP server, CUDA and NCCL errors, downloads, crashes."""

from __future__ import annotations

import re

from crossover.logs import environment, exhaustion, ray, refusals
from crossover.logs.builder import Builder
from crossover.logs.diagnoses import evidence_kinds
from crossover.logs.handlers import event, failure
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.table import LogTable, kind


def started(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """uvicorn is up. For vLLM that is readiness, unless the port was taken; SGLang's reader looks further."""
    builder.ready(line)


def port_in_use(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Another process holds the port. The server had announced itself before it noticed."""
    if _RETRIES.search(line.text):
        builder.incidents.add(
            Kind.PORT_IN_USE,
            line,
            severity=Severity.NOTE,
            advice="the engine took another port by itself",
            key="retried",
        )
        return
    if "used by process" in match[0] and not builder.facts.get("port_taken"):
        return  # a server that is stopped names itself so
    builder.facts["port_taken"] = True
    port = re.search(
        r"\('[\d.:a-f]{0,40}', (\d{1,5})\)|[Pp]ort:? (\d{1,5})|addr='[^'\n]{0,80}:(\d{1,5})'|:(\d{1,5}) failed: port",
        line.text,
    )
    holder = re.search(r"psutil\.Process\(pid=(\d{1,9})", line.text)
    number = next(filter(None, port.groups())) if port else None
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


_RETRIES = re.compile(r"[Rr]etrying with a new port|trying port \d")


def nccl_timeout(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A collective operation did not end in time. Every rank that waits says so, some ranks twice: one event."""
    found = _COLLECTIVE.search(line.text, match.start())
    rank = re.search(r"\[(?:PG [^\]\n]{0,60}? )?Rank (\d{1,5})\]", line.text)
    ranks: list[int] = builder.facts.setdefault("nccl_ranks", [])
    before = len(builder.incidents)
    builder.incidents.add(Kind.NCCL_TIMEOUT, line, repeats=False)
    if len(builder.incidents) > before:
        ranks.clear()
    if rank and int(rank[1]) not in ranks:
        ranks.append(int(rank[1]))
    if found:
        where = f" on rank {', '.join(map(str, sorted(ranks)))}" if ranks else ""
        builder.incidents.refine(
            Kind.NCCL_TIMEOUT,
            f"{found[2]} (SeqNum {found[1]}) timed out after {int(found[4]) / 1000:g} s "
            f"(limit {int(found[3]) / 1000:g} s){where}",
        )
    builder.dead = True


_COLLECTIVE = re.compile(
    r"SeqNum=(\d{1,18}), OpType=(\w{1,40}),[^\n]{0,200}?Timeout\(ms\)=(\d{1,12})\) ran for (\d{1,12}) milliseconds"
)


_NEAR_LINES = 40


def refused_request(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The access log has an answer other than 200 to a request for text."""
    message = f"requests were answered with HTTP {match[1]}"
    errors = builder.facts.get("errors")
    if errors and line.number - errors[-1][0] < _NEAR_LINES:
        message += f": {errors[-1][2][:200]}"
    builder.incidents.add(Kind.REQUEST_FAILED, line, message=message, key=match[1])


def orphans(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """SGLang goes on with a request whose client has left: each of its steps says so."""
    builder.incidents.add(
        Kind.REQUEST_FAILED,
        line,
        message="requests go on though their clients have left",
        advice="they take part in every batch and in its rates until they end: abort them, or start the server again",
        key="orphans",
        event=match[1],
    )


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
        event=line.text[match.start() :],
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
        (
            "ddress already in use",
            "[Errno 98]",
            "[errno 98]",
            "EADDRINUSE",
            " is used by process",
            "port is already allocated",
            " is already in use",
        ),
        r"[Aa]ddress already in use|\[[Ee]rrno 98\]|EADDRINUSE|port \d{1,5} is used by process"
        r"|port is already allocated|[Pp]ort \d{1,5} is already in use(?!, trying)",
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
        nccl_timeout,
        figure=False,
        joins=False,
    ),
    kind(
        "nccl_stuck",
        ("watchdog got stuck for", "Heartbeat monitor timed out"),
        r"watchdog got stuck for \d+ seconds|Heartbeat monitor timed out",
        event(Kind.NCCL_TIMEOUT, key="watchdog", repeats=False, fatal=True),
        figure=False,
        joins=False,
    ),
    kind(
        "nccl_error",
        (
            "NCCL error",
            "ncclSystemError",
            "ncclInternalError",
            "ncclUnhandledCudaError",
            "ncclRemoteError",
            "ncclInvalidUsage",
        ),
        r"(?<!f\")NCCL error|nccl(?:System|Internal|UnhandledCuda|Remote)Error|ncclInvalidUsage",
        event(Kind.NCCL_ERROR, repeats=False),
        figure=False,
        joins=False,
    ),
    kind(
        "peer",
        ("Connection closed by peer [", "Connection reset by peer", "connection closed by peer ["),
        r"gloo/transport/tcp/pair\.cc:\d{1,5}\] [^\n]{0,80}[Cc]onnection (?:closed|reset) by peer",
        event(
            Kind.NCCL_ERROR,
            key="peer",
            repeats=False,
            advice="another rank ended first: look for its error above, and in the logs of the other nodes",
        ),
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
        r"memory|unable to (?:open shared memory|mmap)(?![^\n]{0,200}Permission denied)",
        event(Kind.SHM_TOO_SMALL, fatal=True, repeats=False, cause=True),
        figure=False,
        joins=False,
    ),
    kind(
        "hardware",
        ("uncorrectable ECC error", "fallen off the bus", "NVRM: Xid"),
        r"uncorrectable ECC error|fallen off the bus|NVRM: Xid",
        failure(Kind.CUDA_ERROR, "the device itself failed: look at the kernel log (Xid) and take it out of service"),
        figure=False,
        joins=False,
    ),
    kind(
        "cuda_error",
        ("CUDA error", "HIP error", "device-side assert", "illegal memory access"),
        r"(?:CUDA|HIP) error: (?!out of memory|no kernel image|invalid device ordinal|uncorrectable ECC|system not yet"
        r"|CUDA-capable|the provided PTX|CUBLAS_STATUS_ALLOC_FAILED)\w|device-side assert triggered"
        r"|illegal memory access",
        event(Kind.CUDA_ERROR, repeats=False),
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
            "while deserializing header",
            "PytorchStreamReader failed",
            "invalid load key, ",
            "Unable to load weights from pytorch checkpoint",
            "is not a valid JSON file",
        ),
        r"integrity check failed|MetadataIncompleteBuffer|file not fully covered|InvalidHeaderDeserialization"
        r"|HeaderTooLarge|[Cc]onsistency check failed|SafetensorError|while deserializing header"
        r"|PytorchStreamReader failed|UnpicklingError: invalid load key, "
        r"|Unable to load weights from pytorch checkpoint|config file at '[^'\n]{1,200}' is not a valid JSON file",
        corrupt,
        figure=False,
        joins=False,
    ),
    kind(
        "model_unsupported",
        (
            "are not supported for now",
            "Transformers does not recognize this architecture",
            "requires you to execute the configuration file in that repo",
        ),
        r"[Mm]odel architectures? [^\n]{0,120} not supported for now|does not recognize this architecture"
        r"|requires you to execute the configuration file in that repo",
        failure(Kind.MODEL_UNSUPPORTED),
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
            "Invalid repository ID or local directory",
            "Can't load the configuration of",
            "Can't load tokenizer for",
        ),
        r"is not a local folder|Repo id must be|Repository Not Found|Cannot find any model weights"
        r"|does not appear to have a file named(?![^\n]{0,300}Proceeding without)"
        r"|Invalid repository ID or local"
        r"|Can't load (?:the configuration of|tokenizer for)",
        failure(Kind.MODEL_NOT_FOUND),
        figure=False,
        joins=False,
    ),
    kind(
        "too_long",
        (
            "maximum context length is",
            "is longer than the maximum model length",
            "is too long and exceeds the capacity of block",
        ),
        r"maximum context length is \d+|is longer than the maximum model length"
        r"|too long and exceeds the capacity of block",
        event(Kind.REQUEST_TOO_LONG),
        figure=False,
        joins=False,
    ),
    kind(
        "refused_request",
        (" Bad Request", " Internal Server Error", " Unprocessable ", " Too Many Requests", " Service Unavailable"),
        r'"POST /(?:v1/|generate)\S{0,60} HTTP/1\.1" (4\d\d|5\d\d)',
        refused_request,
        figure=False,
        joins=False,
    ),
    kind(
        "orphans",
        "but the state was deleted in TokenizerManager",
        r"Received output for rid='?([^'\s]{1,80}?)'? but the state was deleted",
        orphans,
        figure=False,
        joins=False,
    ),
    kind(
        "start_timeout",
        ("Timed out waiting for", "did not become ready", "ENGINE_READY_TIMEOUT"),
        r"Timed out waiting for (?:engine|all workers|handshake|clients)|engine did not become ready"
        r"|Did not receive response from front-end",
        event(Kind.START_TIMEOUT, fatal=True, repeats=False),
        figure=False,
        joins=False,
    ),
    kind(
        "step_timeout",
        ("RPC call to ", "RayChannelTimeoutError: "),
        r"RPC call to \w{1,60} timed out|RayChannelTimeoutError: ",
        failure(
            Kind.STALLED,
            "a step did not end in time: look at what the workers did last (compiling, a collective, a dead rank); a "
            "step that is rightly so long needs a longer limit (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS, "
            "RAY_CGRAPH_get_timeout)",
            key="step",
        ),
        figure=False,
        joins=False,
    ),
    kind(
        "killed",
        ("exit code -9", "exit code: -9", "exitcode=-9", "exitcode: -9", "SIGKILL", "exit code 137"),
        r"exit ?code:?[ =](?:-9\b|137\b)|exitcode=-9|signal 9 \(SIGKILL\)",
        event(Kind.KILLED, fatal=True, repeats=False),
        figure=False,
        joins=False,
    ),
)
TABLE = LogTable(
    engine=None,
    kinds=(*KINDS, *exhaustion.KINDS, *environment.KINDS, *ray.KINDS, *refusals.KINDS, *evidence_kinds()),
)
