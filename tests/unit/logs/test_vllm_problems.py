"""What goes wrong in vLLM: crashes and their causes, refused configurations, timeouts, fallbacks."""

from __future__ import annotations

import pytest
from log_texts import incidents, kinds

from crossover.logs import read_log

CORE = "(EngineCore pid=104) ERROR 05-01 14:39:06 [core.py:1131] "
API = "(APIServer pid=1) "


def test_a_fatal_error_names_the_exception_below_it() -> None:
    died, memory = incidents(
        f"{CORE}EngineCore encountered a fatal error.",
        f"{CORE}Traceback (most recent call last):",
        f"{CORE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB.",
        f"{API}vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above).",
    )
    assert (died["kind"], died["count"], memory["kind"]) == ("engine_died", 1, "out_of_memory")
    assert "Root cause: torch.OutOfMemoryError: CUDA out of memory" in died["message"]


def test_what_follows_from_another_end_is_not_the_cause() -> None:
    (died, *_) = [
        found
        for found in incidents(
            "(Worker_TP1 pid=9) ERROR 05-01 14:39:01 [multiproc_executor.py:9] ConnectionResetError: [Errno 104] reset",
            "(Worker_TP0 pid=8) ERROR 05-01 14:39:02 [multiproc_executor.py:9] RuntimeError: shape '[2, 3]' is invalid",
            f"{API}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}",
        )
        if found["kind"] == "engine_died"
    ]
    assert "Root cause: RuntimeError: shape '[2, 3]' is invalid" in died["message"]


def test_a_cause_may_be_no_exception() -> None:
    found = incidents(
        "(VllmWorker rank=1 pid=99) ERROR 05-28 11:11:11 [multiproc_executor.py:377] torch.distributed."
        "DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1970, unhandled system error",
        "(VllmWorker rank=1 pid=99) ERROR 05-28 11:11:11 [multiproc_executor.py:377] Error while creating shared "
        "memory segment /dev/shm/nccl-UEAH2u (size 9637888)",
        "ERROR 05-28 11:11:12 [core.py:387] EngineCore hit an exception: Traceback (most recent call last):",
    )
    assert [one["kind"] for one in found] == ["nccl_error", "shm_too_small", "engine_died"]
    assert "Root cause: Error while creating shared memory segment" in found[2]["message"]


def test_without_an_exception_the_error_that_was_seen_is_the_cause() -> None:
    timeout = (
        "[rank0]:[E1206 18:44:12.755262105 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600099 "
        "milliseconds before timing out."
    )
    found = incidents(
        timeout, "ERROR 12-06 18:44:20 [multiproc_executor.py:9] Worker proc VllmWorker-6 died unexpectedly"
    )
    assert [one["kind"] for one in found] == ["nccl_timeout", "engine_died"]
    assert "Root cause: ALLREDUCE (SeqNum 77) timed out" in found[1]["message"]


@pytest.mark.parametrize(
    ("code", "advice"),
    [("-9", "signal 9"), ("137", "signal 9"), ("-6", "signal 6"), ("-11", "signal 11"), ("-7", "shared memory")],
)
def test_the_exit_code_says_how_a_process_ended(code: str, advice: str) -> None:
    (found,) = incidents(
        f"RuntimeError: Engine core initialization failed. Failed core proc(s): {{'EngineCore_DP0': {code}}}"
    )
    assert advice in found["advice"]


def test_the_latest_of_many_errors_is_the_cause() -> None:
    """A server that runs for days prints errors of requests; they must not fill the memory of causes."""
    lines = [f"(EngineCore pid=3) ERROR 05-01 10:00:00 [core.py:1] ValueError: request {n} failed" for n in range(3000)]
    died = [
        found
        for found in incidents(
            *lines, f"{CORE}RuntimeError: the very last", f"{CORE}EngineCore encountered a fatal error."
        )
        if found["kind"] == "engine_died"
    ]
    assert "Root cause: ValueError: request" in died[0]["message"]
    assert int(died[0]["message"].split("request ")[1].split()[0]) >= 2500


def test_a_collective_that_hangs_is_one_event_of_all_ranks_that_wait() -> None:
    lines = [
        f"[rank{rank}]:[E1206 18:44:1{rank}.75 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for "
        f"600050 milliseconds before timing out."
        for rank in (3, 0, 0)
    ]
    (found,) = incidents("(EngineCore pid=3) INFO 12-06 18:44:00 [core.py:1] x", *lines)
    assert (found["kind"], found["count"]) == ("nccl_timeout", 1)
    assert found["message"] == "ALLREDUCE (SeqNum 7) timed out after 600.05 s (limit 600 s) on rank 0, 3"


