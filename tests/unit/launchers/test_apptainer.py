"""The Apptainer launcher and its images against a stand-in for its command line: which words it is given, what it is
told through variables, and what is said when something is missing. tests/real/test_apptainer.py has the real one."""

from __future__ import annotations

import hashlib
import json
import sys

import pytest

from crossover.errors import CrossoverError, InputError
from crossover.launchers import ServerSpec, get_launcher
from crossover.launchers.apptainer_images import fetch_file

# Does with the part of the command line that is ours what the real one does: records it, sets the prefixed variables
# and runs the rest; makes a file of an image.
STAND_IN = f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
if words[0] == "pull":
    if "absent" in words[-1]:
        print("\\x1b[31mFATAL:   \\x1b[0mWhile making image from oci registry: manifest unknown")
        sys.exit(255)
    print("INFO:    Creating SIF file...")
    sys.exit(open(words[-2], "w").write(words[-1]) and 0)
if words[0] == "inspect":
    labels = {{"org.opencontainers.image.version": "0.9"}}
    print(json.dumps({{"data": {{"attributes": {{"labels": labels}}}}}}))
    sys.exit()
image = next(index for index, word in enumerate(words) if word.endswith(".sif"))
if words[image + 1] == "python3":
    versions = {{"vllm": "0.32.0+cpu", "sglang": None}}
    print(json.dumps({{"versions": versions, "there": {{"vllm": True, "sglang": False}}}}))
    sys.exit()
open("words.json", "w").write(json.dumps(words[:image + 1]))
prefix = os.path.basename(sys.argv[0]).upper() + "ENV_"
inside = {{n.removeprefix(prefix): v for n, v in os.environ.items() if n.startswith(prefix)}}
open("inside.json", "w").write(json.dumps(inside))
open("settings.json", "w").write(json.dumps(sorted(n for n in os.environ if n.startswith("APPTAINER_"))))
os.execvpe(words[image + 1], words[image + 1:], os.environ | inside)
"""
DIGEST = "1" * 64


@pytest.fixture(params=["apptainer", "singularity"])
def program(request, tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / request.param
    path.write_text(STAND_IN)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return path


def spec(weights, **options):
    command = [sys.executable, "-c", "print('{model_path}')"]
    return ServerSpec(
        "openai",
        {"command": command},
        str(weights),
        "k1",
        environment={"VLLM_X": True},
        secrets=("HUB_TOKEN",),
        options={"image": "engine.sif", **options},
    )


def run(wanted, live):
    server = get_launcher("apptainer").start(wanted, live)
    while server.poll() is None:
        pass
    return server


def test_command_line_environment_and_log(program, tmp_path, monkeypatch):
    monkeypatch.setenv("HUB_TOKEN", "canary-4711")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("APPTAINER_CACHEDIR", "/cache")
    monkeypatch.setenv("APPTAINER_BIND", "/etc")
    weights, live = tmp_path / "weights", tmp_path / "live"
    weights.mkdir()
    server = run(spec(weights, gpus="all"), live)
    mount = f"type=bind,source={weights},target=/models/target,readonly"
    assert json.loads((live / "words.json").read_text()) == [
        *["exec", "--cleanenv", "--contain", "--no-eval", "--no-privs", "--workdir", f"{live}/container"],
        *["--writable-tmpfs", "--nv", "--mount", mount, "engine.sif"],
    ]
    inside = json.loads((live / "inside.json").read_text())
    assert inside.pop("CROSSOVER_LAUNCH")  # by which the processes within are known as ours
    assert inside == {
        "CROSSOVER_DEPLOYMENT": "k1",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "HUB_TOKEN": "canary-4711",
        "VLLM_X": "1",
    }
    # A setting of its own goes on; a mount that nobody declared does not.
    settings = json.loads((live / "settings.json").read_text())
    assert settings == (["APPTAINER_CACHEDIR"] if program.name == "apptainer" else [])
    assert "/models/target" in server.log_path.read_text()
    assert server.model_name == "/models/target"
    assert "canary" not in json.dumps(server.observed)
    (live / "inside.json").unlink()  # the stand-in's own
    assert not any(b"canary-4711" in path.read_bytes() for path in live.iterdir() if path.is_file())


def test_chosen_gpus_are_those_that_the_engine_sees(program, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    live = tmp_path / "live"
    run(spec("/w", gpus=[2, 3]), live)
    assert json.loads((live / "inside.json").read_text())["CUDA_VISIBLE_DEVICES"] == "2,3"


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="needs the option 'image'"):
        get_launcher("apptainer").start(ServerSpec("vllm", {}, "/w", "k"), tmp_path)
    with pytest.raises(InputError, match=r"'/no/apptainer' is not there.*install Apptainer"):
        get_launcher("apptainer").start(spec("/w", executable="/no/apptainer"), tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="neither apptainer nor singularity is there"):
        get_launcher("apptainer").start(spec("/w"), tmp_path)


@pytest.mark.parametrize("scheme", ["", "docker://"])
def test_an_image_of_a_registry_becomes_a_file_once(program, tmp_path, scheme):
    lines = []
    reference = f"{scheme}registry.example/engine@sha256:{DIGEST}"
    facts = fetch_file(reference, lines.append, tmp_path / "images")
    path = tmp_path / "images" / f"{DIGEST}.sif"
    content = f"docker://registry.example/engine@sha256:{DIGEST}"
    assert path.read_text() == content
    assert facts == {
        "image": reference,
        "path": str(path),
        "file_sha256": hashlib.sha256(content.encode()).hexdigest(),
        "digests": [f"registry.example/engine@sha256:{DIGEST}"],
        "size_bytes": len(content),
        "labels": {"org.opencontainers.image.version": "0.9"},
        "engine_versions": {"vllm": "0.32.0+cpu", "sglang": None},
        "engine_version": "0.32.0+cpu",
        "engines": ["vllm"],
    }
    assert "INFO:    Creating SIF file..." in lines
    lines.clear()
    assert fetch_file(reference, lines.append, tmp_path / "images") == facts
    assert lines == []
    assert sorted(other.suffix for other in (tmp_path / "images").iterdir()) == [".lock", ".sif"]


def test_an_image_that_cannot_be_had_leaves_nothing(program, tmp_path):
    with pytest.raises(
        CrossoverError, match=r"absent@sha256:1+ cannot be pulled: .*from oci registry: manifest unknown\)$"
    ):
        fetch_file(f"absent@sha256:{DIGEST}", print, tmp_path)
    assert list(tmp_path.glob("*.sif")) == []
    with pytest.raises(CrossoverError, match="absent:v1 has no digest"):
        fetch_file("absent:v1", print, tmp_path)


def test_an_image_file_is_known_by_its_digest(program, tmp_path):
    file = tmp_path / "engine.sif"
    file.write_bytes(b"bytes")
    digest = f"sha256:{hashlib.sha256(b'bytes').hexdigest()}"
    for reference in (str(file), f"{file}@{digest}"):
        facts = fetch_file(reference, print)
        assert (facts["digests"], facts["size_bytes"], facts["path"]) == ([digest], 5, str(file))
    with pytest.raises(CrossoverError, match="is not the one that was locked"):
        fetch_file(f"{file}@sha256:{'0' * 64}", print)
    with pytest.raises(CrossoverError, match="there is no image file"):
        fetch_file(str(tmp_path / "other.sif"), print)
