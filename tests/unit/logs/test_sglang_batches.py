"""Batch lines in the wording of every generation; expected values are read off the lines by eye."""

from __future__ import annotations

import pytest

from crossover.logs import EngineReport, LogReader, read_log

PREFILL = {
    "0.2.0, GPU number in front": (
        "[gpu_id=1] Prefill batch. #new-seq: 2, #new-token: 310, #cached-token: 5, cache hit rate: 1.59%, "
        "#running-req: 4, #queue-req: 7",
        {"t": None, "rank": {"tp": 1}, "new_seq": 2, "new_tokens": 310, "cached_tokens": 5, "running": 4,
         "queued": 7, "kv_usage": None, "graph": None, "prefill_tok_s": None},
    ),
    "0.2.15, mixed with decode": (
        "[16:43:29 TP0] Prefill batch(mixed #running-req: 3). #new-seq: 1, #new-token: 20, #cached-token: 0, "
        "cache hit rate: 0.00%, #queue-req: 2",
        {"t": "T16:43:29", "running": 3, "queued": 2, "new_tokens": 20},
    ),
    "0.4.6, disaggregated prefill": (
        "[2025-05-31 18:31:21 DP0 TP0] Prefill batch. #new-seq: 1, #new-token: 8192, #cached-token: 0, "
        "token usage: 0.10, #running-req: 0, #unbootstrapped-req: 0, #queue-req: 5, #transferring-req: 2 ",
        {"rank": {"dp": 0, "tp": 0}, "queued": 5, "running": 0, "new_tokens": 8192},
    ),
    "0.5.2, ends with a comma": (
        "[2025-09-03 18:33:18 TP0] Prefill batch. #new-seq: 1, #new-token: 103, #cached-token: 1, "
        "token usage: 0.00, #running-req: 0, #queue-req: 0, ",
        {"new_tokens": 103, "cached_tokens": 1, "queued": 0},
    ),
    "0.5.6, sliding window, iteration number": (
        "[2025-12-03 18:33:18 TP0] Prefill batch [812], #new-seq: 1, #new-token: 4096, #cached-token: 64, "
        "full token usage: 0.11, swa token usage: 0.32, #running-req: 2, #queue-req: 1, ",
        {"new_tokens": 4096, "cached_tokens": 64, "kv_usage": 0.11, "running": 2, "queued": 1},
    ),
    "0.5.9, throughput before the graph": (
        "[2026-02-03 18:33:18] Prefill batch, #new-seq: 1, #new-token: 4096, #cached-token: 0, token usage: 0.11, "
        "#running-req: 2, #queue-req: 1, input throughput (token/s): 9000.50, cuda graph: False",
        {"rank": None, "graph": False, "prefill_tok_s": 9000.5},
    ),
    "0.5.23, replay, image queue, device timer": (
        "[2026-11-29 20:56:51 TP0 EP0] Prefill batch, #new-seq: 3, #new-token: 4096, #cached-token: 15, "
        "token usage: 0.13, #running-req: 1, #queue-req: 6, #pending-token: 7832, #replay-token: 12, "
        "waiting-image-req: 0, cuda graph: True, input throughput (token/s): 25831.33, "
        "est. prefill TFLOPS/s (per GPU): 301.22",
        {"rank": {"tp": 0, "ep": 0}, "pending_tokens": 7832, "graph": True, "prefill_tok_s": 25831.33},
    ),
    "with milliseconds and a container's stamp": (
        "2026-11-29T20:56:51.500000001Z [2026-11-29 20:56:51.482 TP0] Prefill batch, #new-seq: 1, "
        "#new-token: 13, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, "
        "cpu graph: False, input throughput (token/s): 11.59",
        {"t": "2026-11-29T20:56:51.482", "t_outer": "2026-11-29T20:56:51.500000001Z", "new_tokens": 13},
    ),
    "0.2.10, another name of the GPU": (
        "[gpu=1] Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, cache hit rate: 0.00%, "
        "#running-req: 0, #queue-req: 0",
        {"rank": {"tp": 1}, "new_tokens": 7},
    ),
    "0.5.18, disaggregated prefill": (
        "[2026-09-24 01:47:50.615 DP3 TP3 EP3] Prefill batch [1], #new-seq: 1, #new-token: 64, #cached-token: 0, "
        "token usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, #bootstrap-req: 0, #inflight-req: 1, "
        "#optimistic-req: 0, cuda graph: False, input throughput (token/s): 7.29",
        {"rank": {"dp": 3, "tp": 3, "ep": 3}, "new_tokens": 64, "graph": False, "prefill_tok_s": 7.29},
    ),
}  # fmt: skip

