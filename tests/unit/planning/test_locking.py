"""`crossover lock`: which names are asked for, what stands, what moves, and what cannot be had."""

from __future__ import annotations

import hashlib
import types

import pytest
import yaml
from docker.errors import APIError, DockerException

from crossover.cli import main
from crossover.errors import CrossoverError
from crossover.experiment import load_experiment
from crossover.planning.image_digests import digest_of
from crossover.planning.locking import resolve, write_locks
from crossover.planning.locks import Locks, read_locks

FIXED = "f" * 40
DIGEST = "sha256:" + "1" * 64
EXPERIMENT = {
    "title": "Names that move",
    "hardware": {"gpu": "NVIDIA B300", "gpus": 8},
    "models": {
        "branch": {"hub": "modelscope", "repo": "owner/target"},
        "named": {"hub": "huggingface", "repo": "owner/draft", "commit": "v1"},
        "fixed": {"hub": "huggingface", "repo": "owner/fixed", "commit": FIXED},
        "here": {"hub": "none", "repo": "owner/served"},
    },
    "variants": {
        "a": {"engine": "vllm", "model": "branch", "draft": "named", "image": "reg.example:5000/vllm:v1"},
        "b": {"engine": "vllm", "model": "fixed", "image": f"vllm@{DIGEST}"},
        "c": {"engine": "sglang", "model": "branch", "image": "reg.example:5000/vllm:v1"},
    },
    "workloads": [{"dataset": "random", "input_tokens": 10, "output_tokens": 5, "concurrency": 1, "requests": 1}],
}
for one in EXPERIMENT["variants"].values():
    one["launcher"] = {"kind": "docker"}


@pytest.fixture
def experiment(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "locks").mkdir()
    file = tmp_path / "experiments" / "moving.yaml"
    file.write_text(yaml.safe_dump(EXPERIMENT))
    return load_experiment(file)


class World:
    """Hubs and registries at one moment."""

    def __init__(self, commit="1", digest="a", down=()):
        self.commit, self.digest, self.down, self.asked = commit * 40, digest * 64, down, []

    def commit_of(self, hub, repo, revision):
        self.asked.append((hub, repo, revision))
        if hub in self.down:
            raise CrossoverError(f"{hub}: no answer")
        return self.commit

    def digest_of(self, reference):
        self.asked.append(reference)
        return f"vllm@sha256:{self.digest}"


def lock(experiment, world, update=False):
    outcome = resolve(experiment, read_locks(experiment), world.commit_of, world.digest_of, update)
    write_locks(outcome.locks)
    return outcome


def test_what_moves_is_asked_once_and_what_is_fixed_is_not(experiment):
    world = World()
    lock(experiment, world)
    assert world.asked == [
        ("modelscope", "owner/target", "master"),
        ("huggingface", "owner/draft", "v1"),
        "reg.example:5000/vllm:v1",
    ]
    locks = read_locks(experiment)
    assert locks.file.name == "moving.lock.yaml"
    assert locks.commit(experiment.models["branch"]) == "1" * 40
    assert locks.commit(experiment.models["fixed"]) == FIXED
    assert locks.image(experiment.variants["a"]) == f"vllm@sha256:{'a' * 64}"
    assert [path.name for path in locks.file.parent.iterdir()] == ["moving.lock.yaml"]


def test_a_resolution_stands_until_an_update(experiment):
    lock(experiment, World())
    later = World(commit="2", digest="b")
    assert lock(experiment, later).news == ()
    assert later.asked == []
    news = lock(experiment, later, update=True).news
    assert news[0] == f"modelscope:owner/target@master -> {'2' * 40} (was {'1' * 40})"
    assert read_locks(experiment).commit(experiment.models["named"]) == "2" * 40


