"""Failed starts and dead servers: the cause that an engineer would name, its advice, and how often it happened.

The texts are excerpts of logs that were published with questions about them, shortened.
"""

# ruff: noqa: E501 (lines stand as the engines print them)

from __future__ import annotations

import pytest

from crossover.logs import EngineReport, read_log

CORE = "(EngineCore_DP0 pid=7) ERROR 10-25 13:12:42 [core.py:671] "
DEAD = (
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)
SGLANG_DEAD = "[2026-03-01 08:00:00] Received sigquit from a child process. It usually means the child failed."


def report_of(text: str) -> EngineReport:
    return read_log(text.strip("\n").split("\n"))


CAPTURE = """
[2025-04-10 03:10:11 TP7] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl-workspace/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py", line 450, in capture_one_batch_size
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 7 has a total capacity of 95.00 GiB of which 68.88 MiB is free. Process 281 has 94.92 GiB memory in use.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/sgl-workspace/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py", line 269, in __init__
    raise Exception(
Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 7 has a total capacity of 95.00 GiB of which 68.88 MiB is free. Process 281 has 94.92 GiB memory in use.
Possible solutions:
1. disable cuda graph by --disable-cuda-graph
[2025-04-10 03:10:11] Received sigquit from a child process. It usually means the child failed.
"""
SAMPLER = """
(VllmWorker rank=7 pid=948) ERROR 03-16 06:12:38 [multiproc_executor.py:375] WorkerProc hit an exception: %s
(VllmWorker rank=7 pid=948) ERROR 03-16 06:12:38 [multiproc_executor.py:375] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 596.00 MiB. GPU 7 has a total capacity of 31.36 GiB of which 500.00 MiB is free.
(VllmWorker rank=0 pid=672) ERROR 03-16 06:12:38 [multiproc_executor.py:375] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 596.00 MiB. GPU 0 has a total capacity of 31.36 GiB of which 492.00 MiB is free.
(VllmWorker rank=7 pid=948) ERROR 03-16 06:12:38 [multiproc_executor.py:375] RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.
(VllmWorker rank=0 pid=672) ERROR 03-16 06:12:38 [multiproc_executor.py:375]     raise RuntimeError(
(VllmWorker rank=0 pid=672) ERROR 03-16 06:12:38 [multiproc_executor.py:375] RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.
CRITICAL 03-16 06:12:39 [core.py:1] EngineCore failed to start.
"""
LOADING = """
[2025-04-19 02:11:40 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/usr/local/lib/python3.10/dist-packages/sglang/srt/model_loader/loader.py", line 376, in load_model
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 114.00 MiB. GPU 0 has a total capacity of 15.58 GiB of which 54.38 MiB is free.
"""
AUTOTUNING = f"""
{CORE}EngineCore failed to start.
{CORE}  File "/home/k/vllm/v1/worker/gpu_model_runner.py", line 4474, in profile_run
{CORE}    raise InductorError(e, currentframe()).with_traceback(
{CORE}torch._inductor.exc.InductorError: RuntimeError: Failed to run autotuning code block: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 0 has a total capacity of 15.47 GiB of which 857.31 MiB is free.
(EngineCore_DP0 pid=7)   File "/home/k/vllm/v1/worker/gpu_model_runner.py", line 4474, in profile_run
(EngineCore_DP0 pid=7) torch._inductor.exc.InductorError: RuntimeError: Failed to run autotuning code block: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 0 has a total capacity of 15.47 GiB of which 857.31 MiB is free.
{DEAD}
"""


@pytest.mark.parametrize(
    ("text", "where", "advice"),
    [
        (CAPTURE, "during graph capture: ", "capture fewer and smaller graphs"),
        (SAMPLER, "torch.OutOfMemoryError", "lower the memory fraction"),
        (LOADING, "while the model was loaded: ", "the weights do not fit"),
        (AUTOTUNING, "in the profiling run: ", "lower the token budget"),
    ],
)
def test_memory_that_ran_out_says_where_and_counts_once(text: str, where: str, advice: str) -> None:
    """Each text tells one failure two to four times: nested, printed again by a parent, or by two ranks."""
    report = report_of(text)
    (found,) = [incident for incident in report.incidents if incident.kind == "out_of_memory"]
    assert found.count == 1
    assert found.message.startswith(where)
    assert report.failure is not None
    assert report.failure.kind == "out_of_memory"
    assert advice in found.advice
    assert {"kernel_build_failed", "config_conflict"}.isdisjoint(incident.kind for incident in report.incidents)