DECODE = {
    "0.2.15": (
        "[16:43:30 TP0] Decode batch. #running-req: 11, #token: 4107, token usage: 0.01, "
        "gen throughput (token/s): 310.20, #queue-req: 0",
        {"running": 11, "tokens": 4107, "kv_usage": 0.01, "decode_tok_s": 310.2, "graph": None, "queued": 0},
    ),
    "0.4.1, speculation": (
        "[2025-01-03 18:33:18] Decode batch. #running-req: 1, #token: 137, token usage: 0.00, accept len: 3.10, "
        "gen throughput (token/s): 115.77, #queue-req: 0",
        {"accept_len": 3.1, "accept_rate": None, "decode_tok_s": 115.77},
    ),
    "0.5.2, sliding window, disaggregated decode": (
        "[2025-09-03 18:33:18 TP0] Decode batch. #running-req: 4, #full token: 900, full token usage: 0.20, "
        "#swa token: 300, swa token usage: 0.55, accept len: 2.00, pre-allocated usage: 0.05, #retracted-req: 0, "
        "cuda graph: True, gen throughput (token/s): 64.20, #queue-req: 2, ",
        {"tokens": 900, "kv_usage": 0.2, "swa_usage": 0.55, "mamba_usage": None, "queued": 2, "graph": True},
    ),
    "0.5.12, hybrid": (
        "[2026-05-03 18:33:18 TP0] Decode batch [77], #running-req: 4, #full token: 900, full token usage: 0.20, "
        "mamba num: 8, mamba usage: 0.13, accept len: 2.00, accept rate: 0.33, cuda graph: True, "
        "gen throughput (token/s): 64.20, #queue-req: 2",
        {"tokens": 900, "mamba_usage": 0.13, "swa_usage": None, "accept_rate": 0.33},
    ),
    "0.5.23, ragged verification, bandwidth": (
        "[2026-11-29 18:33:18 TP0] Decode batch, #running-req: 4, #token: 900, token usage: 0.20, accept len: 2.00, "
        "accept rate: 0.14, cap len: 7.50, block accept len: 1.90, cuda graph: False, "
        "gen throughput (token/s): 64.20, #queue-req: 2, est. decode TFLOPS/s (per GPU): 1.22, "
        "est. read BW (GB/s per GPU): 100.00, est. write BW (GB/s per GPU): 1.00",
        {"accept_len": 2.0, "accept_rate": 0.14, "graph": False, "queued": 2, "decode_tok_s": 64.2},
    ),
}  # fmt: skip


def report_of(*lines: str) -> EngineReport:
    return read_log(lines, "sglang")


@pytest.mark.parametrize("name", PREFILL)
def test_prefill_line_of_each_generation(name: str) -> None:
    line, wanted = PREFILL[name]
    report = report_of(line)
    assert report.unparsed == 0
    (row,) = report.to_dict()["prefill_batches"]
    assert {key: row.get(key) for key in wanted} == wanted


@pytest.mark.parametrize("name", DECODE)
def test_decode_line_of_each_generation(name: str) -> None:
    line, wanted = DECODE[name]
    report = report_of(line)
    assert report.unparsed == 0
    (row,) = report.to_dict()["decode_batches"]
    assert {key: row.get(key) for key in wanted} == wanted


def test_layout_may_change_within_one_log() -> None:
    """Two engines' logs in one file, or speculation that begins later: no value slips into another field."""
    report = report_of(*(line for line, _ in DECODE.values()), *(line for line, _ in DECODE.values()))
    assert [row.running for row in report.decode_batches] == [11, 1, 4, 4, 4] * 2
    assert [row.swa_usage for row in report.decode_batches] == [None, None, 0.55, None, None] * 2
    assert [row.accept_rate for row in report.decode_batches] == [None, None, None, 0.33, 0.14] * 2


HYBRID = DECODE["0.5.12, hybrid"][0]
EARLY = PREFILL["0.5.9, throughput before the graph"][0]
LATE = PREFILL["0.5.23, replay, image queue, device timer"][0]


