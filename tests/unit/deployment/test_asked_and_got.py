"""What a deployment says as soon as the server is up: every setting that is not as asked for."""

from __future__ import annotations

import json
from pathlib import Path

from crossover.deployment.asked_and_got import changed_settings

VLLM = Path(__file__).parents[2] / "cases" / "configuration" / "vllm-0.32.0"


def test_a_line_for_each_changed_setting_and_none_for_the_others() -> None:
    """The server of the dump runs 128 requests at most, with a log interval of 1 s, and 4096 tokens."""
    info = {"/server_info": json.loads((VLLM / "server_info.json").read_text())}
    server = {
        "engine": "vllm",
        "arguments": {"max-num-seqs": 256, "max-model-len": 4096, "kv-cache-dtype": "auto"},
        "environment": {"VLLM_LOG_STATS_INTERVAL": 10},
    }
    assert changed_settings("vllm", VLLM / "engine.log", info, server) == [
        "asked for VLLM_LOG_STATS_INTERVAL 10, got VLLM_LOG_STATS_INTERVAL 1.0 (/server_info vllm_env)",
        "asked for max-num-seqs 256, got max_running_requests 128 (/server_info)",
    ]


def test_a_server_without_a_log_is_judged_by_its_endpoints(tmp_path) -> None:
    info = {"/v1/models": {"data": [{"id": "m", "max_model_len": 2048}]}}
    server = {"arguments": {"max-model-len": 4096}, "environment": {}}
    assert changed_settings("vllm", tmp_path / "engine.log", info, server) == [
        "asked for max-model-len 4096, got max_model_len 2048 (/v1/models)"
    ]
    assert changed_settings("openai", tmp_path / "engine.log", info, server) == []