def test_allocations_that_fail_apart_from_each_other_count_each() -> None:
    """A server that goes on: GPU 0 fails three times with different figures, GPU 1 once, and one text comes twice."""
    line = "ERROR 04-14 14:24:{:02d} [serving.py:383] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} MiB. GPU {} has a total capacity of 39.38 GiB of which 65.38 MiB is free."
    figures = [(1, "298.00", 0), (2, "298.00", 0), (3, "310.00", 0), (9, "50.00", 1), (20, "77.00", 0)]
    (found,) = read_log(line.format(*one) for one in figures).incidents
    assert (found.kind, found.count) == ("out_of_memory", 3)


FAILURES = {
    "driver": (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
        "device_unusable", "the driver is older",
    ),
    "driver, told by a warning before": (
        "/usr/local/lib64/torch/cuda/__init__.py:128: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).\n"
        "RuntimeError: Failed to infer device type",
        "device_unusable", "the driver is older",
    ),
    "no GPU in the container": ("RuntimeError: Failed to infer device type", "device_unusable", "what the container may see"),
    "hook of the container": (
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container: unknown.",
        "device_unusable", "the driver is older",
    ),
    "too few devices": ("RuntimeError: HIP error: invalid device ordinal", "resources_missing", "CUDA_VISIBLE_DEVICES"),
    "too few TPUs": (
        "ValueError: The number of required TPUs exceeds the total number of available TPUs in the placement group.",
        "resources_missing", "ray status",
    ),
    "fabric manager": (
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 802: system not yet initialized",
        "device_unusable", "fabric manager",
    ),
    "memory that a library wanted": (
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "out_of_memory", "lower the memory fraction",
    ),
    "kernel for another GPU": ("RuntimeError: FlashInfer requires GPUs with sm75 or higher", "gpu_unsupported", "another checkpoint"),
    "hub that cannot be reached": (
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='cas-bridge.xethub.hf.co', port=443): Read timed out.",
        "model_not_found", "check token, network",
    ),
    "hub that has no such model": (
        "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://www.modelscope.cn/api/v1/models/x/y/repo/files",
        "model_not_found", "check token, network",
    ),
    "node of Ray": (
        "The node with node id: 7a and address: 10.0.0.3 and node name: 10.0.0.3 has been marked dead because the detector has missed too many heartbeats from it.",
        "resources_missing", "a node of the Ray cluster was lost",
    ),
    "architecture of a kernel": ("RuntimeError: Triton Error [CUDA]: device kernel image is invalid", "kernel_build_failed", "another backend"),
    "shared memory of a GPU": (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 65536. Reducing block sizes or `num_stages` may help.",
        "kernel_build_failed", "another backend",
    ),
    "compiler": (
        "nvcc fatal   : Unsupported gpu architecture 'compute_90a'\nninja: build stopped: subcommand failed.",
        "kernel_build_failed", "architecture must fit",
    ),
    "number format": (
        "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 90. Current capability: 86.",
        "gpu_unsupported", "another checkpoint, backend or GPU",
    ),
    "number format of a scheme": (
        "RuntimeError: ('Quantization scheme is not supported for ', 'the current GPU. Min capability: 80. ', 'Current capability: 75.')",
        "gpu_unsupported", "another checkpoint",
    ),
    "bfloat16": (
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.",
        "gpu_unsupported", "number format",
    ),
    "attention backend": (
        "ValueError: Selected backend AttentionBackendEnum.FLASHINFER is not valid for this configuration. Reason: ['sink setting not supported']",
        "config_conflict", "choose another one",
    ),
    "heads and ranks": (
        "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).",
        "config_conflict", "another tensor-parallel size",
    ),
    "quantised shapes and ranks": (
        "ValueError: Weight input_size_per_partition = 14784 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.",
        "config_conflict", "another tensor-parallel size",
    ),
    "quantisation that is another": (
        "ValueError: Quantization method specified in the model config (awq) does not match the quantization method specified in the `quantization` argument (gptq_marlin).",
        "config_conflict", "change one",
    ),
    "argument": (
        "usage: vllm serve [model_tag] [options]\nvllm serve: error: argument --load-format: invalid choice: 'sharded_state' (choose from 'auto', 'pt')",
        "invalid_argument", "correct the argument",
    ),
    "argument of sglang": (
        "launch_server.py: error: argument --mm-attention-backend: invalid choice: 'triton' (choose from 'sdpa', 'fa3')",
        "invalid_argument", "correct the argument",
    ),
    "argument that is missing": ("vllm serve: error: the following arguments are required: model_tag", "invalid_argument", "correct"),
    "unknown model": (
        "ValueError: The checkpoint you are trying to load has model type `gemma3` but Transformers does not recognize this architecture.",
        "model_unsupported", "does not know the model",
    ),
    "unknown model of 0.1": ("ValueError: Unsupported architectures: Phi3ForCausalLM. Supported list: ['CohereForCausalLM']", "model_unsupported", "does not know"),
    "unknown tensor": ("[rank0]: KeyError: 'layers.61.mlp.experts.w2_weight'", "model_unsupported", "a tensor of the checkpoint"),
    "unknown module": (
        "ValueError: There is no module or parameter named 'resampler.kv_proj.weight' in MiniCPMO", "model_unsupported", "a tensor of the checkpoint",
    ),
    "gated": (
        "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama/Llama-3.2-1B-Instruct.\n401 Client Error.\nCannot access gated repo for url https://huggingface.co/x/resolve/main/config.json.",
        "access_denied", "a token with access",
    ),
    "file mode": ("PermissionError: [Errno 13] Permission denied: '/models/model-00001-of-00004.safetensors'", "access_denied", "owner and mode"),
    "no such model": ("OSError: Can't load the configuration of 'Qwen/Qwen1.5-72B-Chat-AWQ'. If you were trying to load it from", "model_not_found", "check the model path"),
    "offline": (
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/x/resolve/main/hf_quant_config.json: offline mode is enabled.",
        "model_not_found", "HF_HUB_OFFLINE",
    ),
    "pointer instead of weights": ("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", "download_corrupt", "download again"),
    "pickle that is a pointer": ("_pickle.UnpicklingError: invalid load key, 'v'.", "download_corrupt", "download again"),
    "config that is no JSON": ("OSError: It looks like the config file at '/models/x/config.json' is not a valid JSON file.", "download_corrupt", "verify digests"),
    "package": ("importlib.metadata.PackageNotFoundError: No package metadata was found for flashinfer_python", "environment_broken", "the engine's own image"),
    "package of another version": ("ImportError: cannot import name 'get_scheduler_metadata' from 'vllm.vllm_flash_attn' (/home/user/vllm/__init__.py)", "environment_broken", "a package"),
    "extension": ("ModuleNotFoundError: No module named 'vllm._C'", "environment_broken", "a package"),
    "forked": (
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method",
        "environment_broken", "VLLM_WORKER_MULTIPROC_METHOD=spawn",
    ),
    "user without a name": ("KeyError: 'getpwuid(): uid not found: 1001'", "environment_broken", "/etc/passwd"),
    "sockets": ("zmq.error.ZMQError: Operation not supported", "environment_broken", "VLLM_RPC_BASE_PATH"),
    "shared memory of the host": (
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.cpp:81, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\nError while creating shared memory segment /dev/shm/nccl-vzIpS6 (size 9637888)",
        "shm_too_small", "--shm-size",
    ),
    "host memory": (
        "ValueError: Not enough host memory available. Requesting 96.00 GB but only have 60.12 GB free. Please reduce the size of the hierarchical cache.",
        "out_of_memory", "the host has too little memory",
    ),
    "killed for memory": (
        "[Sun Mar 24 23:54:53 2024] Memory cgroup out of memory: Killed process 6154 (VLLM::EngineCor) total-vm:18109076kB, anon-rss:14095848kB",
        "killed", "the host or the container ran out of memory",
    ),
    "other ranks": (
        "[E329 06:28:12.542939754 socket.cpp:1023] [c10d] The client socket has timed out after 600000ms while trying to connect to (10.0.0.33, 54485).",
        "start_timeout", "every node has started",
    ),
    "another rank ended": (
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [172.31.18.145]:45492",
        "nccl_error", "another rank ended first",
    ),
    "same GPU twice": ("RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)", "nccl_error", "first error of any rank"),
    "hardware": (
        "[rank1]:[E129 08:52:51.685329145 ProcessGroupNCCL.cpp:1595] [PG ID 2 PG GUID 3 Rank 1] Process group watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered",
        "cuda_error", "take it out of service",
    ),
    "kernel": ("RuntimeError: CUDA error: an illegal memory access was encountered", "cuda_error", "blocking launches"),
    "port": ("OSError: [Errno 98] Address already in use", "port_in_use", "choose another port"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_the_cause_is_named_above_the_generic_failure(name: str) -> None:
    """The same text, printed by the core and again as its last words, is one incident, the failure, and the advice."""
    text, kind, advice = FAILURES[name]
    last_words = text.split("\n")[-1]
    lines = [CORE + line for line in text.split("\n")] + [f"(EngineCore_DP0 pid=7) {last_words}", DEAD]
    report = read_log(["INFO 10-25 13:12:01 [api_server.py:1] vLLM API server version 0.11.0", *lines])
    found = {incident.kind: incident for incident in report.incidents}
    assert kind in found
    assert found[kind].count == 1
    assert advice in found[kind].advice
    assert report.failure is not None
    assert report.failure.kind == kind
    assert set(found) - {kind} <= {"engine_died", "nccl_error"}  # the NCCL error is what the shared memory led to


@pytest.mark.parametrize("name", FAILURES)
def test_the_same_text_quoted_or_configured_is_no_incident(name: str) -> None:
    text = FAILURES[name][0].replace("\n", "\\n")
    for line in (
        f"INFO 04-20 17:17:47 [logger.py:39] Received request chatcmpl-2f95: prompt: '<|User|>Why? {text}', params: SamplingParams(n=1)",
        f"(APIServer pid=1) INFO 05-21 00:19:06 [logger.py:92] Generated response chatcmpl-9731 (streaming delta): output: '{text}', finish_reason: None",
        f"[2025-07-16 14:43:09] Receive: obj=GenerateReqInput(rid='18', text='{text}')",
        f"[2025-07-16 14:43:10] Finish: obj=GenerateReqInput(rid='18'), out={{'text': '{text}'}}",
        f'{{"event": "request.received", "rid": "18", "obj": {{"text": "{text}"}}}}',
        f"(APIServer pid=1) INFO 04-20 17:17:47 [utils.py:253] non-default args: {{'model': '{text}'}}",
        f"[2025-07-16 14:43:09] server_args=ServerArgs(model_path='{text}')",
    ):
        report = read_log([line])
        assert [incident.kind for incident in report.incidents] == [], line
        assert report.failure is None


@pytest.mark.parametrize(
    "line",
    [
        "[2026-08-01 21:40:38] Failed to load generation config for x/y: x/y does not appear to have a file named generation_config.json. Checkout 'https://huggingface.co/x/y/tree/main' for available files.. Proceeding without generation config.",
        "Skipping import of cpp extensions: /usr/local/lib/python3.10/dist-packages/torchao/_C.abi3.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocation",
        "[2025-04-10 03:10:11] Ignore import error when loading sglang.srt.models.x. No module named 'x'",
        "WARNING 12-30 17:06:52 _custom_ops.py:19] Failed to import from vllm._C with ImportError('/vllm/_C.abi3.so: undefined symbol: cuTensorMapEncodeTiled')",
        "/usr/lib/python3.10/multiprocessing/resource_tracker.py:104: UserWarning: resource_tracker: process died unexpectedly, relaunching.  Some resources might leak.",
        "[rank0]:W0801 17:49:10.593000 17574 torch/_inductor/utils.py:1731] Not enough SMs to use max_autotune_gemm mode",
        'INFO:     10.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK',
        "INFO 08-01 17:49:10 [async_llm.py:360] Aborted request chatcmpl-1.",
        "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces).",
    ],
)
def test_what_the_engine_goes_on_after_is_no_failure(line: str) -> None:
    ready = "INFO:     Application startup complete."
    report = read_log(["INFO 10-25 13:12:01 [api_server.py:1] vLLM API server version 0.11.0", line, ready])
    assert [(incident.kind, incident.severity) for incident in report.incidents] == []
    assert report.startup.ready_seen


def test_a_request_that_a_running_server_refuses_is_no_conflict_of_options() -> None:
    ready = "(APIServer pid=1) INFO:     Application startup complete."
    lines = [
        "(APIServer pid=1) ERROR 10-25 13:12:42 [serving_chat.py:200] ValueError: guided_json and response_format are mutually exclusive",
        '(APIServer pid=1) INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
    ]
    found = read_log([ready, *lines])
    assert [incident.kind for incident in found.incidents] == ["request_failed"]
    assert found.failure is None
    first = "ValueError: Workspace is locked but allocation requires 12.00 MB, current size is 0.00 MB."
    assert [incident.kind for incident in read_log([ready, CORE + first]).incidents] == ["config_conflict"]


def test_a_warning_of_the_engine_is_a_warning() -> None:
    head = "WARNING 12-18 22:57:54 [model_runner_base.py:143] "
    (found,) = read_log(
        [head + "Failed to pickle inputs of failed execution: CUDA error: an illegal memory access was encountered"]
    ).incidents
    assert (found.kind, found.severity) == ("cuda_error", "warning")


def test_only_the_last_start_of_a_log_counts_as_failed() -> None:
    begin = "(APIServer pid=1) INFO 10-25 13:12:01 [api_server.py:1] vLLM API server version 0.11.0"
    died = [begin, f"{CORE}ValueError: No available memory for the cache blocks.", DEAD]
    ready = [begin.replace("13:12", "13:30"), "(APIServer pid=1) INFO:     Application startup complete."]
    assert read_log([*died, *ready]).failure is None
    failure = read_log([*ready, *died]).failure
    assert failure is not None
    assert failure.kind == "kv_too_small"


def test_an_exception_is_the_failure_where_it_has_no_kind_of_its_own() -> None:
    report = report_of(f"""
{CORE}EngineCore failed to start.
{CORE}Traceback (most recent call last):
{CORE}    raise TypeError(
{CORE}TypeError: Received a CachedWhisperTokenizerFast for argument tokenizer, but a WhisperTokenizer was expected.
{DEAD}
""")
    assert report.failure is not None
    assert report.failure.kind == "engine_died"
    assert report.failure.message.startswith("TypeError: Received a CachedWhisperTokenizerFast")
    assert report.incidents[0].message.startswith("EngineCore failed to start. Root cause: TypeError: Received")


def test_source_lines_of_a_traceback_are_no_statements() -> None:
    """The message and the exit code stand in the exception, not in the line that raises it."""
    (died,) = report_of("""
(APIServer pid=1)   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/utils.py", line 785, in wait_for_engine_startup
(APIServer pid=1)     raise RuntimeError("Engine core initialization failed. "
(APIServer pid=1)                        "See root cause above. "
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -9}
""").incidents
    assert died.message.startswith("RuntimeError: Engine core initialization failed")
    assert "signal 9" in died.advice


def test_a_process_ended_from_outside_leaves_only_its_tracker() -> None:
    begin = (
        "(EngineCore pid=9) INFO 08-01 17:36:26 [core.py:58] Initializing a V1 LLM engine (v0.25.1) with config: model='/m'\n"
        "(EngineCore pid=9) INFO 08-01 17:36:27 [gpu_model_runner.py:1] Starting to load model /m..."
    )
    left = "/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 2 leaked shared_memory objects to clean up at shutdown"
    (found,) = read_log([begin, left]).incidents
    assert (found.kind, found.severity) == ("killed", "error")
    assert read_log([begin]).incidents == []
    assert read_log([begin, "INFO:     Application startup complete.", left]).incidents == []


def test_an_excerpt_that_ends_with_the_exception_of_a_process() -> None:
    """Without the log's begin an exception may be a request's; one that goes through the process's first frame is not."""
    excerpt = [
        "Traceback (most recent call last):",
        '  File "/app/serve.py", line 9, in {}',
        "    run()",
        "RuntimeError: Expected size for first two dimensions of batch2 tensor to be: [7, 256] but got: [7, 1024].",
    ]
    ended = read_log([line.format("<module>") for line in excerpt])
    assert ended.failure is not None
    assert ended.failure.message.startswith("RuntimeError: Expected size")
    assert read_log([line.format("generate") for line in excerpt]).failure is None


def test_stamps_of_two_clocks_are_one_burst() -> None:
    """Ray's line has a year, the watchdog's has none: the same collective, told three times within a second."""
    work = "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=31, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600031 milliseconds before timing out."
    lines = [
        f"(RayWorkerWrapper pid=270, ip=10.0.0.1) [rank3]:[E219 08:58:32.606233339 ProcessGroupNCCL.cpp:616] {work}",
        f"(RayWorkerWrapper pid=270, ip=10.0.0.1) [2025-02-19 08:58:32,022 E 270 270373] logging.cc:108: Unhandled exception: what(): {work}",
    ]
    (found,) = read_log(lines).incidents
    assert (found.kind, found.count) == ("nccl_timeout", 1)


@pytest.mark.parametrize(
    ("lines", "engine"),
    [
        ((f"{CORE}Traceback (most recent call last):", f"{CORE}AssertionError"), "vllm"),
        (('  File "/opt/sglang/srt/managers/scheduler.py", line 3, in f', "AssertionError"), "sglang"),
        (("INFO 02-10 21:15:21 __init__.py:190] Automatically detected platform cuda.",
          "[2025-02-10 21:15:28] server_args=ServerArgs(model_path='/model')", '  File "/opt/sglang/srt/x.py", line 1, in f',
          "AssertionError"), "sglang"),
    ],
)  # fmt: skip
def test_an_exception_alone_does_not_tell_whose_log_it_is(lines: tuple[str, ...], engine: str) -> None:
    assert read_log(lines).engine == engine


def test_an_exception_without_a_text_tells_where_it_was_raised() -> None:
    report = report_of(f"""
{CORE}EngineCore failed to start.
{CORE}  File "/x/vllm/model_executor/models/llama.py", line 212, in <lambda>
{CORE}  File "/x/vllm/model_executor/models/llama.py", line 107, in __init__
{CORE}    raise NotImplementedError
{CORE}NotImplementedError
{DEAD}
""")
    assert report.failure is not None
    assert report.failure.message == "NotImplementedError (llama.py:107, in __init__)"


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("Child process unexpectedly failed with an exit code 139. pid=1896790", "native code (signal 11)"),
        ("Child process unexpectedly failed with an exit code 135. pid=430190", "bus error (signal 7)"),
        ("Scheduler or DataParallelController 4121 terminated with -6", "signal 6"),
        ("Scheduler or DataParallelController 848532 terminated with 255", "look at the root cause"),
    ],
)
def test_the_exit_code_speaks_where_nothing_else_does(line: str, advice: str) -> None:
    (died,) = read_log([f"[2025-05-28 11:11:11] {line}"], "sglang").incidents
    assert (died.kind, advice in died.advice) == ("engine_died", True)


