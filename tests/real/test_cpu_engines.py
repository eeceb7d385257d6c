"""Real vLLM and real SGLang on the CPU: installed, started with the tiny model, asked, reset, counted, stopped.

The environments are installed under `.envs` on first use, which takes minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import docker
import httpx
import pandas as pd
import psutil
import pytest
from relay import Relay

from crossover.client import Endpoint
from crossover.configuration import effective_configuration
from crossover.deployment.asked_and_got import changed_settings
from crossover.engines import get_engine
from crossover.engines.endpoints import read_counters, reset_cache
from crossover.engines.information import server_info
from crossover.environments import ensure, find_definition
from crossover.launchers import LaunchError, ServerSpec, get_launcher, wait_ready
from crossover.logs import read_log
from crossover.models import TinyModel, generate

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
READY_S = 400
ENGINES = {
    "vllm": (
        "vllm-0.32.0-cpu",
        {"max-model-len": 4096, "enforce-eager": True},
        {"VLLM_CPU_KVCACHE_SPACE": 1, "VLLM_LOG_STATS_INTERVAL": 1, "HF_HUB_OFFLINE": 1},
    ),
    "sglang": (
        "sglang-0.5.23-cpu",
        {
            "device": "cpu",
            "attention-backend": "torch_native",
            "sampling-backend": "pytorch",
            "disable-cuda-graph": True,
            "disable-overlap-schedule": True,
            "context-length": 4096,
            "max-total-tokens": 40000,
            "enable-metrics": True,
        },
        {"SGLANG_USE_CPU_ENGINE": 1, "HF_HUB_OFFLINE": 1},
    ),
}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def environment(engine):
    return ensure(find_definition(ENGINES[engine][0], ROOT / "envs"), ROOT / ".envs", print)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    generate(TinyModel(), folder)
    return folder


def spec(engine, environment, model, **more):
    _, arguments, variables = ENGINES[engine]
    return ServerSpec(
        engine,
        arguments | more.pop("arguments", {}),
        str(model),
        "k1",
        environment=variables,
        served_model_name="tiny",
        cache_reset=True,
        options={"python_environment": str(environment.path)},
    )


def stream(server, prompt):
    """Returns the texts of a streamed completion of eight tokens, and its usage."""
    body = {"model": "tiny", "prompt": prompt, "max_tokens": 8, "temperature": 0, "ignore_eos": True, "stream": True}
    body["stream_options"] = {"include_usage": True}
    texts, usage = [], None
    with httpx.stream("POST", f"{server.base_url}/v1/completions", json=body, timeout=120, trust_env=False) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                event = json.loads(line.removeprefix("data: "))
                texts += [choice["text"] for choice in event["choices"]]
                usage = event.get("usage") or usage
    return texts, usage


# Settings that a source states, by the source that must be the one.
STATED = {
    "vllm": {
        "block_size": (128, "/metrics"),
        "memory_fraction": (0.92, "/metrics"),
        "kv_cache_memory_bytes": (1 << 30, "/metrics"),
        "tensor_parallel": (1, "log"),
        "disable_custom_all_reduce": (True, "log"),
        "graph_mode": ("NONE", "log"),
        "max_running_requests": (128, "/server_info"),
        "max_batched_tokens": (2048, "/server_info"),
    },
    "sglang": {
        "kv_cache_dtype": ("bfloat16", "log"),
        "attention_backend": ("torch_native", "/server_info internal_states"),
        "max_running_requests": (4096, "/server_info internal_states"),
        "kv_cache_tokens": (40000, "/server_info internal_states"),
    },
}


def check_configuration(engine, server):
    """Log, endpoints and metrics of the running server give one configuration, which is what was asked for."""
    data = get_engine(engine)
    info = server_info(data, server.base_url)
    assert len(info) == len(data.info_paths) + 1  # and the metrics
    _, arguments, variables = ENGINES[engine]
    report = read_log(server.log_path, engine=engine).to_dict()
    asked = {"arguments": arguments, "environment": variables}
    found = {one.name: one for one in effective_configuration(engine, report, info, asked).settings}
    assert {one.flag: one.verdict for one in found.values() if one.flag in arguments} == dict.fromkeys(
        arguments, "as asked"
    )
    assert [one for one in found.values() if one.disagree or one.verdict == "changed"] == []
    stated = STATED[engine]
    assert {name: (found[name].value, found[name].source) for name in stated} == stated
    assert len(found["max_model_len"].stated) >= 3


def test_starts_streams_resets_counts_and_stops(engine, environment, model, tmp_path):
    data = get_engine(engine)
    server = get_launcher("process").start(spec(engine, environment, model), tmp_path)
    try:
        wait_ready(server, data, Endpoint(server.base_url, "tiny"), READY_S)
        before = read_counters(data, server.base_url)
        texts, usage = stream(server, [300] * 50)  # as token ids
        after = read_counters(data, server.base_url)
        assert "".join(texts)
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (50, 8)
        assert before is not None
        assert after is not None
        assert after["prompt_tokens"] - before["prompt_tokens"] == 50
        assert after["generation_tokens"] - before["generation_tokens"] == 8
        assert reset_cache(data, server.base_url) is True
        check_configuration(engine, server)
        assert server.owns_port() is True
        pids = server.pids
    finally:
        status = server.stop(60)
    assert (status.kind, status.forced) == ("stopped", False)
    assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]
    assert environment.manifest["version"].startswith(ENGINES[engine][0].split("-")[1])


# The parser's name, and the field that carries reasoning.
REASONING = {"vllm": ("deepseek_r1", "reasoning"), "sglang": ("deepseek-r1", "reasoning_content")}
THOUGHT_TOKENS, REQUESTS, OUTPUT_TOKENS = 40, 8, 96


# What these engines change on a CPU, and what is told of it.
CHANGED = {
    "vllm": (
        {"disable-custom-all-reduce": False},
        "asked for disable-custom-all-reduce False, got disable_custom_all_reduce True (log)",
    ),
    "sglang": (
        {"sampling-backend": "flashinfer"},
        "asked for sampling-backend flashinfer, got sampling_backend pytorch (/server_info internal_states)",
    ),
}


@pytest.fixture(scope="module")
def thinking_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thinking")
    generate(TinyModel(thinking_tokens=THOUGHT_TOKENS), folder)
    return folder


def bench(url, model, out):
    """Runs `crossover bench` as a user does and returns its summary and the two tables."""
    size = ["--random-input", "100", "--random-output", str(OUTPUT_TOKENS), "--requests", str(REQUESTS)]
    command = [sys.executable, "-m", "crossover.cli", "bench", "--url", url, "--model", "tiny", "--json", *size]
    command += ["--concurrency", "2", "--tokenizer", str(model / "tokenizer.json"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout), *(pd.read_parquet(out / f"{name}.parquet") for name in ("requests", "events"))


def test_reasoning_stops_the_ttft_clock_and_content_the_ttfot_clock(engine, environment, thinking_model, tmp_path):
    """What a relay on the way saw of the very same streams, read without the package, is the measure. On the way, for
    a start costs half a minute: a setting that the engine changes is told."""
    parser, field = REASONING[engine]
    wanted = spec(engine, environment, thinking_model, arguments={"reasoning-parser": parser, **CHANGED[engine][0]})
    server = get_launcher("process").start(wanted, tmp_path)
    try:
        wait_ready(server, get_engine(engine), Endpoint(server.base_url, "tiny"), READY_S)
        info = server_info(get_engine(engine), server.base_url)
        asked = {"arguments": wanted.arguments, "environment": wanted.environment}
        assert changed_settings(engine, server.log_path, info, asked) == [CHANGED[engine][1]]
        before = read_counters(get_engine(engine), server.base_url)
        with Relay(int(server.base_url.rpartition(":")[2])) as relay:
            summary, requests, events = bench(relay.base_url, thinking_model, tmp_path / "bench")
        after = read_counters(get_engine(engine), server.base_url)
    finally:
        server.stop(60)

    seen = {answer.request_id: answer for answer in relay.answers}
    assert summary["requests"] == {"ok": REQUESTS, "failed": 0, "incomplete": 0}
    for row in requests.itertuples():
        answer, mine = seen[row.request_id], events[events["request"] == row.request]
        for kind, name in (("reasoning", field), ("content", "content")):
            handed_over, done = answer.first(name)
            # The kernel stamps a segment on the loopback while it is handed over, or soon after where it is busy;
            # the other kind's first event is 40 steps away.
            assert handed_over <= mine.loc[mine["kind"] == kind, "t_kernel_ns"].min() <= done + 50_000_000, kind
        assert row.completion_tokens == answer.usage()["completion_tokens"] == OUTPUT_TOKENS
        shown = "".join(c["delta"].get(field) or "" for event, _ in answer.events() for c in event["choices"])
        assert len(shown.split()) == THOUGHT_TOKENS

    # The figures are the means of these very spans.
    for figure, name in (("ttft_s", field), ("ttfot_s", "content")):
        spans = [(seen[row.request_id].first(name)[0] - row.sent_ns) / 1e9 for row in requests.itertuples()]
        assert summary[figure]["mean"] == pytest.approx(sum(spans) / REQUESTS, abs=0.02), figure
    # Every token of the streams, those of the probe too, is in the engine's counter, and ours in the summary.
    assert summary["tokens"]["completion"] == REQUESTS * OUTPUT_TOKENS
    streamed = sum(answer.usage()["completion_tokens"] for answer in relay.answers if answer.raw.startswith(OK))
    assert after["generation_tokens"] - before["generation_tokens"] == streamed
    assert events.loc[events["tokens"] > 0, "tokens"].sum() == pytest.approx(REQUESTS * OUTPUT_TOKENS, abs=REQUESTS)


OK = b"HTTP/1.1 200"


def test_a_wrong_flag_is_told_by_its_own_words(engine, environment, model, tmp_path):
    wrong = spec(engine, environment, model, arguments={"no-such-flag": 7})
    server = get_launcher("process").start(wrong, tmp_path)
    with pytest.raises(LaunchError, match="unrecognized arguments: --no-such-flag") as error:
        wait_ready(server, get_engine(engine), Endpoint(server.base_url, "tiny"), READY_S)
    assert error.value.kind == "invalid_argument"


# What the engine's own parser makes of our flags; each program prints the values as JSON.
PARSERS = {
    "vllm": """