def test_a_hub_that_is_down_keeps_what_was_known_and_the_rest_is_written(experiment):
    outcome = lock(experiment, World(down=("modelscope",)))
    assert outcome.failures == ("modelscope: no answer",)
    assert read_locks(experiment).commit(experiment.models["named"]) == "1" * 40
    assert "unresolved" in read_locks(experiment).commit(experiment.models["branch"])
    lock(experiment, World())
    lock(experiment, World(commit="2", down=("modelscope",)), update=True)
    assert read_locks(experiment).commit(experiment.models["branch"]) == "1" * 40
    assert read_locks(experiment).commit(experiment.models["named"]) == "2" * 40


def test_names_that_nothing_asks_for_any_more_go(experiment):
    write_locks(Locks(read_locks(experiment).file, {"modelscope:owner/old@master": "9" * 40}, {"old:1": "old@x"}))
    locks = lock(experiment, World()).locks
    assert "modelscope:owner/old@master" not in locks.models
    assert "old:1" not in locks.images


def registry(answer):
    def get_registry_data(name):
        if isinstance(answer, Exception):
            raise answer
        return types.SimpleNamespace(id=answer)

    return types.SimpleNamespace(images=types.SimpleNamespace(get_registry_data=get_registry_data))


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("vllm/vllm-openai:v1", "vllm/vllm-openai"),
        ("reg.example:5000/vllm:v1", "reg.example:5000/vllm"),
        ("reg.example:5000/vllm", "reg.example:5000/vllm"),
        ("vllm", "vllm"),
    ],
)
def test_the_tag_gives_way_to_the_digest(reference, name):
    assert digest_of(reference, registry(DIGEST)) == f"{name}@{DIGEST}"


def failing(status, said):
    return APIError("x", types.SimpleNamespace(status_code=status), said)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (failing(403, "pull access denied"), "docker login"),
        (failing(500, "no such host"), "check the network"),
    ],
)
def test_registries_that_do_not_answer(error, said):
    with pytest.raises(CrossoverError, match=said) as raised:
        digest_of("a:1", registry(error))
    assert str(raised.value).startswith("a:1: ")


@pytest.mark.parametrize("error", [failing(404, "Not Found"), DockerException("no socket")])
def test_the_registry_itself_is_asked_where_a_daemon_cannot(error, monkeypatch):
    asked = []
    monkeypatch.setattr("crossover.planning.image_digests.tag_digest", lambda name: asked.append(name) or DIGEST)
    assert digest_of("docker://reg.example:5000/vllm:v1", registry(error)) == f"reg.example:5000/vllm@{DIGEST}"
    assert asked == ["reg.example:5000/vllm:v1"]


def test_an_image_file_is_locked_by_its_own_digest(tmp_path):
    file = tmp_path / "engine.sif"
    file.write_bytes(b"bytes")
    assert digest_of(str(file)) == f"{file}@sha256:{hashlib.sha256(b'bytes').hexdigest()}"
    with pytest.raises(CrossoverError, match="there is no such image file"):
        digest_of(str(tmp_path / "other.sif"))


def test_the_command_says_in_one_line_what_it_could_not_do(experiment, monkeypatch, capsys):
    world = World()
    monkeypatch.setattr("crossover.hubs.get_hub", lambda hub: types.SimpleNamespace(resolve=lambda *_: world.commit))
    monkeypatch.setattr("docker.from_env", lambda: registry(DockerException("no socket")))
    assert main(["lock", str(experiment.file)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith(
        "crossover lock: 2 names locked, 1 not: reg.example:5000/vllm:v1: its registry cannot be"
    )
    assert read_locks(experiment).commit(experiment.models["branch"]) == world.commit


def test_an_experiment_without_names_that_move(tmp_path, capsys):
    data = {**EXPERIMENT, "models": {}, "variants": {"a": {"engine": "vllm", "launcher": {"kind": "simulated"}}}}
    (tmp_path / "still.yaml").write_text(yaml.safe_dump(data))
    assert main(["lock", str(tmp_path / "still.yaml")]) == 0
    assert "nothing to lock" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["still.yaml"]