def test_a_refused_configuration_is_told_by_where_it_was_refused() -> None:
    (found,) = incidents(
        f'{API}  File "/usr/lib/python3.12/site-packages/vllm/config/speculative.py", line 500, in __post_init__',
        f"{API}    raise ValueError(",
        f"{API}ValueError: num_speculative_tokens was provided but without speculative model.",
    )
    assert found["kind"] == "config_conflict"
    assert found["message"].startswith("ValueError: num_speculative_tokens")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("World size (8) is larger than the number of available GPUs (4) in this node.", "config_conflict"),
        ("Model architectures ['FooForCausalLM'] are not supported for now.", "model_unsupported"),
        ("Invalid repository ID or local directory specified: '/models/x'.", "model_not_found"),
    ],
)
def test_a_validation_error_is_read_from_the_line_below(text: str, kind: str) -> None:
    found = kinds(
        f"{API}pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        f"{API}  Value error, {text} [type=value_error, input_value=ArgsKwargs((), {{'model': 'x'}})]",
    )
    assert found == [kind]


def test_an_error_elsewhere_is_no_refused_configuration() -> None:
    assert kinds(f"{CORE}ValueError: num_speculative_tokens was provided but without speculative model.") == []


def test_a_length_above_the_models_own() -> None:
    (found,) = incidents(
        f"{API}ValueError: User-specified max_model_len (262144) is greater than the derived max_model_len "
        "(max_position_embeddings=131072 or model_max_length=None in model's config.json)."
    )
    assert found["kind"] == "config_conflict"
    assert "131072" in found["advice"]


def test_a_port_that_the_engine_replaced_is_no_failure() -> None:
    (found,) = incidents(
        "WARNING 04-05 10:00:00 [network_utils.py:90] Address already in use. Retrying with a new port."
    )
    assert (found["kind"], found["severity"]) == ("port_in_use", "note")


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:5557')", "5557"),
        ("torch.distributed.DistNetworkError: The server socket has failed to listen. port: 29500, code: -98, name: "
         "EADDRINUSE, message: address already in use", "29500"),
    ],
)  # fmt: skip
def test_internal_ports_collide_too(text: str, port: str) -> None:
    assert f"port {port} is in use" in [found["message"] for found in incidents(f"{CORE}{text}")]


def test_preemptions_of_v0_are_counted_by_the_number_they_print() -> None:
    """Every fiftieth is printed: 1, 51, 101 mean 101 preemptions, not 3; a cut line counts as one."""
    line = (
        "WARNING 10-28 11:16:{0} scheduler.py:1483] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode "
        "because there is not enough KV cache space. total_num_cumulative_preemption={1}"
    )
    (found,) = incidents(line.format("41", 1), line.format("42", 51), line.format("43", 101))
    assert (found["kind"], found["count"]) == ("preemption", 101)


def test_a_second_server_in_the_log_may_die_after_the_first_was_stopped() -> None:
    found = kinds(
        f"{API}INFO 05-01 10:00:00 [api_server.py:9] vLLM API server version 0.30.0",
        f"{API}INFO:     Application startup complete.",
        f"{API}INFO 05-01 11:00:00 [launcher.py:9] [shutdown] API server: stopping engine client",
        f"{API}INFO 05-01 12:00:00 [api_server.py:9] vLLM API server version 0.30.0",
        f"{CORE}EngineCore encountered a fatal error.",
    )
    assert found == ["engine_died"]


def test_a_server_that_is_stopped_names_itself_and_no_port_was_taken() -> None:
    report = read_log(
        [
            "INFO:     Started server process [18725]",
            "INFO:     Application startup complete.",
            "DEBUG 07-22 14:10:03 [launcher.py:77] port 8004 is used by process psutil.Process(pid=18725, name='vllm', "
            "status='running', started='14:08:31') launched with command:",
        ]
    )
    assert report.startup.ready_seen
    assert report.incidents == []


def test_the_original_error_may_stand_in_the_line_itself() -> None:
    died, memory = incidents(
        "ERROR 03-19 10:55:18 [serving_chat.py:677] vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not "
        "running. Inspect the stacktrace to find the original error: OutOfMemoryError('CUDA out of memory.')."
    )
    assert "Root cause: OutOfMemoryError('CUDA out of memory.')" in died["message"]
    assert memory["kind"] == "out_of_memory"