import json, sys
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.entrypoints.launchers.cli_args import make_arg_parser
args = make_arg_parser(FlexibleArgumentParser()).parse_args(sys.argv[1:])
print(json.dumps({name: getattr(args, name) for name in %s}, default=str))
""",
    "sglang": """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
args = parser.parse_args(sys.argv[1:])
print(json.dumps({name: getattr(args, name) for name in %s}, default=str))
""",
}
ASKED = {
    "vllm": {
        "trust_remote_code": True,
        "enable_prefix_caching": False,
        "gpu_memory_utilization": 0.95,
        "max_num_batched_tokens": 32768,
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4},
        "middleware": ["a.b", "c.d"],
        "allowed_origins": ["http://a", "http://b"],
        "served_model_name": ["one", "two"],
        "enable_auto_tool_choice": True,
        "disable_log_stats": False,
        "enable_log_deltas": False,
    },
    "sglang": {
        "trust_remote_code": True,
        "tp_size": 8,
        "mem_fraction_static": 0.85,
        "chunked_prefill_size": 32768,
        "disable_custom_all_reduce": True,
        "enable_symm_mem": True,
        "context_length": 1000000,
        "kv_cache_dtype": "fp8_e4m3",
        "disable_radix_cache": False,
        "dllm_fdfo": False,
        "cuda_graph_bs_decode": [1, 2, 4],
        "json_model_override_args": {"rope_theta": 1},
    },
}


def test_the_engines_own_parser_reads_our_flags_as_meant(engine, environment):
    asked = ASKED[engine]
    command = get_engine(engine).command(asked, model_path="/w", host="127.0.0.1", port=8000)
    program = PARSERS[engine] % list(asked)
    first = command.index("serve") + 1 if engine == "vllm" else command.index("--model-path")
    words = [environment.python, "-c", program, *command[first:]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    read = json.loads(done.stdout.splitlines()[-1])
    # Some are parsed later, by the engine itself.
    parsed = {
        name: json.loads(read[name]) if isinstance(asked[name], dict) and isinstance(read[name], str) else read[name]
        for name in read
    }
    assert parsed == asked


INTROSPECTION = {
    "vllm": """