@pytest.mark.parametrize(
    ("odd", "whole"),
    [
        (EARLY.replace("#cached-token: 0", "#cached-token: "), EARLY),
        (HYBRID[: HYBRID.index(".13, accept len")], HYBRID),
        (HYBRID[: HYBRID.index("0.13, accept len")], HYBRID),
        (HYBRID.replace("gen throughput (token/s): 64.20, ", ""), HYBRID),
        (HYBRID.replace("mamba num: 8", "mamba num: 8, #new key: 1.2"), HYBRID),
        (LATE.partition(", input")[0], LATE),
    ],
)
def test_the_layout_of_an_odd_line_hides_nothing_of_later_ones(odd: str, whole: str) -> None:
    """Whatever a broken, shorter or other line lacks, the line after it is read as if it stood alone."""
    alone, after = report_of(whole), report_of(odd, whole)
    for name in ("prefill_batches", "decode_batches"):
        assert list(getattr(alone, name)) == list(getattr(after, name))[-len(getattr(alone, name)) :]


def decode(second: int, rank: str, running: int = 8, tokens: int = 100, rate: float = 50.0) -> str:
    return (
        f"[2026-01-01 00:00:{second:02d} {rank}] Decode batch, #running-req: {running}, #token: {tokens}, "
        f"token usage: 0.10, cuda graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: 0"
    )


def test_tensor_ranks_repeat_a_batch_and_data_ranks_do_not() -> None:
    """Two engines of four tensor ranks each: two batches, told by the lowest rank of each."""
    ranks = [f"DP{dp} TP{tp}" for tp in (3, 1, 0, 2) for dp in (1, 0)]
    report = report_of(*(decode(1, rank, rate=10.0 + place) for place, rank in enumerate(ranks)))
    rows = list(report.decode_batches)
    assert [row.rank for row in rows] == [{"dp": 1, "tp": 0}, {"dp": 0, "tp": 0}]
    assert [row.decode_tok_s for row in rows] == [14.0, 15.0]  # the places of TP0 in the list above


def test_two_equal_batches_of_one_rank_are_two() -> None:
    """A rank tells of a batch once, so its second equal line is another batch, which the other rank repeats."""
    lines = [decode(1, "TP0"), decode(1, "TP0"), decode(1, "TP1"), decode(1, "TP1")]
    assert len(report_of(*lines).decode_batches) == 2


def test_the_second_on_which_ranks_disagree_does_not_split_a_batch() -> None:
    assert len(report_of(decode(1, "PP0 TP0"), decode(2, "PP1 TP0")).decode_batches) == 1


def test_equal_batches_seconds_apart_are_two() -> None:
    assert len(report_of(decode(1, "TP0"), decode(9, "TP1")).decode_batches) == 2


def test_snapshot_on_the_way_does_not_count_a_batch_twice() -> None:
    reader = LogReader("sglang")
    reader.feed(decode(1, "TP0") + "\n" + decode(1, "TP1") + "\n" + "[2026-01-01 00:00:01] x\n")
    assert len(reader.report().decode_batches) == 1
    reader.feed(decode(1, "TP2") + "\n")
    assert len(reader.finish().decode_batches) == 1


def test_health_poll_and_warm_up_are_batches_too() -> None:
    """They are one-token and 13-token prefills in the log; the reader keeps them, statistics leave them out."""
    line = PREFILL["0.5.2, ends with a comma"][0].replace("103", "1")
    assert [row.new_tokens for row in report_of(line).prefill_batches] == [1]


def test_cut_line_keeps_its_whole_pairs_and_counts_as_unparsed() -> None:
    line = DECODE["0.5.12, hybrid"][0]
    report = report_of(line[: line.index("usage: 0.13") + len("usage: 0.1")])
    (row,) = report.decode_batches
    assert (row.running, row.tokens, row.kv_usage, row.mamba_usage) == (4, 900, 0.2, None)
    assert report.unparsed == 1


@pytest.mark.parametrize("cut", ["#queue-", "gen through", "(token/s): 64.", "mamba us"])
def test_wrapped_line_is_read_whole(cut: str) -> None:
    """A terminal breaks a line anywhere; what follows has no prefix."""
    line = DECODE["0.5.12, hybrid"][0]
    place = line.index(cut) + len(cut)
    report = report_of(line[:place], line[place:], decode(20, "TP0", running=3))
    rows = list(report.decode_batches)
    assert [row.running for row in rows] == [4, 3]
    assert (rows[0].decode_tok_s, rows[0].mamba_usage, rows[0].queued) == (64.2, 0.13, 2)


