"""From an experiment to weights, prompts and the folder that a server gets, with weights of a hub and of a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from local_hub import Repository

from crossover import hubs, models
from crossover.cli import main
from crossover.deployment.weights import weights_folder
from crossover.errors import CrossoverError
from crossover.experiment import expand, load_experiment
from crossover.planning import build_plan
from crossover.planning.receipts import step_sheet_path, write_sheets
from crossover.preparation import prepare
from crossover.recipes import EntryState, Store

COMMIT = "c" * 40


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The files of a small model with a real tokenizer."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    models.generate(models.TinyModel(), folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def plan_of(folder: Path, model: dict):
    data = {
        "title": "Weights",
        "hardware": {"gpu": None, "gpus": 1},
        "models": {"m": model},
        "variants": {"v": {"engine": "vllm", "model": "m", "launcher": {"kind": "simulated", "time_scale": 100}}},
        "workloads": [{"dataset": "random", "input_tokens": 20, "output_tokens": 5, "concurrency": 2, "requests": 2}],
        "tokenizer": "model",
    }
    file = folder / "e.yaml"
    file.write_text(yaml.safe_dump(data))
    experiment = load_experiment(file)
    plan = build_plan(experiment, expand(experiment), Store(folder / "results"))
    write_sheets(plan)
    return plan


def make(plan, kind, key, said=None):
    return prepare(step_sheet_path(plan, kind, key), plan.store, (said if said is not None else []).append)


def weights_keys(plan):
    """Returns the keys of the tokenizer's and of the model's weights steps."""
    (prompts,) = {need for step in plan.steps.values() if step.kind == "prompts" for need in step.needs}
    return prompts[1], plan.deployments[0].server["model"]


@pytest.mark.parametrize("name", ["huggingface", "modelscope"])
def test_prompts_are_built_before_the_weights_have_come(hub, tiny, tmp_path, name):
    hub.repositories["owner/tiny"] = Repository({COMMIT: dict(tiny)}, {})
    plan = plan_of(tmp_path, {"hub": name, "repo": "owner/tiny", "commit": COMMIT})
    tokenizer, model = weights_keys(plan)
    assert tokenizer != model
    assert make(plan, "weights", tokenizer)
    prompts = [key for kind, key in plan.steps if kind == "prompts"]
    assert make(plan, "prompts", prompts[0]) == len(prompts)
    assert hub.downloads("model.safetensors") == []
    assert make(plan, "weights", model)
    assert not make(plan, "weights", model)
    folder = Path(weights_folder(plan.store, model))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == tiny
    manifest = json.loads((plan.store.read("weights", model).path / "manifest.json").read_text())
    assert set(manifest["files"]["config.json"]) == {"size", "sha256"}


@pytest.mark.parametrize("name", ["huggingface", "modelscope", "local"])
def test_weights_that_were_changed_are_noticed_before_a_server_starts_and_made_again(hub, tiny, tmp_path, name):
    hub.repositories["owner/tiny"] = Repository({COMMIT: dict(tiny)}, {})
    here = tmp_path / "here"
    here.mkdir()
    for file, content in tiny.items():
        (here / file).write_bytes(content)
    model = {"hub": "local", "path": "here"} if name == "local" else {"hub": name, "repo": "owner/tiny"}
    plan = plan_of(tmp_path, model | ({} if name == "local" else {"commit": COMMIT}))
    key = weights_keys(plan)[1]
    make(plan, "weights", key)
    folder = Path(weights_folder(plan.store, key))
    shard = folder / "model.safetensors"
    os.utime(shard)  # touched, not changed
    assert weights_folder(plan.store, key) == str(folder)
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CrossoverError, match=r"model\.safetensors has other bytes.*run again"):
        weights_folder(plan.store, key)
    assert plan.store.state("weights", key) is EntryState.MISSING
    if name == "local":
        shard.write_bytes(content)  # nobody but its owner can mend a local folder
    assert make(plan, "weights", key)
    assert weights_folder(plan.store, key) == str(folder)
    assert shard.read_bytes() == content


def local_plan(folder, files):
    """Returns the plan for a local folder that is given these files."""
    (folder / "here").mkdir(exist_ok=True)
    for file, content in files.items():
        (folder / "here" / file).write_bytes(content)
    return plan_of(folder, {"hub": "local", "path": "here"})


def test_two_local_models_that_differ_in_one_byte_of_a_large_file_have_two_keys(hub, tiny, tmp_path):
    data = bytearray(20 << 20)
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
    large = len(header).to_bytes(8, "little") + header
    key = weights_keys(local_plan(tmp_path, tiny | {"model.safetensors": large + data}))[1]
    data[10 << 20] = 1
    assert weights_keys(local_plan(tmp_path, tiny | {"model.safetensors": large + data}))[1] != key
    data[10 << 20] = 0
    assert weights_keys(local_plan(tmp_path, tiny | {"model.safetensors": large + data}))[1] == key


def test_a_local_model_that_changed_since_the_plan_gets_no_entry_under_its_old_key(hub, tiny, tmp_path):
    plan = local_plan(tmp_path, tiny)
    key = weights_keys(plan)[1]
    (tmp_path / "here" / "config.json").write_bytes(tiny["config.json"] + b" ")
    with pytest.raises(CrossoverError, match="changed since the plan was made"):
        make(plan, "weights", key)
    assert plan.store.state("weights", key) is EntryState.MISSING


@pytest.mark.parametrize(
    ("target", "refused"),
    [("../blobs/m", True), ("{here}/inside.bin", True), ("inside.bin", False)],
    ids=["out of the folder", "by its place on this machine", "within the folder"],
)
def test_links_are_refused_where_a_container_could_not_follow_them(hub, tiny, tmp_path, target, refused):
    here = tmp_path / "here"
    for folder in (here, tmp_path / "blobs"):
        folder.mkdir()
    for place in (here / "inside.bin", tmp_path / "blobs" / "m"):
        place.write_bytes(tiny["model.safetensors"])
    (here / "model.safetensors").symlink_to(target.format(here=here))
    plan = local_plan(tmp_path, {name: content for name, content in tiny.items() if name != "model.safetensors"})
    key = weights_keys(plan)[1]
    make(plan, "weights", key)
    assert weights_folder(plan.store, key) == str(here)
    if refused:
        with pytest.raises(CrossoverError, match=r"model\.safetensors: a link that leaves the folder.*cp -rlL"):
            weights_folder(plan.store, key, mounted=True)
    else:
        assert weights_folder(plan.store, key, mounted=True) == str(here)


@pytest.mark.parametrize(("name", "variable"), [("huggingface", "HF_TOKEN"), ("modelscope", "MODELSCOPE_API_TOKEN")])
def test_a_token_reaches_no_file_and_no_line(hub, tiny, tmp_path, monkeypatch, capfd, name, variable):
    canary = "canary-93b1c07a"
    hub.repositories["owner/tiny"] = Repository({COMMIT: dict(tiny)}, {"v1": COMMIT}, gated=True)
    hub.token = canary
    monkeypatch.setenv(variable, canary)
    model = {"hub": name, "repo": "owner/tiny", "commit": "v1"}
    plan_of(tmp_path, model)
    assert main(["lock", str(tmp_path / "e.yaml")]) == 0
    plan = plan_of(tmp_path, model)
    for kind, key in (*(("weights", key) for key in weights_keys(plan)), *plan.steps):
        if kind != "image":
            make(plan, kind, key)
    assert weights_folder(plan.store, weights_keys(plan)[1])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if canary.encode() in path.read_bytes()] == []
    shown = capfd.readouterr()
    assert canary not in shown.out + shown.err


def test_an_entry_from_another_machine_has_no_files_here(hub, tiny, tmp_path, monkeypatch):
    hub.repositories["owner/tiny"] = Repository({COMMIT: dict(tiny)}, {})
    plan = plan_of(tmp_path, {"hub": "huggingface", "repo": "owner/tiny", "commit": COMMIT})
    key = weights_keys(plan)[1]
    make(plan, "weights", key)
    Path(weights_folder(plan.store, key)).rename(tmp_path / "elsewhere")
    with pytest.raises(CrossoverError, match=r"is gone.*run again"):
        weights_folder(plan.store, key)
    assert make(plan, "weights", key)
    assert weights_folder(plan.store, key)


def test_another_machine_may_have_its_cache_elsewhere(hub, tiny, tmp_path, monkeypatch):
    hub.repositories["owner/tiny"] = Repository({COMMIT: dict(tiny)}, {})
    plan = plan_of(tmp_path, {"hub": "modelscope", "repo": "owner/tiny", "commit": COMMIT})
    key = weights_keys(plan)[1]
    make(plan, "weights", key)
    (tmp_path / "cache").rename(tmp_path / "mounted")
    monkeypatch.setenv("CROSSOVER_CACHE", str(tmp_path / "mounted"))
    assert weights_folder(plan.store, key).startswith(str(tmp_path / "mounted"))


def test_a_name_that_is_not_locked_is_refused(hub, tmp_path):
    plan = plan_of(tmp_path, {"hub": "modelscope", "repo": "owner/tiny"})
    with pytest.raises(CrossoverError, match="crossover lock"):
        make(plan, "weights", weights_keys(plan)[1])


def test_lock_then_prepare_uses_the_commit_that_was_locked(hub, tiny, tmp_path, capsys):
    other = "d" * 40
    hub.repositories["owner/tiny"] = Repository({COMMIT: dict(tiny), other: {"config.json": b"{}"}}, {"main": COMMIT})
    model = {"hub": "huggingface", "repo": "owner/tiny", "commit": "main"}
    plan = plan_of(tmp_path, model)
    assert main(["lock", str(tmp_path / "e.yaml")]) == 0
    hub.repositories["owner/tiny"].branches["main"] = other  # the branch moves on
    plan = plan_of(tmp_path, model)
    key = weights_keys(plan)[1]
    make(plan, "weights", key)
    assert Path(weights_folder(plan.store, key)).name == COMMIT
    assert main(["lock", "--update", str(tmp_path / "e.yaml")]) == 0
    assert weights_keys(plan_of(tmp_path, model))[1] != key


def test_the_cache_can_be_listed_and_checked(hub, tiny, capsys):
    hub.repositories["owner/tiny"] = Repository({COMMIT: dict(tiny)}, {})
    weights = hubs.fetch(hubs.Snapshot("huggingface", "owner/tiny", COMMIT), lambda line: None)
    assert main(["weights", "ls"]) == 0
    assert "huggingface:owner/tiny@cccccccccccc" in capsys.readouterr().out
    assert main(["weights", "verify"]) == 0
    shard = weights.folder / "model.safetensors"
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    # As on a failing disk, which changes no time: what is remembered is made to fit the file as it looks now.
    memory = weights.folder.with_name(f"{COMMIT}.json")
    remembered, stat = json.loads(memory.read_text()), shard.stat()
    remembered["files"][shard.name] |= {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}
    memory.write_text(json.dumps(remembered))
    assert main(["weights", "verify", "--quick"]) == 0
    assert main(["weights", "verify", "owner/none"]) == 2
    assert main(["weights", "verify", "owner/tiny"]) == 1
    assert "model.safetensors has other bytes" in capsys.readouterr().out
    # What is wrong is known from now on, and fetched again when it is wanted.
    assert main(["weights", "verify", "--quick"]) == 1
    hubs.fetch(hubs.Snapshot("huggingface", "owner/tiny", COMMIT), lambda line: None)
    assert shard.read_bytes() == content


def test_no_room_for_an_entry_is_one_line_and_leaves_nothing(tmp_path):
    plan = plan_of(tmp_path, {"hub": "generated"})
    key = weights_keys(plan)[1]
    command = [sys.executable, "-m", "crossover.cli", "prepare", "--store", str(plan.store.root)]
    # No file may have more than 20 kB; the model's has more.
    limited = ["prlimit", "--fsize=20000", *command, str(step_sheet_path(plan, "weights", key))]
    done = subprocess.run(limited, capture_output=True, text=True)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"weights {key}: no room on a disk" in line
    assert [path for path in (plan.store.root / "weights").rglob("*") if path.is_file()] == []
    assert make(plan, "weights", key)