def test_what_stands_in_a_traceback_has_the_time_of_its_begin() -> None:
    report = report_of(CAPTURE)
    assert {incident.kind: incident.t for incident in report.incidents} == dict.fromkeys(
        ("scheduler_exception", "engine_died", "out_of_memory"), "2025-04-10T03:10:11"
    )


def test_a_pipe_that_ended_means_a_process_that_ended_without_a_word() -> None:
    report = report_of("""
[2025-07-08 02:55:20] DataParallelController hit an exception: Traceback (most recent call last):
  File "/usr/lib/python3.10/multiprocessing/connection.py", line 383, in _recv
    raise EOFError
EOFError
""")
    died = report.incidents[0]
    assert "Root cause: EOFError (connection.py:383, in _recv)" in died.message
    assert "ended without a word" in died.advice


def test_messages_are_without_bars_and_escapes_of_syslog() -> None:
    bar = "  9%|▊         | 2/23 [00:08<01:20,  3.82s/it]"
    (found,) = read_log([bar + "RuntimeError: CUDA error: an illegal memory access was encountered"]).incidents
    assert found.message == "RuntimeError: CUDA error: an illegal memory access was encountered"
    core = "#033[1;36m(EngineCore pid=14)#033[0;0m ERROR 10-25 13:12:42 [core.py:671] "
    (found,) = read_log([core + "RuntimeError: CUDA error: an illegal memory access was encountered"]).incidents
    assert (found.t, found.message[:24]) == ("--10-25T13:12:42", "RuntimeError: CUDA error")


