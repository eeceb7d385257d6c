# ruff: noqa: E501  (log lines are as long as they are)
"""The reader as a whole: versions' wordings, several starts, crashes, interleaving, fuzzing."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossover.cli import main
from crossover.errors import InputError
from crossover.logs import LogReader, read_log

CASES = Path(__file__).parents[2] / "cases"
DP = "(EngineCore_DP{0} pid={0}9) INFO 07-01 00:00:0{0} [kv_cache_utils.py:1] "


def start_up(lines: list[str]) -> dict[str, object]:
    return {name: value for name, value in read_log(lines).to_dict()["startup"].items() if value not in (None, False)}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("INFO 01-01 00:00:00 model_runner.py:732] Loading model weights took 14.9888 GB", {"model_load_gib": 14.9888}),
        ("Model loading took 14.99 GB and 3.25 seconds", {"model_load_gib": 14.99, "model_load_s": 3.25}),
        ("Model loading took 194.54 GiB memory and 163.812345 seconds", {"model_load_gib": 194.54, "model_load_s": 163.812345}),
        ("Graph capturing finished in 22 secs.", {"graph_capture_s": 22.0}),
        ("Graph capturing finished in 88 secs, took 5.13 GiB", {"graph_capture_s": 88.0, "graph_capture_gib": 5.13}),
        ("init engine (profile, create kv cache, warmup model) took 409.61 s (compilation: 30.5 s)", {"engine_init_s": 409.61, "compile_s": 30.5}),
        ("torch.compile took 45.15 s in total", {"compile_s": 45.15}),
        ("Initial profiling/warmup run took 50.34 s", {"kernel_warmup_s": 50.34}),
        ("Using max model len 1000000", {"context_length": 1000000}),
        ("Chunked prefill is enabled with max_num_batched_tokens=32768.", {"chunked_prefill_tokens": 32768}),
        ("Maximum concurrency for 1,000,000 tokens per request: 2.69x", {"max_concurrency": 2.69, "max_concurrency_at_tokens": 1000000}),
        ("# GPU blocks: 7449, # CPU blocks: 2048", {"kv_cache_tokens": 7449 * 16, "kv_cache_tokens_total": 7449 * 16}),
        ("Capturing CUDA graphs (decode, FULL): 100%|██| 35/35 [00:00<00:00, 71.38it/s]", {"graph_count": 35}),
        ("Profiling CUDA graph memory: PIECEWISE=51 (largest=512), FULL=35 (largest=256)", {"graph_count": 51}),
        ("reserved 38.48 GiB memory for KV Cache as specified by kv_cache_memory_bytes config", {"kv_cache_gib": 38.48}),
        ("2026-11-29T20:53:26.5Z Application startup complete.", {"ready": "2026-11-29T20:53:26.5Z", "ready_seen": True}),
        ("2026-11-29T20:50:26Z Container created", {"container_created": "2026-11-29T20:50:26Z"}),
    ],
)  # fmt: skip
def test_wordings(line: str, wanted: dict[str, object]) -> None:
    assert start_up([line, "INFO 01-01 00:00:00 [core.py:1] nothing"]) == wanted


def test_kv_size_and_concurrency_on_one_line() -> None:
    line = (
        DP.format(0)
        + "GPU KV cache size: 2,687,776 tokens, Maximum concurrency for 1,000,000 tokens per request: 2.69x"
    )
    assert start_up([line]) == {
        "kv_cache_tokens": 2687776, "kv_cache_tokens_total": 2687776, "max_concurrency": 2.69,
        "max_concurrency_at_tokens": 1000000,
    }  # fmt: skip


def test_data_parallel_engines_add_and_the_smallest_binds() -> None:
    sizes = (1000, 900, 1100, 1200)
    lines = [DP.format(rank) + f"GPU KV cache size: {size:,} tokens" for rank, size in enumerate(sizes)]
    found = start_up(lines)
    assert (found["kv_cache_tokens"], found["kv_cache_tokens_total"], found["dp_size"]) == (900, 4200, 4)


def test_durations_are_the_longest_over_ranks_and_sums_within_one() -> None:
    line = "(Worker_TP{0} pid=1{0}) INFO 07-01 00:00:00 [monitor.py:1] torch.compile took {1} s in total"
    lines = [line.format(0, 9.61), line.format(0, 0.87), line.format(1, 9.5), line.format(1, 0.9)]
    assert start_up(lines)["compile_s"] == pytest.approx(10.48)  # 9.61 + 0.87 of the draft model


def test_v0_hit_rates_come_on_a_line_of_their_own() -> None:
    report = read_log(
        [
            "INFO 02-24 11:16:41 metrics.py:455] Avg prompt throughput: 1.5 tokens/s, Avg generation throughput: 2.5 "
            "tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 0.1%, CPU KV cache usage: 0.2%.",
            "INFO 02-24 11:16:41 metrics.py:471] Prefix cache hit rate: GPU: 92.31%, CPU: 5.00%",
        ]
    )
    row = report.intervals[0]
    assert (row.prefix_hit_rate, row.cpu_prefix_hit_rate, row.kv_usage, row.cpu_kv_usage) == (
        0.9231,
        0.05,
        0.001,
        0.002,
    )
    assert (row.waiting, row.engine_id, row.t) == (2, None, "--02-24T11:16:41")


def test_new_fields_in_a_throughput_line_do_no_harm() -> None:
    report = read_log(
        [
            "Engine 003: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: 1 reqs, "
            "Waiting: 2 reqs, Deferred: 4 reqs, Preemptions: 3, GPU KV cache usage: 10.0%, Prefix cache hit rate: 20.0%, "
            "Corrupted: 0 reqs, External prefix cache hit rate: 30.0%, MM cache hit rate: 40.0%"
        ]
    )
    row = report.intervals[0]
    assert (row.engine_id, row.preemptions, row.kv_usage, row.external_hit_rate) == (3, 3, 0.1, 0.3)
    assert [(item.kind, item.count) for item in report.incidents] == [("preemption", 3)]


def test_lines_glued_together_are_both_read() -> None:
    line = (
        "(APIServer pid=1) INFO 05-19 10:13:{0} [loggers.py:271] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg "
        "generation throughput: {0}.5 tokens/s, Running: 18 reqs, Waiting: 43 reqs, GPU KV cache usage: 95.9%, Prefix "
        "cache hit rate: 0.0%"
    )
    report = read_log([line.format(11) + line.format(21)])
    assert [(row.t, row.decode_tok_s) for row in report.intervals] == [
        ("--05-19T10:13:11", 11.5),
        ("--05-19T10:13:21", 21.5),
    ]


def test_arguments_that_were_cut_end_where_the_next_statement_begins() -> None:
    """The first is cut inside its brackets: what follows must not be read as part of it."""
    head = "INFO 09-20 11:05:02 api_server.py:496] args: Namespace("
    report = read_log([f"{head}model='a', sizes=[1, 2, {head}model='b', port=8000)"])
    assert report.effective_config["model"] == "b"
    assert report.effective_config["raw"]["requested"]["port"] == 8000
    assert "Namespace" not in str(report.effective_config)


def test_a_second_start_forgets_the_first() -> None:
    first = [
        "vLLM API server version 0.27.1",
        "Model loading took 99 GiB memory and 50 seconds",
        "Application startup complete.",
    ]
    second = ["vLLM API server version 0.32.0", "Model loading took 10 GiB memory and 5 seconds"]
    report = read_log([*first, *second])
    assert (report.version, report.startup.model_load_s, report.startup.ready_seen) == ("0.32.0", 5.0, False)


def test_the_root_cause_stands_with_the_death() -> None:
    core = "(EngineCore pid=9) ERROR 09-18 21:38:02 [core.py:1374] "
    report = read_log(
        [
            core + "EngineCore failed to start.",
            core + "Traceback (most recent call last):",
            core + "RuntimeError: the real reason",
            "(APIServer pid=3) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        ]
    )
    died = [item for item in report.incidents if item.kind == "engine_died"]
    assert died
    assert all(item.severity == "error" for item in died)
    late = read_log(
        [
            core + "RuntimeError: the real reason",
            "(APIServer pid=3) ValueError: a later one",
            "(APIServer pid=3) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        ]
    )
    assert "Root cause: RuntimeError: the real reason" in late.incidents[0].message


def test_death_after_an_orderly_shutdown_is_none() -> None:
    report = read_log(
        ["[shutdown] API server: shutdown triggered", "EngineDeadError: EngineCore encountered an issue."]
    )
    assert [item.kind for item in report.incidents] == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out_of_memory"),
        ("[rank1]:[W812 16:00:28.6 CUDACachingAllocator.cpp:3933] memory allocation failed with OOM on device 1 while trying to allocate 20971520 bytes", "oom_retry"),
        ("WARNING 05-18 19:12:27 [jit_monitor.py:103] Triton kernel JIT compilation during inference: expand_kernel. This", "jit_compile"),
        ("Skipping FlashInfer autotune because it is disabled.", "autotune_disabled"),
        ("Capping cudagraph capture sizes from max 512 to 96 to fit Mamba cache blocks (99 blocks available).", "graph_sizes_capped"),
        ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5) ran for 600000 milliseconds", "nccl_timeout"),
        ("NCCL error: unhandled system error", "nccl_error"),
        ("Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888)", "shm_too_small"),
        ("CUDA error: an illegal memory access was encountered", "cuda_error"),
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.", "kv_too_small"),
        ("(APIServer pid=1) pydantic ValueError: DSpark is not supported with decode context parallelism", "config_conflict"),
        ("ValueError: Model architectures ['X'] are not supported for now.", "model_unsupported"),
        ("OSError: Consistency check failed: file should be of size 5 but has size 4", "download_corrupt"),
        ("OSError: org/model is not a local folder and is not a valid model identifier", "model_not_found"),
        ("TimeoutError: Timed out waiting for engine core processes to start.", "start_timeout"),
        ("Worker exited with exit code -9", "killed"),
        ("ERROR 07-13 02:56:30 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 411 died, exit code: -15", "engine_died"),
        ("RuntimeError: unable to open shared memory object </torch_1> in read-write mode: No space left on device (28)", "shm_too_small"),
        ("AssertionError: DCP not support reorder_batch_threshold > 1 now.", "config_conflict"),
        ("AssertionError: Workspace is locked but allocation requires 12.00 MB, current size is 0.00 MB.", "config_conflict"),
        ("message: This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", "request_too_long"),
        ("DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, code: -98, name: EADDRINUSE", "port_in_use"),
        ("[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", "port_in_use"),
    ],
)  # fmt: skip
def test_incidents(line: str, kind: str) -> None:
    assert kind in {item.kind for item in read_log([line]).incidents}


def test_a_figure_that_was_cut_is_counted_not_invented() -> None:
    report = read_log(["(EngineCore pid=1) INFO 07-01 00:00:00 [kv_cache_utils.py:1] GPU KV cache size: 75,8"])
    assert report.startup.kv_cache_tokens is None
    assert report.unparsed == 1
    assert report.unparsed_examples == ("GPU KV cache size: 75,8",)


def test_configuration_of_both_lines() -> None:
    report = read_log(
        [
            "(APIServer pid=1) INFO 07-01 00:00:00 [utils.py:1] non-default args: {'max_num_seqs': 64, 'api_key': 'secret', "
            "'attention_config': {'mla_prefill_backend': 'TRTLLM_RAGGED'}, 'kernel_config': KernelConfig(moe_backend='auto')}",
            "(EngineCore pid=2) INFO 07-01 00:00:00 [core.py:1] Initializing a V1 LLM engine (v0.27.1) with config: model='m', "
            "speculative_config=SpeculativeConfig(method='dspark', model='d', num_spec_tokens=7), max_seq_len=1000000, "
            "tensor_parallel_size=8, decode_context_parallel_size=1, kv_cache_dtype=fp8, enforce_eager=False, "
            "compilation_config={'mode': <CompilationMode.NONE: 0>, 'cudagraph_capture_sizes': [1, 2, 4], 'x': 1}",
            "Using FLASHINFER_MLA attention backend out of potential backends: ['FLASHINFER_MLA'].",
            "Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN'].",
            "Using 'FLASHINFER_TRTLLM' Mxfp4 MoE backend out of potential backends: ['A'].",
        ]
    )
    config = dict(report.effective_config)
    assert "secret" not in json.dumps(config)
    wanted = {
        "max_running_requests": 64, "mla_prefill_backend": "TRTLLM_RAGGED", "speculative_method": "dspark",
        "speculative_tokens": 7, "max_model_len": 1000000, "tensor_parallel": 8, "decode_context_parallel": 1,
        "kv_cache_dtype": "fp8", "compilation_mode": "NONE", "attention_backend": "FLASHINFER_MLA",
        "moe_backend": "FLASHINFER_TRTLLM",
    }  # fmt: skip
    assert {name: config.get(name) for name in wanted} == wanted
    assert report.version == "0.27.1"
    assert (report.startup.graph_sizes, report.startup.graph_count) == ((1, 2, 4), 3)
    assert report.startup.max_running_requests == 64


def test_compose_and_ray_prefixes() -> None:
    line = (
        "INFO 05-19 10:13:{0} [loggers.py:271] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
        "{0}.5 tokens/s, Running: 18 reqs, Waiting: 43 reqs, GPU KV cache usage: 95.9%, Prefix cache hit rate: 0.0%"
    )
    for prefix in ("vllm-1  | (APIServer pid=1) ", "(ServeReplica:app pid=5, ip=10.0.0.2) ", "[pod/vllm-0/vllm] "):
        report = read_log([prefix + line.format(second) for second in (11, 21, 31)])
        found = [(row.t, row.t_outer, row.decode_tok_s) for row in report.intervals]
        assert found == [(f"--05-19T10:13:{second}", None, second + 0.5) for second in (11, 21, 31)]


@pytest.mark.parametrize(
    ("prefix", "clock"),
    [
        ("", "engine"),
        ("2026-11-29T20:53:26.5Z ", "outer"),
        ("2026-11-29T20:53:26.5Z INFO 11-29 12:53:26 [a.py:1] ", "engine"),
    ],
)
def test_whose_clock_it_is(prefix: str, clock: str) -> None:
    assert read_log([prefix + "Loading weights took 0.99 seconds"]).clock == clock


def test_lines_are_counted_by_newlines() -> None:
    assert read_log(["a\rb\rc", "d"]).lines == 2
    reader = LogReader()
    reader.feed("a\nb")
    assert reader.finish().lines == 2


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = str(CASES / "23-vllm-saturated-bursty-prefill" / "input.txt")
    assert main(["parse-log", case, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == read_log(Path(case)).to_dict()
    assert main(["parse-log", case, case, "--json"]) == 0
    assert [entry["file"] for entry in json.loads(capsys.readouterr().out)] == [case, case]
    assert main(["parse-log", case, "--csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 6
    assert rows[0].startswith("file,t,engine_id,prefill_tok_s")
    assert main(["parse-log", case]) == 0
    assert "stable decode" in capsys.readouterr().out
    assert main(["parse-log", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_following_wants_one_file() -> None:
    from crossover.commands import parse_log

    with pytest.raises(InputError, match="takes one file"):
        parse_log._follow(["-"], "auto")


ALL = "\n".join(path.read_text() for path in sorted(CASES.glob("*vllm*/input.txt")) if path.stat().st_size < 20_000)
LINES = ALL.split("\n")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_mutilated_lines_raise_nothing_and_invent_nothing(data: st.DataObject) -> None:
    """A throughput read from cut, merged and noisy lines stands in one of them, digit by digit."""
    lines = [data.draw(st.sampled_from(LINES)) for _ in range(data.draw(st.integers(1, 4)))]
    cut = data.draw(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=4, max_size=4))
    noise = data.draw(st.text(max_size=12))
    pieces = [
        line[min(ends) : max(ends)] if data.draw(st.booleans()) else line
        for line, ends in zip(lines, cut, strict=False)
    ]
    text = data.draw(st.sampled_from(["\n", "", "\r", noise])).join(pieces)
    report = read_log([text])
    digits = re.sub(r"[,\s│]", "", text)
    for row in report.intervals:
        for value in (row.prefill_tok_s, row.decode_tok_s, row.running, row.waiting):
            assert value is None or f"{value}" in digits or f"{value}".removesuffix(".0") in digits
    for name in ("weights_load_s", "model_load_s", "engine_init_s", "model_load_gib"):
        value = getattr(report.startup, name)
        assert value is None or f"{value:g}".rstrip("0") in digits or f"{value}" in digits
    json.dumps(report.to_dict())


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_are_a_log(raw: bytes) -> None:
    reader = LogReader()
    reader.feed(raw.decode("utf-8", "replace"))
    assert reader.finish().engine is None or raw


@pytest.mark.parametrize(
    "text",
    [
        "Avg prompt throughput: " * 4000,
        "SpecDecoding metrics: " + "Accepted: 1 tokens, " * 5000,
        "non-default args: {" + "'a': {" * 3000,
        "Free memory on device (" + "1" * 50_000,
        "Initializing a V1 LLM engine (v1) with config: " + "x=(" * 20_000,
        "(" * 100_000 + " out of memory",
        "To serve at least one request " + "(1), (" * 10_000,
        "[" * 50_000 + "Prefill batch, #new-seq: 1",
        "Decode batch, " + "#running-req: 1, " * 10_000,
        "verify" * 20_000 + " TritonKDAKernel" * 100,
    ],
)
def test_no_line_takes_long(text: str) -> None:
    before = time.process_time()
    read_log([text])
    assert time.process_time() - before < 5.0