import json
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.entrypoints.launchers.cli_args import make_arg_parser
parser = make_arg_parser(FlexibleArgumentParser())
""",
    "sglang": """
import argparse, json
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
""",
}


def test_switches_are_paired_as_the_engines_parser_has_them(engine, environment):
    program = INTROSPECTION[engine] + (
        "names = lambda kind: [o[2:] for a in parser._actions if kind in type(a).__name__ for o in a.option_strings"
        " if o.startswith('--') and not o.startswith('--no-')]\n"
        "print(json.dumps([names('BooleanOptional'), names('StoreTrue')]))"
    )
    done = subprocess.run([environment.python, "-c", program], capture_output=True, text=True, timeout=400)
    pairs, singles = json.loads(done.stdout.splitlines()[-1])
    assert len(pairs) + len(singles) > 90

    def rendered(name):
        words = get_engine(engine).command({name: False}, model_path="/w", host="h", port=1)
        return f"--no-{name}" in words

    assert [name for name in pairs if not rendered(name)] == []
    assert [name for name in singles if rendered(name)] == []


def test_it_runs_in_a_container_as_well(engine, environment, model, tmp_path, monkeypatch):
    """The environment and its base interpreter are mounted into the small Debian of the container tests."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    try:
        docker.from_env().images.get("crossover-test")
    except docker.errors.DockerException as error:
        pytest.skip(f"{error}; run .ci/services.sh")
    question = [environment.python, "-c", "import sys; print(sys.base_prefix)"]
    base = subprocess.run(question, capture_output=True, text=True, check=True).stdout.strip()
    _, arguments, variables = ENGINES[engine]
    # PYTHONPATH of the image holds another package of the engine's name.
    paths = {"PATH": f"{environment.path}/bin:/usr/bin:/bin", "PYTHONPATH": "", "HOME": "/tmp"}
    wanted = ServerSpec(
        engine,
        arguments,
        str(model),
        "k1",
        environment=variables | paths,
        cache_reset=True,
        options={
            "image": "crossover-test",
            "shm_size": "1g",
            "mounts": [{"source": path, "target": path} for path in (str(environment.path), base)],
        },
    )
    data = get_engine(engine)
    server = get_launcher("docker").start(wanted, tmp_path)
    try:
        wait_ready(server, data, Endpoint(server.base_url, server.model_name), READY_S)
        assert server.model_name == "/models/target"
        assert reset_cache(data, server.base_url) is True
        assert server.owns_port() is True
    finally:
        status = server.stop(60)
    assert (status.kind, status.forced) == ("stopped", False)