def test_a_step_that_took_too_long_is_the_failure_and_not_its_consequence() -> None:
    report = report_of(f"""
{CORE}TimeoutError
{CORE}TimeoutError: RPC call to execute_model timed out.
(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
""")
    assert report.failure is not None
    assert (report.failure.kind, report.failure.severity) == ("stalled", "error")
    assert "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS" in report.failure.advice


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("assert all(vocab_sizes[0] == vocab_size for vocab_size in vocab_sizes)", "share their vocabulary"),
        ("assert self.total_num_kv_heads % tp_size == 0", "another tensor-parallel size"),
        ("assert param_data.shape == loaded_weight.shape", "another shape"),
    ],
)
def test_what_was_asserted_says_what_does_not_fit(source: str, advice: str) -> None:
    head = "(VllmWorkerProcess pid=770) ERROR 10-16 16:01:23 [multiproc_worker_utils.py:238] "
    (found,) = read_log(
        [
            head + '  File "/x/vllm/spec_decode/spec_decode_worker.py", line 1258, in _vocab_size',
            head + "    " + source,
            head + "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
            head + "AssertionError",
        ]
    ).incidents
    assert found.kind == ("model_unsupported" if "loaded_weight" in source else "config_conflict")
    assert found.message == f"AssertionError (spec_decode_worker.py:1258, in _vocab_size: {source})"
    assert advice in found.advice