def test_two_statements_glued_into_one_line() -> None:
    one, other = decode(1, "TP0", running=5), decode(8, "TP0", running=6)
    assert [row.running for row in report_of(one + other).decode_batches] == [5, 6]
    mixed = report_of(PREFILL["0.5.2, ends with a comma"][0] + other)
    assert [row.new_tokens for row in mixed.prefill_batches] == [103]
    assert [row.running for row in mixed.decode_batches] == [6]


def test_progress_bar_glued_in_front_or_behind() -> None:
    bar = " 43%|████▎     | 52/122 [01:16<00:30,  2.30it/s]"
    report = report_of(bar + decode(1, "TP0"), decode(9, "TP0") + bar)
    assert [row.queued for row in report.decode_batches] == [0, 0]
    assert report.unparsed == 0


def test_time_without_date_may_pass_midnight() -> None:
    line = (
        "[{} TP0] Decode batch. #running-req: 1, #token: 1, token usage: 0.00, "
        "gen throughput (token/s): 1.00, #queue-req: 0"
    )
    report = report_of(line.format("23:59:59"), line.format("00:00:40"))
    assert [row.t for row in report.decode_batches] == ["T23:59:59", "T00:00:40"]


CORE = decode(26, "DP1 TP3 EP3")
PREFIXES = {
    "Kubernetes": "2026-01-10T13:23:27.123456789Z stdout F ",
    "compose": "sglang-1  | ",
    "Ray": "(SGLangActor pid=1234, ip=10.0.0.1) ",
    "colour": "\x1b[32m",
    "syslog": "Jan 10 13:23:27 node7 sglang[812]: ",
    "srun": "3: ",
    "mpirun": "[1,3]<stderr>:",
    "box": "│ ",
}


@pytest.mark.parametrize("name", PREFIXES)
def test_prefixes_of_what_runs_the_server(name: str) -> None:
    (row,) = report_of(PREFIXES[name] + CORE).decode_batches
    assert (row.t, row.rank, row.queued) == ("2026-01-01T00:00:26", {"dp": 1, "tp": 3, "ep": 3}, 0)


@pytest.mark.parametrize(
    ("tags", "rank"),
    [
        ("TP3 DP1", {"tp": 3, "dp": 1}),
        ("TP13", {"tp": 13}),
        ("DP0 PP1 ATTN_CP2 MOE_DP1 TP3 EP3", {"dp": 0, "pp": 1, "attn_cp": 2, "moe_dp": 1, "tp": 3, "ep": 3}),
    ],
)
def test_rank_tags_in_any_order(tags: str, rank: dict[str, int]) -> None:
    (row,) = report_of(decode(26, tags)).decode_batches
    assert row.rank == rank


def test_line_that_somebody_shortened_gives_what_it_has() -> None:
    """A value of two decimals, or a word, is whole at the end of a line; anything else may have been cut."""
    report = read_log(
        [
            "Decode batch, #running-req: 1, #token: 23128, gen throughput (token/s): 54.17",
            "Decode batch, #running-req: 1, #token: 104, cuda graph: True",
            "Decode batch, #running-req: 4, #token: 1000, token usage: 0.1",
            "Prefill batch, #new-token: 44, #cached-token: 0, cuda graph: False",
        ],
        "sglang",
    )
    found = [(row.running, row.tokens, row.kv_usage, row.graph, row.decode_tok_s) for row in report.decode_batches]
    assert found == [(1, 23128, None, None, 54.17), (1, 104, None, True, None), (4, 1000, None, None, None)]
    (prefill,) = report.prefill_batches
    assert (prefill.new_seq, prefill.new_tokens, prefill.cached_tokens, prefill.graph) == (None, 44, 0, False)
    assert report.unparsed_examples == ("Decode batch, #running-req: 4, #token: 1000, token usage: 0.1",)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("[DP1 TP1] Decode batch, accept len: 2.34, accept rate: 0.78, cuda graph: True",
         {"rank": {"dp": 1, "tp": 1}, "accept_len": 2.34, "accept_rate": 0.78, "graph": True, "running": None}),
        ("[22:54:04 DP28] Decode batch, #running-req: 1, #token: 364032, token usage: 1.00,",
         {"t": "T22:54:04", "rank": {"dp": 28}, "running": 1, "tokens": 364032, "kv_usage": 1.0}),
        ("Decode batch,  ... full token usage: 0.01, swa token usage: 0.00, ...", {"kv_usage": 0.01, "swa_usage": 0.0}),
        ("[2026-01-01 00:00:01] Decode batch, #running-req: 2, #token: 100, token usage: 0.5, accept len: 3.812, "
         "cuda graph: True, gen throughput (token/s): 80, #queue-req: 0",
         {"kv_usage": 0.5, "accept_len": 3.812, "decode_tok_s": 80.0, "queued": 0}),
    ],
)  # fmt: skip
def test_decode_line_that_somebody_shortened(line: str, wanted: dict[str, object]) -> None:
    """Any key may come first, and a figure before a comma is whole, whatever its decimals."""
    (row,) = read_log([line], "sglang").to_dict()["decode_batches"]
    assert {key: row.get(key) for key in wanted} == wanted