@pytest.mark.parametrize(
    "text",
    [
        "WARNING 01-02 03:04:05 [arg_utils.py:1] This model does not officially support disabling chunked prefill.",
        "WARNING 01-02 03:04:05 [backends.py:1] max_autotune is disabled, but is overridden by level 3",
        "DEBUG 01-02 03:04:05 [backends.py:1] Directly load the 7-th graph for compile range (1, 8192) from inductor",
        "INFO 01-02 03:04:05 [vllm_v1_adapter.py:1] Num tokens: 512, num blocks: 32, block size: 16",
        "INFO 01-02 03:04:05 [c.py:1] HiSparse steady-state maximum concurrency for 4096 tokens per request: 9x",
    ],
)
def test_lines_that_only_look_like_a_statement(text: str) -> None:
    report = read_log([text], "vllm")
    assert (report.incidents, report.unparsed, report.startup.max_concurrency) == ([], 0, None)


def test_ray_has_no_place_for_the_workers() -> None:
    """It waits, so that the first half minute is no incident of its own; an exception ends the start."""
    waits = "INFO 03-03 03:06:{} ray_utils.py:212] Waiting for creating a placement group of specs for {} seconds. x"
    lines = [waits.format("23", 10), waits.format("53", 40)]
    assert read_log(lines[:1]).incidents == []
    (found,) = read_log(lines).incidents
    assert (found.kind, found.severity) == ("resources_missing", "error")
    assert "VLLM_HOST_IP" in (found.advice or "")


def test_ray_kills_a_worker_for_want_of_host_memory() -> None:
    lines = [
        "INFO 03-03 03:06:03 [core.py:58] Initializing a V1 LLM engine (v0.8.3) with config: model='/m'",
        "(raylet) node_manager.cc:3069: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers x",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    ]
    report = read_log(lines)
    assert [found.kind for found in report.incidents] == ["killed", "engine_died"]
    assert "memory pressure" in (report.incidents[1].advice or "")
    assert read_log([lines[0], lines[1].replace("2 Workers", "0 Workers")]).incidents == []


def test_a_message_is_without_what_a_collector_put_before_it() -> None:
    head = "2025-11-04 10:08:02.172743 master-0 >> (EngineCore_DP0 pid=7)[0;0m ERROR 11-04 02:08:02 [core.py:710] "
    (found,) = read_log([head + "CUDA error: an illegal memory access was encountered"]).incidents
    assert found.message.startswith("CUDA error:")


def test_a_start_that_went_on_was_slow_and_did_not_hang() -> None:
    hang = "(EngineCore pid=1) INFO 05-15 16:03:26 [shm.py:6] No available shared memory broadcast block found in 60 s"
    ready = "(APIServer pid=2) INFO:     Application startup complete."
    assert [(found.kind, found.severity) for found in read_log([hang]).incidents] == [("stalled", "warning")]
    assert [found.severity for found in read_log([hang, ready]).incidents] == ["note"]
    assert [found.severity for found in read_log([ready, hang]).incidents] == ["warning"]


def test_a_step_of_v0_that_never_ended() -> None:
    lines = [
        "(VllmWorkerProcess pid=7) WARNING 10-30 11:55:41 shm_broadcast.py:396] No available block found in 60 second.",
        "ERROR 10-30 11:56:40 async_llm_engine.py:876] Engine iteration timed out. This should never happen!",
        "ERROR 10-30 11:56:40 async_llm_engine.py:61] Engine background task failed",
        "ERROR 10-30 11:56:40 async_llm_engine.py:61] asyncio.exceptions.TimeoutError",
        "[rank0]:[F ProcessGroupNCCL.cpp:1169] [PG 2 Rank 0] ProcessGroupNCCL's watchdog got stuck for 600 seconds",
    ]
    incidents = read_log(lines).incidents
    assert [(found.kind, found.severity) for found in incidents] == [
        ("stalled", "warning"), ("stalled", "error"), ("engine_died", "error"), ("nccl_timeout", "error"),
    ]  # fmt: skip
    assert "Engine iteration timed out" in incidents[2].message


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12040).", "device_unusable"),
        ("RuntimeError: No CUDA GPUs are available", "device_unusable"),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "device_unusable"),
        ("ModuleNotFoundError: No module named 'flash_attn'", "environment_broken"),
        ("ImportError: libcudart.so.12: cannot open shared object file: No such file", "environment_broken"),
        ("OSError: [Errno 28] No space left on device", "disk_full"),
        ("huggingface_hub.errors.LocalEntryNotFoundError: An error happened", "model_not_found"),
        ("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients.", "start_timeout"),
        ("ValueError: Unknown quantization method: x. Must be one of ['awq']", "model_unsupported"),
        ("vllm serve: error: argument --max-model-len: invalid value: 'abc'", "invalid_argument"),
        ("!!!!!!! Segfault encountered !!!!!!!", "engine_died"),
    ],
)
def test_what_is_around_the_engine_ends_a_start(line: str, kind: str) -> None:
    head = "INFO 11-04 02:08:02 [core.py:710] Starting to load model /m"
    (found,) = read_log([head, "Traceback (most recent call last):", line]).incidents
    assert (found.kind, found.severity) == (kind, "error")