def test_errors_of_requests_before_the_end_are_not_its_cause() -> None:
    """A client that leaves, and an error long ago, stand above the one that ended the server."""
    step = "[2026-01-12 21:0{}:00 TP0] Decode batch, #running-req: 6, #token: 81316, token usage: 0.93, cuda graph: False, gen throughput (token/s): 26.0, #queue-req: 9"
    lines = [
        "[2026-01-12 20:59:00] KeyError: 'an old one, which the server outlived'",
        *[step.format(n % 5) for n in range(600)],
        "[2026-01-12 21:05:00] Task exception was never retrieved",
        "ValueError: Request is disconnected from the client side (type 1). Abort request obj.rid='f2ea'",
        step.format(6),
        "[2026-01-12 21:07:00 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        "IndexError: list index out of range",
        SGLANG_DEAD,
    ]
    report = read_log(lines)
    assert report.failure is not None
    assert report.failure.message == "IndexError: list index out of range"


def test_requests_that_go_on_without_a_client_count_once_each() -> None:
    line = "[2026-08-25 10:00:00] Received output for rid='{}' but the state was deleted in TokenizerManager."
    (found,) = read_log([line.format(rid) for rid in ("a", "b", "a", "a", "b")]).incidents
    assert (found.kind, found.severity, found.count) == ("request_failed", "warning", 2)
