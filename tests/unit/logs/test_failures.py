"""Failed starts and dead servers: the cause that an engineer would name, its advice, and how often it happened.

Most texts are excerpts of logs that were published with questions about them, shortened; some are written after a known
message.
"""

# ruff: noqa: E501 (lines stand as the engines print them)

from __future__ import annotations

import pytest
from log_texts import CORE, DEAD

from crossover.logs import EngineReport, read_log

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