def test_a_log_that_ends_with_an_exception() -> None:
    lines = [
        "(APIServer pid=1) INFO 11-04 02:08:02 [api_server.py:1] vLLM API server version 0.12.0",
        "(APIServer pid=1) Traceback (most recent call last):",
        '(APIServer pid=1)   File "/x/vllm/transformers_utils/tokenizer.py", line 1, in get_tokenizer',
        "(APIServer pid=1) ValueError: No tokenizer file found in directory: /m",
    ]
    (found,) = read_log(lines).incidents
    assert found.kind == "engine_died"
    assert "ValueError: No tokenizer file found" in found.message
    assert read_log([*lines, *["INFO 11-04 02:08:02 [x.py:1] Loading"] * 100]).incidents == []
    assert read_log([*lines, "(APIServer pid=1) INFO:     Application startup complete."]).incidents == []


def test_caches_that_did_not_arrive() -> None:
    head = "(EngineCore_DP0 pid=7) {} 11-04 02:08:03 [scheduler.py:1500] "
    lines = [
        head.format("ERROR") + "NIXL transfer failed for request chatcmpl-1 with state ERR. Marking blocks as invalid.",
        head.format("ERROR")
        + "Failing 3 request(s) due to KV load failure (failure_policy=fail, 900 tokens affected).",
        head.format("WARNING") + "Recovered from KV load failure: 2 request(s) rescheduled (1200 tokens affected).",
        head.format("WARNING") + "Releasing expired KV blocks for request chatcmpl-2 which were retrieved by 0 decode",
        head.format("WARNING") + "Releasing expired KV blocks for request chatcmpl-3 which were retrieved by 0 decode",
    ]
    found = [(item.kind, item.severity, item.count) for item in read_log(lines).incidents]
    assert found == [("kv_transfer_failed", severity, count) for severity, count in
                     [("error", 1), ("error", 3), ("warning", 2), ("warning", 2)]]  # fmt: skip


def test_requests_that_were_refused() -> None:
    access = '(APIServer pid=1) INFO:     10.0.0.1:51522 - "POST {} HTTP/1.1" {}'
    lines = [
        access.format("/v1/chat/completions", "200 OK"),
        access.format("/v1/chat/completions", "400 Bad Request"),
        access.format("/v1/chat/completions", "400 Bad Request"),
        access.format("/v1/completions", "500 Internal Server Error"),
        access.format("/metrics", "404 Not Found"),
        "(EngineCore_DP0 pid=7) ERROR 11-04 02:08:03 [backend_xgrammar.py:150] Failed to advance FSM for request x for",
    ]
    found = [(item.kind, item.count) for item in read_log(lines).incidents]
    assert found == [("request_failed", 2), ("request_failed", 1), ("request_failed", 1)]


def test_a_request_that_failed_is_no_failed_start() -> None:
    lines = [
        "ERROR 04-08 10:43:07 [serving_chat.py:200] Traceback (most recent call last):",
        "ERROR 04-08 10:43:07 [serving_chat.py:200] ValueError: no chat template",
        'INFO:     10.0.0.1:51522 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
    ]
    (found,) = read_log(lines).incidents
    assert (found.kind, found.message) == (
        "request_failed", "requests were answered with HTTP 400: ValueError: no chat template",
    )  # fmt: skip
    assert read_log(lines[:2]).incidents == []


def test_swap_space_of_v0() -> None:
    head = "ERROR 10-04 05:57:00 async_llm_engine.py:61] "
    (found,) = read_log([head + "RuntimeError: Aborted due to the lack of CPU swap space. Please increase"]).incidents
    assert (found.kind, found.severity) == ("out_of_memory", "error")
    assert "raise swap-space" in found.advice
    (found,) = read_log([head + "ValueError: Too large swap space. 16.00 GiB out of the 15.00 GiB total"]).incidents
    assert "lower swap-space" in found.advice
