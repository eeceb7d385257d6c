"""The summary of a window, against values worked out by hand in the comments."""

from __future__ import annotations

import pandas as pd
import pytest

from crossover.telemetry import per_output_token, summarise

T0 = pd.Timestamp("2026-11-29T20:00:00Z").value
HEADER = {"interval_s": 1.0, "cpu_count": 8, "server_is_local": True, "gpus": [], "no_gpus": "no driver"}
GPUS = [{"index": i, "name": "NVIDIA B300", "uuid": f"GPU-{i}", "power_limit_w": 1100.0} for i in (0, 1)]


def at(second):
    return f"2026-11-29T20:00:{second:012.9f}Z"


def samples(seconds, **columns):
    host = {
        "client_cpu_s": 0.0, "client_memory_gib": 0.1, "server_cpu_s": 0.0, "server_memory_gib": 1.0,
        "server_processes": 3, "machine_cpu_s": 0.0, "machine_memory_gib": 8.0,
    }  # fmt: skip
    rows = pd.DataFrame({"t_ns": [T0 + round(second * 1e9) for second in seconds]})
    return rows.assign(**{**host, **columns})


def gpu(index, count, **columns):
    figures = {
        "power_w": 600.0, "energy_j": None, "memory_gib": 100.0, "utilisation": 0.9, "sm_clock_mhz": 1900,
        "memory_clock_mhz": 2600, "temperature_c": 60, "throttle": 0, "server": 1,
    }  # fmt: skip
    return {f"gpu{index}_{name}": value for name, value in {**figures, **columns}.items()}


def test_cpu_is_a_rate_and_memory_a_gauge_each_weighted_with_its_time_in_the_window():
    # Samples at 0..4 s; the window is 1.5 to 4 s, so the interval that ends at 2 s counts half.
    table = samples(range(5), server_cpu_s=[0, 1, 3, 6, 7], server_memory_gib=[9, 1, 2, 3, 4])
    found = summarise(HEADER, table, at(1.5), at(4))
    # cores before each sample: -, 1, 2, 3, 1; mean = (0.5*2 + 3 + 1) / 2.5
    assert found["server"]["cpu_cores"] == {"mean": 2.0, "min": 1.0, "max": 3.0}
    # GiB: (0.5*2 + 3 + 4) / 2.5
    assert found["server"]["memory_gib"] == {"mean": 3.2, "min": 2.0, "max": 4.0}
    assert (found["samples"], found["window_s"], found["covered_s"]) == (3, 2.5, 2.5)
    assert found["machine"]["cpu_count"] == 8
    assert found["missing"] == ["no GPU figures: no driver"]
    assert (found["power_w"], found["energy_j"], found["gpus"]) == (None, None, [])


def test_a_maximum_from_outside_the_window_stays_outside():
    table = samples(range(4), server_memory_gib=[1, 1, 1, 50])  # the last interval lies to 9/10 outside
    assert summarise(HEADER, table, at(0), at(2.1))["server"]["memory_gib"]["max"] == 1.0


def test_a_server_elsewhere_has_no_figures_and_nothing_sampled_is_said():
    found = summarise({**HEADER, "server_is_local": False}, samples(range(3)), at(0), at(2))
    assert found["server"] is None
    late = summarise(HEADER, samples(range(3)), at(10), at(12))
    assert late["client"] == {"cpu_cores": None, "memory_gib": None}
    assert "no sample lies in the window" in late["missing"]
    empty = summarise({}, pd.DataFrame(), at(10), at(12))
    assert (empty["samples"], empty["client"]["cpu_cores"]) == (0, None)


def test_energy_is_taken_from_the_counter_where_there_is_one_and_else_from_power():
    header = {**HEADER, "gpus": GPUS, "no_gpus": None}
    table = samples(
        range(3),
        **gpu(0, 3, energy_j=[5000.0, 5900.0, 6600.0]),  # 1600 J in 2 s, whatever the power samples say
        **gpu(1, 3, power_w=[0.0, 500.0, 300.0]),  # no counter: 500 + 300 J
    )
    found = summarise(header, table, at(0), at(2))
    assert found["energy_j"] == pytest.approx(2400)
    assert found["power_w"] == {"mean": 1000.0, "min": 900.0, "max": 1100.0}  # 600 + 500, 600 + 300
    assert per_output_token(found, 1200)["energy_j_per_output_token"] == pytest.approx(2.0)
    assert per_output_token(found, None)["energy_j_per_output_token"] is None
    assert per_output_token(None, 10) is None


