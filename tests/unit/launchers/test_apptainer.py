"""The Apptainer launcher against a stand-in for its command line (the real one is not in Debian)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from crossover.errors import InputError
from crossover.launchers import ServerSpec, get_launcher

# Does what `apptainer exec` does with the part of the command line that is ours: records it, sets the prefixed
# variables and runs the rest.
STAND_IN = f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
image = next(index for index, word in enumerate(words) if word.endswith(".sif"))
open("words.json", "w").write(json.dumps(words[:image + 1]))
inside = {{n.removeprefix("APPTAINERENV_"): v for n, v in os.environ.items() if n.startswith("APPTAINERENV_")}}
open("inside.json", "w").write(json.dumps(sorted(inside)))
os.execvpe(words[image + 1], words[image + 1:], os.environ | inside)
"""


@pytest.fixture
def executable(tmp_path):
    path = tmp_path / "apptainer"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    return path


def spec(executable, weights, **options):
    command = [sys.executable, "-c", "print('{model_path}')"]
    return ServerSpec(
        "openai",
        {"command": command},
        str(weights),
        "k1",
        environment={"VLLM_X": True},
        secrets=("HUB_TOKEN",),
        options={"image": "engine.sif", "executable": str(executable), **options},
    )


def test_command_line_environment_and_log(executable, tmp_path, monkeypatch):
    monkeypatch.setenv("HUB_TOKEN", "canary-4711")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    weights = tmp_path / "weights"
    weights.mkdir()
    live = tmp_path / "live"
    server = get_launcher("apptainer").start(spec(executable, weights, gpus="all"), live)
    while server.poll() is None:
        pass
    words = json.loads((live / "words.json").read_text())
    assert words[0] == "exec"
    assert words[-4:] == ["--nv", "--bind", f"{weights}:/models/target:ro", "engine.sif"]
    assert json.loads((live / "inside.json").read_text()) == ["CUDA_VISIBLE_DEVICES", "HUB_TOKEN", "VLLM_X"]
    assert "/models/target" in server.log_path.read_text()
    assert server.model_name == "/models/target"
    assert "canary" not in json.dumps(server.observed)
    assert not any(b"canary-4711" in path.read_bytes() for path in live.iterdir())


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(InputError, match="needs the option 'image'"):
        get_launcher("apptainer").start(ServerSpec("vllm", {}, "/w", "k"), tmp_path)
    with pytest.raises(InputError, match=r"apptainer' is not there.*install Apptainer"):
        get_launcher("apptainer").start(spec(Path("/no/apptainer"), "/w"), tmp_path)
