"""Some fifty causes of failed starts: each is named above the generic failure, and is nothing where it is only quoted.

Most texts are excerpts of logs that were published with questions about them, shortened; some are written after a known
message.
"""

# ruff: noqa: E501 (lines stand as the engines print them)

from __future__ import annotations

import pytest
from log_texts import CORE, DEAD

from crossover.logs import read_log

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
