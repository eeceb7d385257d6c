"""The report for a person: what adds up, and what does not."""

# ruff: noqa: E501 (lines stand as the engine prints them)

from __future__ import annotations

from crossover.logs import read_log
from crossover.logs.summary import summarise


def summary_of(text: str) -> list[str]:
    return summarise(read_log(text.strip("\n").split("\n"), "sglang"), "engine.log").split("\n")


def value_of(lines: list[str], label: str) -> str:
    (found,) = [line for line in lines if line.strip().startswith(label)]
    return found.strip().removeprefix(label).strip()


def test_memory_that_no_line_accounts_for_is_shown_of_the_rank_that_misses_most() -> None:
    """TP0 80 + 1 visible - (1 + 15 + 40 + 20 remaining) = 5; TP1 80 + 1 - (1 + 15 + 40 + 23.5) = 1.5."""
    lines = summary_of("""
[2025-06-01 10:00:00 TP0] Init torch distributed ends. mem usage=1.00 GB
[2025-06-01 10:00:00 TP1] Init torch distributed ends. mem usage=1.00 GB
[2025-06-01 10:00:00 TP0] Load weight begin. avail mem=80.00 GB
[2025-06-01 10:00:00 TP1] Load weight begin. avail mem=80.00 GB
[2025-06-01 10:00:09 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=65.00 GB, mem usage=15.00 GB.
[2025-06-01 10:00:09 TP1] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=65.00 GB, mem usage=15.00 GB.
[2025-06-01 10:00:10 TP0] KV Cache is allocated. #tokens: 300000, K size: 20.00 GB, V size: 20.00 GB
[2025-06-01 10:00:10 TP1] KV Cache is allocated. #tokens: 300000, K size: 20.00 GB, V size: 20.00 GB
[2025-06-01 10:00:10 TP0] Memory pool end. avail mem=20.00 GB
[2025-06-01 10:00:10 TP1] Memory pool end. avail mem=23.50 GB
""")
    assert value_of(lines, "not accounted for") == "5.00 GiB"
    assert not any("left of visible" in line for line in lines)


def test_engine_initialisation_includes_loading_and_capture_includes_compiling() -> None:
    """246.00 s in all, of it 178.20 loading and 24.70 capture, with 12 s of compiling inside: 43.10 s are open."""
    lines = summary_of("""
[2026-11-01 06:03:40 TP0] Load weight end. elapsed=178.20 s, type=KimiK3ForCausalLM, quant=mxfp4, avail mem=183.20 GB, mem usage=78.90 GB.
[2026-11-01 06:04:00 TP0] Compiling a graph for dynamic shape takes 12.00 s
[2026-11-01 06:04:20 TP0] Capture decode CUDA graph end. elapsed=24.70 s, mem usage=2.70 GB, avail mem=157.20 GB.
[2026-11-01 06:04:28] Engine startup timings (s): load_weight=178.20, kv_cache_allocation=0.61, scheduler_e2e=246.00, cuda_graph={decode=24.70}, tokenizer_e2e=251.10
""")
    assert value_of(lines, "of it unexplained") == "43.10 s"


def test_data_parallel_engines_add_up_and_missing_ones_are_told() -> None:
    """Engine 0 decodes 100 and 200, 150 on average; engine 3 decodes 50: 200 tok/s by two of four engines."""
    lines = summary_of("""
[2025-05-31 18:31:21 DP0 TP0] Decode batch. #running-req: 8, #token: 37217, token usage: 0.13, gen throughput (token/s): 100.00, #queue-req: 0
[2025-05-31 18:31:23 DP3 TP3] Decode batch. #running-req: 8, #token: 37217, token usage: 0.13, gen throughput (token/s): 50.00, #queue-req: 0
[2025-05-31 18:31:25 DP0 TP0] Decode batch. #running-req: 8, #token: 37217, token usage: 0.13, gen throughput (token/s): 200.00, #queue-req: 0
""")
    assert value_of(lines, "engines together") == "200.00 tok/s decoded on average by 2 of 4 engines"


def test_one_engine_is_not_added_up() -> None:
    lines = summary_of("""
[2025-05-31 18:31:21 TP0] Decode batch. #running-req: 8, #token: 37217, token usage: 0.13, gen throughput (token/s): 100.00, #queue-req: 0
""")
    assert not any("engines together" in line for line in lines)


def test_the_failure_stands_first_and_long_lines_are_wrapped() -> None:
    report = read_log(
        [
            "(EngineCore pid=9) ERROR 09-18 21:38:02 [core.py:1374] EngineCore failed to start.",
            "(EngineCore pid=9) ERROR 09-18 21:38:02 [core.py:1374] ValueError: To serve at least one request with the model's max seq len (262144), (18.35 GiB KV cache is needed, which is larger than the available KV cache memory (8.72 GiB). Based on the available memory, the estimated maximum model length is 124512.",
        ]
    )
    lines = summarise(report, "engine.log").split("\n")
    assert lines[0] == "engine.log: vllm, 2 lines"
    assert lines[1].startswith("FAILED  kv_too_small: a request of 262144 tokens needs 18.35 GiB of KV cache")
    assert lines[2] == "    -> lower max-model-len to 124512 (the engine's estimate)"
    assert max(len(line) for line in lines) <= 118
    assert any(line.startswith("  error    09-18 21:38:02  engine_died: ") for line in lines)


def test_figures_have_units_and_what_is_not_known_is_not_shown() -> None:
    """Half of the cache is 50 %; the lines show no prefill batch, no request waits, and one sample is no plural."""
    lines = summary_of("""
[2025-05-31 18:31:21 TP0] Decode batch. #running-req: 8, #token: 37217, token usage: 0.50, gen throughput (token/s): 100.00, #queue-req: 0
""")
    assert value_of(lines, "KV cache usage").endswith("50 .. 50 % (1 sample)")
    assert value_of(lines, "decode").endswith("100 .. 100 tok/s (1 sample)")
    assert not any(line.strip().startswith(("prefill", "waiting")) for line in lines)


def test_a_log_that_stands_upside_down_is_told() -> None:
    """Twelve lines, a second apart, from a collector that shows the newest first; turned round, nothing is said."""
    line = "2025-04-05T00:01:{:02d}.123Z [2025-04-05 00:01:{:02d} TP0] Decode batch, #running-req: 6, #token: 81316, token usage: 0.93, cuda graph: False, gen throughput (token/s): 26.0, #queue-req: 9"
    lines = [line.format(second, second) for second in range(12)]
    assert "NEWEST FIRST" in summarise(read_log(lines[::-1]), "x")
    assert "NEWEST FIRST" not in summarise(read_log(lines), "x")


def test_a_file_that_is_no_engine_log_is_told_so() -> None:
    text = summarise(read_log(["Hello", "world"]), "notes.txt")
    assert text.startswith("notes.txt: no engine recognised, 2 lines\n  no statement of vLLM or SGLang in it")