def test_only_the_servers_gpus_count_for_power():
    header = {**HEADER, "gpus": GPUS, "no_gpus": None}
    found = summarise(header, samples(range(3), **gpu(0, 3), **gpu(1, 3, server=0)), at(0), at(2))
    assert [one["server"] for one in found["gpus"]] == [True, False]
    assert found["power_w"]["mean"] == 600.0
    unknown = summarise(header, samples(range(3), **gpu(0, 3, server=None), **gpu(1, 3, server=None)), at(0), at(2))
    assert unknown["power_w"]["mean"] == 1200.0
    assert any("which GPUs the server uses" in line for line in unknown["missing"])


def test_energy_is_withheld_where_samples_or_power_are_missing():
    header = {**HEADER, "gpus": GPUS[:1], "no_gpus": None}
    short = summarise(header, samples(range(3), **gpu(0, 3)), at(0), at(4))
    assert short["energy_j"] is None
    assert "no energy: the samples cover 2.0 s of 4.0 s" in short["missing"]
    silent = summarise(header, samples(range(3), **gpu(0, 3, power_w=None)), at(0), at(2))
    assert (silent["energy_j"], silent["power_w"]) == (None, None)
    assert "no energy: a GPU tells neither its power nor its energy" in silent["missing"]


def test_throttling_is_an_incident_with_its_share_of_the_time():
    header = {**HEADER, "gpus": GPUS, "no_gpus": None}
    # GPU 0: hot in one of four seconds, at its limit in two; GPU 1: idle bit alone, which is no throttling.
    table = samples(range(5), **gpu(0, 5, throttle=[0, 0x40, 0x4, 0x4, 0x2]), **gpu(1, 5, throttle=0x1))
    found = summarise(header, table, at(0), at(4))
    assert found["gpus"][0]["throttled"] == {"power_cap": 0.5, "hardware_thermal": 0.25}
    assert found["gpus"][1]["throttled"] == {}
    told = [(one["reason"], one["severity"], one["count"], one["message"]) for one in found["incidents"]]
    assert told == [
        ("power_cap", "info", 1, "clocks held down (power cap) on GPU 0, for up to 50.0 % of the cell"),
        (
            "hardware_thermal",
            "warning",
            1,
            "clocks held down (hardware thermal) on GPU 0, for up to 25.0 % of the cell",
        ),
    ]


def test_a_counter_that_begins_anew_or_stands_still_is_no_energy():
    header = {**HEADER, "gpus": GPUS[:1], "no_gpus": None}
    # A driver that is loaded again: 600 J a second, but for the second in which the counter fell.
    anew = [1000.0, 1600.0, 2200.0, 50.0, *(50.0 + 600 * more for more in range(1, 18))]
    found = summarise(header, samples(range(21), **gpu(0, 21, energy_j=anew)), at(0), at(20))
    assert found["energy_j"] == pytest.approx(12000)  # 600 W x 20 s
    still = summarise(header, samples(range(3), **gpu(0, 3, energy_j=[7.0, 7.0, 7.0])), at(0), at(2))
    assert still["energy_j"] == pytest.approx(1200)  # of the power, 600 W x 2 s


def test_energy_of_a_gpu_that_was_lost_on_the_way_is_withheld():
    header = {**HEADER, "gpus": GPUS[:1], "no_gpus": None}
    power = [600.0] * 6 + [None] * 5
    found = summarise(header, samples(range(11), **gpu(0, 11, power_w=power)), at(0), at(10))
    assert found["energy_j"] is None
    assert "no energy: GPU 0 told it for 5.0 s of 10.0 s" in found["missing"]


def test_somebody_else_on_the_servers_gpus_is_an_incident():
    header = {**HEADER, "gpus": GPUS, "no_gpus": None}
    shared = samples(range(3), **gpu(0, 3, others=[0, 2, 1]), **gpu(1, 3, server=0, others=5))
    (incident,) = summarise(header, shared, at(0), at(2))["incidents"]
    assert (incident["kind"], incident["severity"], incident["count"]) == ("gpu_shared", "warning", 1)
    assert incident["message"] == "up to 2 processes of somebody else were on GPU 0 with the server"
    # In a container of our own the driver's process ids say nothing.
    unknown = samples(range(3), **gpu(0, 3, server=0, others=1), **gpu(1, 3, server=0, others=1))
    assert summarise(header, unknown, at(0), at(2))["incidents"] == []


def test_a_divided_gpu_is_told():
    header = {**HEADER, "gpus": [{**GPUS[0], "mig": True}], "no_gpus": None}
    found = summarise(header, samples(range(3), **gpu(0, 3)), at(0), at(2))
    assert "GPU 0 is divided (MIG); power, energy and clocks are those of the whole GPU" in found["missing"]


def test_throttling_that_a_gpu_does_not_tell_is_not_none():
    header = {**HEADER, "gpus": GPUS[:1], "no_gpus": None}
    found = summarise(header, samples(range(3), **gpu(0, 3, throttle=None)), at(0), at(2))
    assert found["gpus"][0]["throttled"] is None
