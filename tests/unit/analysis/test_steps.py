"""The engine report of a run: what the log says, merged with what cell.json kept of the endpoints."""

from __future__ import annotations

import json

from crossover.analysis.steps import configured

REPORT = {"engine": "vllm", "effective_config": {"block_size": 16, "raw": {"engine": {}}}, "startup": {}}


def test_endpoints_add_to_the_log_and_the_engine_s_own_names_stay(tmp_path) -> None:
    cell = tmp_path / "cell.json"
    cell.write_text(
        json.dumps(
            {
                "server_info": {"/v1/models": {"data": [{"id": "m", "max_model_len": 4096}]}},
                "requested_config": {"arguments": {"max-model-len": 8192}, "environment": {}},
            }
        )
    )
    made = configured("vllm", REPORT, cell)
    assert made["effective_config"] == {"block_size": 16, "max_model_len": 4096, "raw": {"engine": {}}}
    assert made["configuration"]["sources"] == ["log", "/v1/models"]
    settings = {one["setting"]: one for one in made["configuration"]["settings"]}
    assert settings["max_model_len"] == {
        "setting": "max_model_len",
        "value": 4096,
        "source": "/v1/models",
        "stated": {"/v1/models": 4096},
        "disagree": False,
        "flag": "max-model-len",
        "requested": 8192,
        "verdict": "changed",
    }


def test_without_a_cell_the_log_alone_speaks(tmp_path) -> None:
    made = configured("vllm", REPORT, tmp_path / "cell.json")
    assert made["effective_config"] == REPORT["effective_config"]
    assert [one["verdict"] for one in made["configuration"]["settings"]] == [None]
