"""vLLM's memory: the waterfall of every generation, the suggested KV size, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from crossover.logs import read_log

WORKER = "(Worker_TP0 pid=11) INFO 09-21 14:08:23 [gpu_worker.py:1034] "


def memory(*lines: str) -> dict[str, float]:
    """The items of the one rank that speaks."""
    found = read_log(lines).to_dict()["memory"]
    assert len({item["item"] for item in found}) == len(found)
    return {item["item"]: item["gib"] for item in found}


def incidents(*lines: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_log(lines).to_dict()["incidents"]
    return found


def summary(consumed: str, activation: float, graphs: float, advised: int, kv: float) -> str:
    """The newest wording; 80 GiB visible, 79 free, 72 requested."""
    return (
        f"{WORKER}Free memory on device cuda:0 (79.0/80.0 GiB) on startup. Desired GPU memory utilization is "
        f"(0.9, 72.0 GiB). Actual usage is {consumed}, {activation} GiB for peak activation, and {graphs} GiB for "
        f"CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory={advised}` "
        f"({advised / 2**30:.2f} GiB) to fit into requested memory, or `--kv-cache-memory=1` (0.0 GiB) to fully "
        f"utilize gpu memory. Current kv cache memory in use is {kv} GiB."
    )


def gib(size: float) -> int:
    return round(size * 2**30)


LOADED = f"{WORKER}Model loading took 30.0 GiB memory and 12.5 seconds"
ESTIMATED = f"{WORKER}Estimated CUDA graph memory: 6.0 GiB total"


def test_weights_and_graphs_are_told_apart_where_one_figure_holds_both() -> None:
    """33 consumed - 30 loaded = 3; 8 activation - 6 estimated graphs = 2; 80 - 30 - 3 - 2 - 5 - 31 = 9 left."""
    line = summary("33.0 GiB for consumed memory (weights + non-torch)", 8.0, 5.0, gib(25.85), 31.0)
    assert memory(LOADED, ESTIMATED, line) == {
        "weights": 30.0, "non_torch": 3.0, "activation": 2.0, "cuda_graph": 5.0, "kv_cache": 31.0,
        "visible": 80.0, "remaining": 9.0,
    }  # fmt: skip


def test_a_suggestion_that_counts_the_graphs_twice_is_wrong() -> None:
    """Right: 72 - 33 - (8 - 6) - 5 - 0.15 = 31.85; the engine takes the 6 off again: 25.85."""
    line = summary("33.0 GiB for consumed memory (weights + non-torch)", 8.0, 5.0, gib(25.85), 31.0)
    (found,) = incidents(LOADED, ESTIMATED, line)
    assert found["kind"] == "kv_suggestion_wrong"
    assert "25.85 GiB" in found["message"]
    assert "31.85 GiB" in found["message"]


def test_a_suggestion_may_be_negative_and_the_cache_too_large() -> None:
    """Estimate 40, graphs 45: right is 72 - 33 - (42 - 40) - 45 - 0.15 = -8.15; the engine says -48.15."""
    estimate = f"{WORKER}Estimated CUDA graph memory: 40.0 GiB total"
    line = summary("33.0 GiB for consumed memory (weights + non-torch)", 42.0, 45.0, gib(-48.15), 1.0)
    kinds = [(found["kind"], found["message"]) for found in incidents(LOADED, estimate, line)]
    assert [kind for kind, _ in kinds] == ["kv_suggestion_wrong", "kv_overcommit"]
    assert "9.15 GiB too much" in kinds[1][1]


def test_without_the_estimate_nothing_is_said_of_a_cache_that_is_larger_than_suggested() -> None:
    line = summary("33.0 GiB for consumed memory (weights + non-torch)", 8.0, 5.0, gib(25.85), 31.0)
    assert incidents(LOADED, line) == []


def test_an_estimate_that_is_off_stays_out() -> None:
    """Not used, so that activations hold no graphs: 72 - 33 - 2 - 5 - 0.15 = 31.85 is what the engine says."""
    off = f"{WORKER}CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0)."
    line = summary("33.0 GiB for consumed memory (weights + non-torch)", 2.0, 5.0, gib(31.85), 37.0)
    (found,) = incidents(LOADED, off, ESTIMATED, line)
    assert (found["kind"], found["message"][-18:]) == ("kv_overcommit", " 5.15 GiB too much")
    assert memory(LOADED, off, ESTIMATED, line)["activation"] == 2.0


def test_a_negative_estimate_makes_the_cache_too_large() -> None:
    (found,) = incidents(f"{WORKER}Estimated CUDA graph memory: -20.50 GiB total")
    assert found["kind"] == "kv_overcommit"
    assert "-20.50 GiB" in found["message"]


V0 = "INFO 12-13 19:54:18 worker.py:243] "


@pytest.mark.parametrize(
    "lines",
    [
        [
            f"{V0}the current vLLM instance can use total_gpu_memory (80.00GiB) x gpu_memory_utilization (0.90) "
            "= 72.00GiB",
            f"{V0}model weights take 15.00GiB; non_torch_memory takes 1.50GiB; PyTorch activation peak memory takes "
            "1.25GiB; the rest of the memory reserved for KV Cache is 54.25GiB.",
        ],
        [
            f"{V0}Memory profiling results:",
            f"{V0}duration     0.75 seconds",
            f"{V0}total_gpu_memory     80.00GiB",
            f"{V0}gpu_memory_utilization       0.90",
            f"{V0}model weights take   15.00GiB",
            f"{V0}non_torch_memory     1.50GiB",
            f"{V0}PyTorch activation peak memory       1.25GiB",
            f"{V0}available_kv_cache_memory    54.25GiB",
        ],
        [
            "INFO 11-15 10:00:00 model_runner.py:1025] Loading model weights took 15.0000 GB",
            f"{V0}Memory profiling results: total_gpu_memory=80.00GiB initial_memory_usage=0.51GiB "
            "peak_torch_memory=16.25GiB memory_usage_post_profile=0.59GiB non_torch_memory=1.50GiB "
            "kv_cache_size=54.25GiB gpu_memory_utilization=0.90",
        ],
    ],
)
def test_three_generations_of_v0_give_the_same_parts(lines: list[str]) -> None:
    """80 - 15 - 1.5 - 1.25 - 54.25 = 8, the tenth that was not asked for."""
    report = read_log(lines).to_dict()
    assert memory(*lines) == {
        "visible": 80.0, "weights": 15.0, "non_torch": 1.5, "activation": 1.25, "kv_cache": 54.25, "remaining": 8.0,
    }  # fmt: skip
    assert report["effective_config"]["memory_fraction"] == 0.9
    assert report["startup"]["kv_cache_gib"] == 54.25
    assert report["unparsed"] == 0


def test_a_draft_model_that_is_stated_later_does_not_replace_the_weights() -> None:
    lines = [
        f"INFO 11-15 10:00:0{n} model_runner.py:9] Loading model weights took {gib} GB"
        for n, gib in ((1, 15), (2, 0.5))
    ]
    assert memory(*lines) == {"weights": 15.0}


def test_parts_above_the_visible_memory_leave_no_remainder() -> None:
    """46 + 1 + 1 + 0 + 40 exceed 80 by 8: the remainder is withheld, with the reason."""
    line = summary("46.0 GiB for weight", 1.0, 1.0, gib(23.85), 40.0)
    report = read_log([line]).to_dict()
    assert "remaining" not in memory(line)
    assert "8.00 GiB" in report["effective_config"]["raw"]["memory_remaining_withheld"]


def test_memory_that_another_process_holds() -> None:
    (found,) = incidents(
        "(EngineCore_DP0 pid=3) ValueError: Free memory on device (9.53/24.00 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 21.6 GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
        "processes."
    )
    assert (found["kind"], found["severity"]) == ("gpu_occupied", "error")
    assert "9.53 of 24 GiB" in found["message"]
    assert "lower gpu-memory-utilization to 0.39" in found["advice"]


def test_the_length_that_was_fitted_counts() -> None:
    report = read_log(
        [
            "INFO 08-21 18:37:44 [kv_cache_utils.py:1087] Auto-fit max_model_len: reduced from 262144 to 131072 to fit "
            "in available GPU memory (4.25 GiB available for KV cache)"
        ]
    ).to_dict()
    assert report["startup"]["context_length"] == 131072
    assert [found["kind"] for found in report["incidents"]] == ["config_adjusted"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("(12.00 GB KV cache is needed, which is larger than the available KV cache memory (3.00 GB).", "about 8192"),
        (
            "(12.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.0 GiB). Based on the "
            "available memory, the estimated maximum model length is 8000. Try",
            "to 8000 (the engine's estimate)",
        ),
        ("(12.0 GiB KV cache is needed, which is larger than the available KV cache memory (-1.5 GiB).", "more memory"),
    ],
)
def test_a_cache_that_is_too_small(text: str, advice: str) -> None:
    """32768 x 3 / 12 = 8192, if all layers are alike."""
    (found,) = incidents(f"ValueError: To serve at least one request with the model's max seq len (32768), {text}")
    assert found["kind"] == "kv_too_small"
    assert advice in found["advice"]


@pytest.mark.parametrize(
    ("lines", "tokens"),
    [
        (["INFO 07-01 10:00:00 gpu_executor.py:84] # GPU blocks: 1000, # CPU blocks: 512"], 16000),
        (["INFO 07-01 10:00:00 cpu_executor.py:212] # CPU blocks: 2048"], 32768),
        (["INFO 07-01 10:00:00 openvino_executor.py:85] OpenVINO CPU: # device blocks: 100; # swap blocks: 0"], 3200),
        (
            [
                "INFO 07-01 10:00:00 kv_cache_utils.py:395] # GPU blocks: 1000",
                "INFO 07-01 10:00:00 kv_cache_utils.py:398] Maximum concurrency for 32000 tokens per request: 4.00x",
            ],
            128000,
        ),
        (
            [
                "INFO 07-01 10:00:00 kv_cache_utils.py:395] # GPU blocks: 1000",
                "INFO 07-01 10:00:00 kv_cache_utils.py:398] Maximum concurrency for 32000 tokens per request: 4.10x",
            ],
            None,
        ),
    ],
)
def test_tokens_from_blocks(lines: list[str], tokens: int | None) -> None:
    """16 tokens a block in V0, 32 for OpenVINO on a CPU; else what gives the printed concurrency:
    1000 x 128 / 32000 = 4.
    """
    assert read_log(lines, "vllm").startup.kv_cache_tokens == tokens


def test_a_tpu_says_what_is_left_for_the_cache() -> None:
    line = (
        "(EngineCore pid=106339) INFO 06-03 07:40:36 [tpu_worker.py:437] Memory statistics | "
        "total_hbm_limit_gb=94.75GiB | total_hbm_limit_cap_gb=80.53GiB | total_hbm_used_gb=16.58GiB | "
        "total_hbm_avail_gb=63.95GiB"
    )
    assert memory(line) == {"visible": 94.75, "kv_cache": 63.95}
    assert read_log([line]).startup.kv_cache_gib == 63.95


def test_an_npu_says_the_same_in_other_words() -> None:
    """57.91 - 51.68 - 0.29 - 0.51 - 0.23 - 0.15 = 5.05, as the engine says; 60.96 less the parts is 3.10."""
    head = "(Worker_TP7 pid=9) INFO 07-07 12:54:21 [worker.py:729] "
    lines = [
        f"{head}ACL graph pool memory: 0.23 GiB (actual), 0.29 GiB (estimated), difference: 0.05 GiB (23.1%).",
        f"{head}Free memory on device (60.59/60.96 GiB) on startup. Desired GPU memory utilization is (0.95, "
        "57.91 GiB). Actual usage: 51.68 GiB for weights, 0.29 GiB for peak activation, 0.51 GiB for non-torch "
        f"memory, 0.23 GiB for NPU graph memory. Replace gpu_memory_utilization with `--kv-cache-memory={gib(5.06)}` "
        "(5.06 GiB) to fit into requested memory, or `--kv-cache-memory=1` (0.0 GiB) to fully utilize NPU free memory. "
        "Current KV cache memory: 5.15 GiB.",
    ]
    assert memory(*lines)["remaining"] == 3.1
    assert memory(*lines)["kv_cache"] == 5.15
    assert [found["kind"] for found in incidents(*lines)] == ["kv_overcommit"]


def test_visible_memory_follows_from_what_is_requested() -> None:
    """71.29 / 0.9 = 79.21; less 15 + 0.96 + 1.44 + 53.89 leaves 7.92."""
    head = "(EngineCore_DP0 pid=7) DEBUG 11-04 02:08:02 [gpu_worker.py:284] "
    report = read_log(
        [
            head + "Initial free memory: 78.80 GiB; Requested memory: 0.90 (util), 71.29 GiB",
            head
            + "Memory profiling takes 5.20 seconds. Total non KV cache memory: 17.40GiB; torch peak memory increase: "
            "1.44GiB; non-torch forward increase memory: 0.96GiB; weights memory: 15.00GiB.",
            head.replace("DEBUG", "INFO") + "Available KV cache memory: 53.89 GiB",
        ]
    )
    memory = {item.item: item.gib for item in report.memory}
    assert (memory["visible"], round(memory["remaining"], 2)) == (79.21, 7.92)
    assert report.effective_config["memory_fraction"] == 0.9
    assert "visible_derived" in report.effective_config["raw"]


def test_memory_that_another_process_gave_back() -> None:
    head = "(Worker_TP{} pid=7) WARNING 11-04 02:08:02 [gpu_worker.py:284] "
    text = "Free memory grew by 3.5 GiB during profiling (initial 70.0 GiB, current 73.5 GiB). Sizing the KV cache from"
    (found,) = read_log([head.format(0) + text, head.format(1) + text]).incidents
    assert (found.kind, found.severity, found.count) == ("gpu_occupied", "warning", 1)


def test_cache_outside_the_device() -> None:
    line = (
        "INFO 11-04 02:08:02 [manager.py:9] SimpleCPUOffloadScheduler: Allocating 512 CPU blocks (8.50 GB, mode=eager)"
    )
    assert read_log([line]).effective_config["raw"]["kv_offload_gib"] == 8.5
