"""Against the published cells: client totals and the decode rate that the engines' own logs showed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from crossover.errors import InputError
from crossover.simulator.scheduler import Scheduler
from crossover.simulator.timing import predict_cell, predict_cell_s, predict_start_s, settings_of, simulate

# Published client.total_s and engine_log.decode_tok_s; the 64K cells were the first after the start.
CELLS = {
    ("vllm", 64_000): (100.5, 501.0),
    ("sglang", 64_000): (150.82, 335.0),
    ("vllm", 200_000): (295.21, 163.0),
    ("sglang", 200_000): (225.34, 268.0),
}


def workload(tokens: int, dataset: str = "random", **changes: Any) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "input_tokens": tokens,
        "output_tokens": 3000,
        "concurrency": 10,
        "requests": 10,
        **changes,
    }


@pytest.mark.parametrize(("dialect", "tokens"), CELLS)
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_published_cells_within_ten_percent(
    dialect: str, tokens: int, seed: int | None, published: dict[str, dict[str, Any]]
) -> None:
    total_s, decode_tok_s = CELLS[dialect, tokens]
    if seed is None:
        cell = predict_cell(dialect, published[dialect], workload(tokens), cold=tokens == 64_000)
    else:
        scheduler = Scheduler(settings_of(dialect, published[dialect]), seed)
        if tokens != 64_000:
            scheduler.cold, scheduler.oom_pending = [], 0
        cell = simulate(scheduler, workload(tokens))
    assert cell.total_s == pytest.approx(total_s, rel=0.10)
    assert cell.stable_decode_tok_s == pytest.approx(decode_tok_s, rel=0.10)


@pytest.mark.parametrize("cold", [True, False])
@pytest.mark.parametrize("dataset", ["random", "sharegpt-shaped"])
def test_the_order_flips_between_64k_and_200k(cold: bool, dataset: str, published: dict[str, dict[str, Any]]) -> None:
    def seconds(dialect: str, tokens: int) -> float:
        return predict_cell_s(dialect, published[dialect], workload(tokens, dataset), cold=cold and tokens == 64_000)

    assert seconds("vllm", 64_000) < seconds("sglang", 64_000)
    assert seconds("vllm", 200_000) > seconds("sglang", 200_000)


def test_start_up_times_are_the_published_ones(published: dict[str, dict[str, Any]]) -> None:
    # Container to ready: 17:06:21 to 17:16:57, and 18:01:45 to 18:11:59.
    assert predict_start_s("vllm", published["vllm"]) == pytest.approx(636, abs=2)
    assert predict_start_s("sglang", published["sglang"]) == pytest.approx(614, abs=2)


def test_sglang_ttft_as_published(published: dict[str, dict[str, Any]]) -> None:
    assert predict_cell("sglang", published["sglang"], workload(200_000)).ttft_mean_s == pytest.approx(59.0, rel=0.05)


def test_natural_text_is_quicker_and_higher_concurrency_slower(published: dict[str, dict[str, Any]]) -> None:
    arguments = published["vllm"]
    assert predict_cell_s("vllm", arguments, workload(64_000, "sharegpt")) < predict_cell_s(
        "vllm", arguments, workload(64_000)
    )
    many = workload(64_000, concurrency=64, requests=64)
    assert predict_cell_s("vllm", arguments, many) > 3 * predict_cell_s("vllm", arguments, workload(64_000))


def test_means_agree_with_draws(published: dict[str, dict[str, Any]]) -> None:
    cell = workload(2000, concurrency=4, requests=40, output_tokens=300)
    scheduler = Scheduler(settings_of("vllm", published["vllm"]), seed=3)
    scheduler.cold, scheduler.oom_pending = [], 0
    assert predict_cell_s("vllm", published["vllm"], cell) == pytest.approx(simulate(scheduler, cell).total_s, rel=0.05)


def test_open_loop_ends_after_its_last_arrival(published: dict[str, dict[str, Any]]) -> None:
    cell = workload(1000, concurrency=None, rate_per_s=0.5, requests=20, output_tokens=50)
    # The last of 20 requests comes after 19 / 0.5 = 38 s.
    assert 38 < predict_cell_s("vllm", published["vllm"], cell) < 43


def test_prediction_is_quick(published: dict[str, dict[str, Any]]) -> None:
    predict_cell_s("vllm", published["vllm"], workload(64_000))
    begin = time.process_time()
    for dialect, tokens in CELLS:
        predict_cell_s(dialect, published[dialect], workload(tokens))
    assert (time.process_time() - begin) / len(CELLS) < 0.05


def test_bad_input(published: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="the workload has no input_tokens"):
        predict_cell_s("vllm", published["vllm"], {"output_tokens": 1})
    with pytest.raises(InputError, match="would not start"):
        predict_cell_s("vllm", {**published["vllm"], "max-model-len": 5_000_000}, workload(64_000))
