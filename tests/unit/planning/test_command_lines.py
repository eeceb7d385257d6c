"""The printed command of a server is the launched one: run by a shell, or read as the Docker API reads it."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from crossover.cli import main
from crossover.engines.rendering import value_text
from crossover.experiment import expand, load_experiment
from crossover.launchers import get_launcher
from crossover.planning import build_plan
from crossover.planning.command_lines import _spec, command_lines
from crossover.recipes import Store

CONFIG = Path(__file__).parents[3] / "config"
EXPERIMENTS = sorted(path.stem for path in (CONFIG / "experiments").glob("*.yaml"))
DIGEST = "sha256:" + "5" * 64
COMMIT = "c" * 40

# A program that writes down how it was called.
RECORDER = """#!{python}
import json, os, sys
json.dump([sys.argv[1:], dict(os.environ)], open(os.environ["RECORD"], "w"))
"""
ODD = {
    "flag": True,
    "no-flag": False,
    "left-out": None,
    "json": {"a b": [1, "it's", 'say "no"'], "c": {"d": None, "e": True}},
    "several": ["one", "two words", "$HOME", "`id`", "*"],
    "negative": -1,
    "text": "semi;colon & pipe | back\\slash ümlaut\nnew line",
    "empty": "",
}


def plan_of(tmp_path, variant, models=None, **more):
    data = {
        "title": "Commands",
        "hardware": {"gpu": "NVIDIA B300", "gpus": 8},
        "models": models or {},
        "variants": {"v": {"engine": "vllm", **variant}},
        "workloads": [{"dataset": "random", "input_tokens": 20, "output_tokens": 5, "concurrency": 2, "requests": 2}],
        **more,
    }
    file = tmp_path / "e.yaml"
    file.write_text(yaml.safe_dump(data))
    experiment = load_experiment(file)
    return build_plan(experiment, expand(experiment), Store(tmp_path / "results"))


def shown(name, tmp_path):
    experiment = load_experiment(CONFIG / "experiments" / f"{name}.yaml")
    return command_lines(build_plan(experiment, expand(experiment), Store(tmp_path / "results")))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_printed_command_is_one_that_a_shell_takes(name, tmp_path, capsys):
    assert main(["plan", name, "--commands", "--json", "--store", str(tmp_path / "results")]) == 0
    commands = json.loads(capsys.readouterr().out)["commands"]
    assert commands
    for command in commands.values():
        assert "\n" not in command
        subprocess.run(["bash", "-n", "-c", command], check=True)
        assert len(shlex.split(command)) > 5


@pytest.mark.parametrize(("engine", "program"), [("vllm", "vllm"), ("sglang", "python3")])
def test_a_pasted_command_calls_the_engine_as_the_launcher_does(tmp_path, monkeypatch, engine, program):
    (tmp_path / "bin").mkdir()
    recorder = tmp_path / "bin" / program
    recorder.write_text(RECORDER.format(python=sys.executable))
    recorder.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("HF_TOKEN", "canary 'quoted' $value")
    environment = {"ONE": True, "TWO": "a b'c $HOME", "JSON": '{"x": 1}', "VLLM_NO_USAGE_STATS": None}
    variant = {"engine": engine, "arguments": ODD | {"port": 8000}, "environment": environment, "secrets": ["HF_TOKEN"]}
    models = {"m": {"hub": "local", "path": "weights folder"}}
    (tmp_path / "weights folder").mkdir()
    (tmp_path / "weights folder" / "config.json").write_text("{}")
    plan = plan_of(tmp_path, variant | {"model": "m", "launcher": {"kind": "process"}}, models)
    (command,) = command_lines(plan).values()
    assert "canary" not in command

    pasted, launched = tmp_path / "pasted.json", tmp_path / "launched.json"
    subprocess.run(["bash", "-c", command], check=True, env={**os.environ, "RECORD": str(pasted)}, cwd=tmp_path)
    spec = _spec(plan, plan.deployments[0])
    spec.environment["RECORD"] = str(launched)
    server = get_launcher("process").start(spec, tmp_path / "live")
    while server.poll() is None:
        time.sleep(0.01)
    words, variables = json.loads(pasted.read_text())
    assert (words, {name: variables.get(name) for name in (*environment, "HF_TOKEN")}) == (
        json.loads(launched.read_text())[0],
        {name: json.loads(launched.read_text())[1].get(name) for name in (*environment, "HF_TOKEN")},
    )
    assert variables["ONE"] == "1"
    assert variables["HF_TOKEN"] == "canary 'quoted' $value"
    assert ODD["text"] in words


def test_a_server_that_is_not_ours_is_a_comment(tmp_path):
    plan = plan_of(tmp_path, {"launcher": {"kind": "external", "url": "http://127.0.0.1:1"}})
    (command,) = command_lines(plan).values()
    assert command.startswith("# nothing is started")


def test_apptainer_gets_variables_by_its_own_names(tmp_path):
    variant = {"image": f"vllm/vllm-openai@{DIGEST}", "secrets": ["HF_TOKEN"], "launcher": {"kind": "apptainer"}}
    (command,) = command_lines(plan_of(tmp_path, variant | {"environment": {"ONE": "a b"}})).values()
    words = shlex.split(command)
    assert words[:4] == [
        "APPTAINERENV_VLLM_NO_USAGE_STATS=1", "APPTAINERENV_ONE=a b", "APPTAINERENV_HF_TOKEN=$HF_TOKEN", "apptainer",
    ]  # fmt: skip
    assert words[words.index(f"docker://vllm/vllm-openai@{DIGEST}") + 1 :][:2] == ["vllm", "serve"]
    assert 'APPTAINERENV_HF_TOKEN="$HF_TOKEN"' in command


def test_gpustack_is_shown_with_its_own_placeholders(tmp_path):
    launcher = {"kind": "gpustack", "server": "http://127.0.0.1:1", "token_env": "T"}
    (command,) = command_lines(plan_of(tmp_path, {"arguments": {"max-model-len": 5}, "launcher": launcher})).values()
    words = shlex.split(command)
    assert words[:4] == ["VLLM_NO_USAGE_STATS=1", "vllm", "serve", "{{model_path}}"]
    assert words[-2:] == ["--max-model-len", "5"]


def test_a_container_with_all_its_settings(tmp_path):
    launcher = {
        "kind": "docker", "shm_size_gib": 0.5, "memory_gib": 2, "ipc": "private", "network": "bridge",
        "ulimits": {"memlock": -1, "stack": 67108864}, "mounts": {"/data, more": "/data"}, "gpus": [0, 3],
        "capabilities": ["SYS_NICE"], "init": True, "user": "1000:1000",
    }  # fmt: skip
    variant = {"image": f"vllm/vllm-openai@{DIGEST}", "model": "m", "secrets": ["HF_TOKEN"], "launcher": launcher}
    variant["arguments"] = {"host": "0.0.0.0", "port": 9000}
    models = {"m": {"hub": "huggingface", "repo": "owner/model", "commit": COMMIT}}
    (command,) = command_lines(plan_of(tmp_path, variant, models)).values()
    cache = (
        os.environ.get("CROSSOVER_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'}/crossover"
    )
    # 0.5 GiB are 536870912 bytes; the comma in the path makes its field one in quotes.
    assert shlex.split(command) == [
        "docker", "run", "--rm", "--gpus", '"device=0,3"', "--shm-size", "536870912b",
        "--memory", "2g", "--memory-swap", "2g", "--ulimit", "memlock=-1:-1", "--ulimit", "stack=67108864:67108864",
        "--network", "bridge", "--ipc", "private", "--user", "1000:1000",
        "--init", "--cap-drop", "ALL", "--cap-add", "SYS_NICE", "--security-opt", "no-new-privileges",
        "--mount", f"type=bind,source={cache}/weights/huggingface/owner/model/{COMMIT},target=/models/target,readonly",
        "--mount", 'type=bind,"source=/data, more",target=/data,readonly',
        "--publish", "127.0.0.1:9000:9000/tcp", "--env", "VLLM_NO_USAGE_STATS=1", "--env", "HF_TOKEN",
        "--entrypoint", "vllm", f"vllm/vllm-openai@{DIGEST}",
        "serve", "/models/target", "--host", "0.0.0.0", "--port", "9000", "--served-model-name", "owner/model",
    ]  # fmt: skip


def flags_of(words):
    """Returns the flags of a command line, each with the words behind it."""
    flags, name = {}, None
    for word in words:
        if word.startswith("--"):
            name = word[2:]
            assert name not in flags, "given twice"
            flags[name] = []
        elif name is not None:
            flags[name].append(word)
    return flags


def locked(name, tmp_path):
    """Returns the commands of a published experiment with its images locked, each with the image's own words apart."""
    folder = tmp_path / "config"
    (folder / "locks").mkdir(parents=True)
    for kind in ("engines", "published", "retest", "experiments"):
        (folder / kind).symlink_to(CONFIG / kind)
    experiment = load_experiment(folder / "experiments" / f"{name}.yaml")
    images = {
        one.fields["image"]: f"{one.fields['image'].partition(':')[0]}@{DIGEST}" for one in experiment.variants.values()
    }
    (folder / "locks" / f"{name}.lock.yaml").write_text(yaml.safe_dump({"images": images, "models": {}}))
    plan = build_plan(experiment, expand(experiment), Store(tmp_path / "results"))
    parts = {}
    for label, command in command_lines(plan).items():
        words = shlex.split(command)
        entry = words.index("--entrypoint")
        parts[label] = words[:entry], [words[entry + 1], *words[entry + 3 :]], words[entry + 2]
    return experiment, parts


