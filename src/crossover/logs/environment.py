"""Starts that fail for what is around the engine: driver, device, packages, compilers, files, the Hub, other nodes."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.handlers import failure
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line
from crossover.logs.table import LineKind, kind

_DRIVER = "the driver is older than this image's CUDA: take an image for an older CUDA, or renew the driver"
_DEVICES = ("Hopper", "Blackwell", "Ampere", "SM", "sm", "NVIDIA", "GPU")
_NO_DRIVER = re.compile(r"driver on your system is too old|CUDA driver version is insufficient")


def _driver_hint(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Python warns of the driver, and what fails later only says that there is no device."""
    builder.facts["driver_hint"] = line.message


def _no_device(builder: Builder, line: Line, match: re.Match[str]) -> None:
    hint = builder.facts.get("driver_hint")
    advice = _DRIVER if hint and _NO_DRIVER.search(hint) else None
    failure(Kind.DEVICE_UNUSABLE, advice)(builder, line, match)


def _row(
    name: str, trigger: str | tuple[str, ...], pattern: str, incident: Kind, advice: str | None = None
) -> LineKind:
    return kind(name, trigger, pattern, failure(incident, advice), figure=False, joins=False)


KINDS = (
    kind(
        "driver_hint",
        "Warning: CUDA initialization: ",
        "Warning: CUDA initialization: ",
        _driver_hint,
        figure=False,
        joins=False,
    ),
    _row(
        "driver",
        (
            "driver on your system is too old",
            "unsupported display driver",
            "nvidia-container-cli:",
            "CUDA driver version is insufficient",
            "forward compatibility was attempted",
            "compiled with an unsupported toolchain",
        ),
        r"NVIDIA driver on your system is too old|unsupported display driver / cuda driver combination"
        r"|nvidia-container-cli: requirement error|CUDA driver version is insufficient"
        r"|forward compatibility was attempted on non supported HW|PTX was compiled with an unsupported toolchain",
        Kind.DEVICE_UNUSABLE,
        _DRIVER,
    ),
    kind(
        "no_device",
        (
            "No CUDA GPUs are available",
            "No HIP GPUs are available",
            "Failed to infer device type",
            "Device string must not be empty",
            "could not select device driver",
            "invalid runtime name: nvidia",
            "nvidia-container-cli: initialization error",
            "libcuda.so.1: cannot open",
            "CUDA unknown error",
            "nexpected error from cudaGetDeviceCount",
            "Found no NVIDIA driver",
            "Torch not compiled with CUDA enabled",
            "no CUDA-capable device is detected",
        ),
        r"No (?:CUDA|HIP) GPUs are available|Failed to infer device type|Device string must not be empty"
        r"|could not select device driver|invalid runtime name: nvidia|nvidia-container-cli: initialization error"
        r"|libcuda\.so\.1: cannot open|CUDA unknown error"
        r"|nexpected error from cudaGetDeviceCount"
        r"(?![^\n]{0,400}(?:not yet initialized|driver combination|forward compat))"
        r"|Found no NVIDIA driver|Torch not compiled with CUDA enabled|no CUDA-capable device is detected",
        _no_device,
        figure=False,
        joins=False,
    ),
    _row(
        "device_busy",
        ("busy or unavailable", "system not yet initialized"),
        r"CUDA-capable device\(s\) is/are busy or unavailable|Error[ :][^\n]{0,300}system not yet initialized"
        r"|error: system not yet initialized",
        Kind.DEVICE_UNUSABLE,
        "the device is there and takes no work: look for a process that holds it alone, MIG, and the fabric manager",
    ),
    _row(
        "device_number",
        ("invalid device ordinal", "device < num_gpus INTERNAL ASSERT FAILED"),
        r"invalid device ordinal|device < num_gpus INTERNAL ASSERT FAILED",
        Kind.RESOURCES_MISSING,
        "a rank asks for a device that it does not see: compare parallel sizes and CUDA_VISIBLE_DEVICES",
    ),
    _row(
        "forked",
        "Cannot re-initialize CUDA in forked subprocess",
        "Cannot re-initialize CUDA in forked subprocess",
        Kind.ENVIRONMENT_BROKEN,
        "the device was used before the workers were forked: start them anew (VLLM_WORKER_MULTIPROC_METHOD=spawn)",
    ),
    _row(
        "sockets",
        "ZMQError: Operation not supported",
        "ZMQError: Operation not supported",
        Kind.ENVIRONMENT_BROKEN,
        "the temporary folder takes no sockets: set VLLM_RPC_BASE_PATH or TMPDIR to a local file system",
    ),
    _row(
        "user",
        "getpwuid(): uid not found",
        r"getpwuid\(\): uid not found",
        Kind.ENVIRONMENT_BROKEN,
        "the container's user has no name: add it to /etc/passwd, or set USER and TORCHINDUCTOR_CACHE_DIR",
    ),
    _row(
        "other_architecture",
        ("no kernel image is available", "exec format error", "Exec format error"),
        r"no kernel image is available|[Ee]xec format error",
        Kind.DEVICE_UNUSABLE,
        "this build is not for this processor or GPU architecture: take an image that names it",
    ),
    _row(
        "capability",
        (
            "is not supported for the current GPU",
            "scheme is not supported for",
            "only supports Ampere GPUs or newer",
            "requires compute capability",
            "No operator found for `memory_efficient_attention",
            "not supported on this GPU",
            "not supported on this device",
            *(f"{words} {device}" for words in ("only supported on", "requires") for device in _DEVICES),
        ),
        r"only supported on GPUs with compute capability|not supported for the current GPU"
        r"|[Qq]uantization scheme is not supported for|only supports Ampere GPUs or newer"
        r"|Error: [^\n]{0,120}requires compute capability|No operator found for `memory_efficient_attention"
        r"|Error: [^\n]{0,160}not supported on this (?:GPU|device)"
        r"|Error: [^\n]{0,160}(?:only supported on|requires) (?:GPUs? with |NVIDIA )?"
        r"(?:Hopper|Blackwell|Ampere|[Ss][Mm]_?\d)",
        Kind.GPU_UNSUPPORTED,
    ),
    _row(
        "packages",
        (
            "No module named",
            "No package metadata was found for",
            "ImportError: ",
            "undefined symbol:",
            "cannot open shared object file",
            "' not found (required by",
            "Failed to find C compiler",
            "Could not find nvcc",
            "No such file or directory: 'ninja'",
            "No such file or directory: 'nvcc'",
            "command not found",
            "nvcc: not found",
            "python3: not found",
            "vllm: not found",
            "sglang: not found",
            "operator torchvision::",
            "'_OpNamespace' '",
            "Form data requires ",
            "executable file not found in $PATH",
            "untagged enum ModelWrapper",
            "instantiate the backend tokenizer",
        ),
        r"(?<!\w: )ModuleNotFoundError: No module named '|undefined symbol: "
        r"|operator torchvision::\w{1,20} does not exist"
        r"|'_OpNamespace' '\w{1,40}' object has no attribute|Form data requires \"python-multipart\""
        r"|PackageNotFoundError: No package metadata"
        r"|(?<![\w(])ImportError: (?:cannot import name|Please install|[Ff]ailed|[^\n]{1,80}is not installed)"
        r"|(?<!libcuda\.so\.1)(?<=[\w.]): cannot open shared object file|Failed to find C compiler|Could not find nvcc"
        r"|version `GLIBC\w{0,4}_[\d.]{1,9}' not found|No such file or directory: '(?:ninja|nvcc)'"
        r"|(?:vllm|sglang|python3?): (?:command )?not found|nvcc: not found"
        r"|exec: \"[^\"\n]{1,80}\": executable file not found"
        r"|untagged enum ModelWrapper|Couldn't instantiate the backend tokenizer",
        Kind.ENVIRONMENT_BROKEN,
    ),
    _row(
        "compiler",
        (
            "Ninja build failed",
            "ninja: build stopped",
            "nvcc fatal",
            "ptxas fatal",
            "PassManager::run failed",
            "out of resource: shared memory",
            "InductorError: ",
            "device kernel image is invalid",
            "compiler.errors.CompilationError",
            "BackendCompilerFailed: ",
            "Error building extension",
            "NVCC compilation failed",
            "NVRTC compilation failed",
        ),
        r"Ninja build failed|ninja: build stopped|nvcc fatal +:|ptxas fatal +:|PassManager::run failed"
        r"|out of resource: shared memory, Required: \d|InductorError: (?![^\n]{0,120}out of memory)\w"
        r"|device kernel image is invalid|compiler\.errors\.CompilationError"
        r"|BackendCompilerFailed: |Error building extension '|NV(?:CC|RTC) compilation failed",
        Kind.KERNEL_BUILD_FAILED,
    ),
    _row(
        "gated",
        (
            "GatedRepoError: ",
            "annot access gated repo",
            "access a gated repo",
            "Invalid user token",
            "] Permission denied: '",
            "Permission denied (os error 13)",
        ),
        r"GatedRepoError: |annot access gated repo|access a gated repo|Invalid user token"
        r"|(?:PermissionError|OSError): \[Errno 13\] Permission denied: '|Permission denied \(os error 13\)",
        Kind.ACCESS_DENIED,
    ),
    _row(
        "hub",
        (
            "RepositoryNotFoundError",
            "LocalEntryNotFoundError",
            "HfHubHTTPError",
            "OfflineModeIsEnabled",
            "huggingface.co",
            "hf.co'",
            "hf-mirror.com",
            "modelscope.cn",
            "hub.errors.NotExistError",
            "CAS service error",
        ),
        r"(?:RepositoryNotFound|LocalEntryNotFound|HfHubHTTP)Error: |OfflineModeIsEnabled: |hub\.errors\.NotExistError"
        r"|host='[\w.-]{0,60}(?:huggingface\.co|hf\.co|hf-mirror\.com|modelscope\.cn)'[^\n]{0,80}"
        r"(?:Max retries exceeded|Read timed out)|We couldn't connect to 'https://huggingface\.co'"
        r"|(?:HTTPError: |^)[45]\d\d [A-Z]\w{1,12} Error: [^\n]{0,80}(?:huggingface|hf-mirror|modelscope)"
        r"|Data processing error: CAS service error",
        Kind.MODEL_NOT_FOUND,
        "the Hub refused, or cannot be reached: check token, network and HF_HUB_OFFLINE, or give a local folder",
    ),
    _row(
        "clients",
        ("waiting for clients", "while trying to connect to (", "connectFullMesh failed"),
        r"Timed out after \d+ seconds waiting for clients"
        r"|client socket has (?:timed out|failed)[^\n]{0,60} while trying to connect to \(|Gloo connectFullMesh failed",
        Kind.START_TIMEOUT,
        "not all ranks came: check that every node has started, its address and interface, and the firewall",
    ),
    _row(
        "quantization",
        "Unknown quantization method",
        r"Unknown quantization method",
        Kind.MODEL_UNSUPPORTED,
    ),
    _row(
        "weight_names",
        ("There is no module or parameter named", "KeyError: '"),
        r"There is no module or parameter named '"
        r"|KeyError: '(?:\w{1,60}\.){1,12}(?:q?weights?|bias|qzeros|g_idx|absmax|rows"
        r"|\w{1,20}_(?:weight|scale|bias)|(?:weight|input|output)_scale\w{0,8}|scales?|\w{1,20}_correction_bias)'",
        Kind.MODEL_UNSUPPORTED,
        "this version's model does not know a tensor of the checkpoint: another version, or another quantisation of it",
    ),
    _row(
        "implementation",
        (
            "has no vLLM implementation",
            "failed to be inspected",
            "Unsupported architectures: ",
            "Unrecognized model in ",
        ),
        r"has no vLLM implementation|architectures [^\n]{0,120} failed to be inspected|Unsupported architectures: \w"
        r"|Unrecognized model in ",
        Kind.MODEL_UNSUPPORTED,
    ),
)