def test_prefill_line_that_somebody_shortened() -> None:
    report = read_log(
        [
            "[2026-09-21 06:38:25 TP0] Prefill batch, #new-seq: 1, #running-req: 1, #queue-req: 2, mamba usage: 0.29",
            "[2026-09-21 06:38:26 TP0] Prefill batch, #new-seq: 2, #cached-token: 1280, #running-req: 1, "
            "mamba usage: 0.89",
        ],
        "sglang",
    )
    found = [
        (row.new_seq, row.new_tokens, row.cached_tokens, row.running, row.queued) for row in report.prefill_batches
    ]
    assert found == [(1, None, None, 1, 2), (2, None, 1280, 1, None)]
    assert report.unparsed == 0


def test_a_comma_between_digits_ends_no_figure() -> None:
    (row,) = report_of(
        "Decode batch, #running-req: 2, gen throughput (token/s): 1,234.56, #queue-req: 0"
    ).decode_batches
    assert (row.running, row.decode_tok_s, row.queued) == (2, None, 0)


@pytest.mark.parametrize(
    ("ranks", "engines"),
    [
        (["DP0 TP0", "DP2 TP2", "DP5 TP5", "DP6 TP6", "DP7 TP7"], 8),
        (["DP9 TP9", "DP13 TP13"], None),
        (["DP0 TP0"], None),
        (["TP0"], None),
    ],
)
def test_number_of_engines_is_known_where_most_of_them_are_seen(ranks: list[str], engines: int | None) -> None:
    assert report_of(*(decode(1, rank) for rank in ranks)).startup.dp_size == engines


def test_number_of_engines_grows_with_the_log() -> None:
    reader = LogReader("sglang")
    reader.feed(decode(1, "DP0 TP0") + "\n" + decode(1, "DP1 TP1") + "\n" + "[2026-01-01 00:00:01] x\n")
    assert reader.report().startup.dp_size == 2
    reader.feed(decode(2, "DP2 TP2") + "\n")
    assert reader.finish().startup.dp_size == 3


def test_decode_line_that_somebody_broke_after_a_comma() -> None:
    """The queue was left out, so that nothing but the throughput says where the statement ends."""
    broken = [
        "Decode batch, #running-req: 1, #full token: 109, ... mamba num: 3,",
        "  cuda graph: True, gen throughput (token/s): 2.94",
    ]
    rows = list(report_of(*broken, decode(20, "TP0", running=3)).decode_batches)
    assert [(row.running, row.tokens, row.graph, row.decode_tok_s) for row in rows] == [
        (1, 109, True, 2.94),
        (3, 100, True, 50.0),
    ]


def test_what_somebody_left_out_at_the_end_is_no_line_that_was_not_read() -> None:
    report = report_of(
        "[2026-06-05 17:17:12] Prefill batch, #new-token: 256, #cached-token: 3584, token usage: 0.06, ...",
        "[2026-06-05 17:17:19 TP0] Decode batch, #running-req: 1, #full token: 3840, full token usage: 0.06, ...",
    )
    assert [(row.new_tokens, row.cached_tokens) for row in report.prefill_batches] == [(256, 3584)]
    assert [(row.tokens, row.kv_usage) for row in report.decode_batches] == [(3840, 0.06)]
    assert report.unparsed == 0


@pytest.mark.parametrize("device", ["cuda", "cpu", "npu", "xpu", "musa"])
def test_graphs_have_another_name_on_each_device(device: str) -> None:
    lines = [decode(second, "TP0").replace("cuda graph", f"{device} graph") for second in (1, 2, 3)]
    assert [row.graph for row in report_of(*lines).decode_batches] == [True] * 3