# As the published page has them: all GPUs, the host's network and shared memory, nothing besides.
CONTAINER = ["--gpus", "all", "--shm-size", "64g", "--network", "host", "--ipc", "host"]
ISOLATION = ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]


@pytest.mark.parametrize(
    ("name", "published", "front", "ours"),
    [
        ("kimi-k3-b300", "kimi-k3-b300", {"vllm": "vllm serve", "sglang": "python3 -m sglang.launch_server"},
         {"vllm": {"host": ["127.0.0.1"], "port": ["8000"]},
          "sglang": {"model-path": ["/models/target"], "speculative-draft-model-path": ["/models/draft"]}}),
        ("vllm-upgrade", None, {"vllm-0.27.1": "vllm serve", "vllm-82a85dc1": "vllm serve"},
         {key: {"host": ["127.0.0.1"], "port": ["8000"]} for key in ("vllm-0.27.1", "vllm-82a85dc1")}),
    ],
)  # fmt: skip
def test_published_experiments_start_containers_and_servers_as_published(tmp_path, name, published, front, ours):
    experiment, parts = locked(name, tmp_path)
    assert set(parts) == set(front)
    for label, (container, server, image) in parts.items():
        variant = experiment.variants[label]
        assert image == f"{variant.fields['image'].partition(':')[0]}@{DIGEST}"
        assert container[: 3 + len(CONTAINER)] == ["docker", "run", "--rm", *CONTAINER]
        rest = container[3 + len(CONTAINER) :]
        mounts = [word for word in rest if word.startswith("type=bind")]
        assert [mount.split(",target=")[1] for mount in mounts] == ["/models/target,readonly", "/models/draft,readonly"]
        variables = [word for flag, word in itertools.pairwise(rest) if flag == "--env"]
        assert set(rest) - set(mounts) - set(variables) == {*ISOLATION, "--mount", *(["--env"] * bool(variables))}
        arguments, environment = dict(variant.arguments), dict(variant.environment)
        if published:
            facts = yaml.safe_load((CONFIG / "published" / f"{published}.yaml").read_text())
            assert arguments == facts["configuration"][label]["args"]
            assert environment == facts["configuration"][label].get("env", {})
            assert variant.fields["image"] == facts["images"][label]
        usage = {"VLLM_NO_USAGE_STATS": 1} if variant.engine == "vllm" else {}
        assert variables == [f"{key}={value}" for key, value in {**usage, **environment}.items()]
        _compare(label, server, front[label], arguments, ours[label], variant)


def _compare(label, server, front, arguments, ours, variant):
    assert server[: len(front.split())] == front.split()
    found = flags_of(server)
    assert found.pop("served-model-name") == ["moonshotai/Kimi-K3"]
    for flag, value in ours.items():
        assert found.pop(flag) == value
    expected = {}
    for flag, value in arguments.items():
        if flag == "speculative-config":
            value = {**value, "model": "/models/draft"}
        name = f"no-{flag}" if value is False else flag
        expected[name] = [] if isinstance(value, bool) else [value_text(value)]
    assert found == expected
