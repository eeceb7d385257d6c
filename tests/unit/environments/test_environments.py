"""Environments from small local definitions: read, installed once, whole or not at all."""

from __future__ import annotations

import json
import subprocess

import pytest

from crossover.environments import ensure, find_definition, installed, load_definition
from crossover.environments.post_install import apply
from crossover.errors import CrossoverError, InputError


@pytest.fixture
def definition_folder(tmp_path):
    """An environment around one package of a single module, installed without any index."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "toy.py").write_text("NAME = 'toy'\n")
    (package / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )
    # A build backend of a dozen lines, so that the test needs neither an index nor setuptools.
    (package / "backend.py").write_text(
        "import zipfile\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        "    info = 'toy_cpu-1.2.dist-info'\n"
        "    files = {'toy.py': open('toy.py').read(),\n"
        "             f'{info}/METADATA': 'Metadata-Version: 2.1\\nName: toy-cpu\\nVersion: 1.2\\n',\n"
        "             f'{info}/WHEEL': 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',\n"
        "             f'{info}/entry_points.txt': '[toys]\\na = toy:NAME\\n',\n"
        "             f'{info}/RECORD': ''}\n"
        "    with zipfile.ZipFile(f'{folder}/toy_cpu-1.2-py3-none-any.whl', 'w') as wheel:\n"
        "        for name, text in files.items(): wheel.writestr(name, text)\n"
        "    return 'toy_cpu-1.2-py3-none-any.whl'\n"
    )
    folder = tmp_path / "envs" / "engines" / "toy-1.2-cpu"
    folder.mkdir(parents=True)
    (folder / "requirements.txt").write_text(f"{package}\n")
    (folder / "hook.py").write_text("import sys\nsys.hooked = True\n")
    (folder / "environment.yaml").write_text(
        "package: toy-cpu\n"
        "install: [{requirements: requirements.txt}]\n"
        "alias: [{distribution: toy-cpu, name: toy, local: cpu}]\n"
        "site: [hook.py]\n"
        "start_imports: [hook]\n"
        "check: [-c, 'import toy']\n"
    )
    return folder


def test_installs_once_with_all_steps(definition_folder, tmp_path):
    definition = find_definition("toy-1.2-cpu", tmp_path / "envs")
    assert installed(definition, tmp_path / ".envs") is None
    lines = []
    environment = ensure(definition, tmp_path / ".envs", lines.append)
    program = (
        "import importlib.metadata as m, json, sys; print(json.dumps([sys.hooked, m.version('toy'),"
        " [e.name for e in m.entry_points(group='toys')]]))"
    )
    told = subprocess.run([environment.python, "-c", program], capture_output=True, text=True, check=True).stdout
    assert json.loads(told) == [True, "1.2+cpu", ["a", "a"]]
    manifest = environment.manifest
    assert (manifest["name"], manifest["version"]) == ("toy-1.2-cpu", "1.2")
    assert manifest["digest"] == definition.digest
    assert "toy-cpu==1.2" in manifest["packages"]
    lines.clear()
    assert ensure(definition, tmp_path / ".envs", lines.append) == environment
    assert lines == []


def test_a_failed_installation_leaves_nothing_usable(definition_folder, tmp_path):
    (definition_folder / "requirements.txt").write_text("./no-such-folder\n")
    definition = load_definition(definition_folder)
    with pytest.raises(CrossoverError, match=r"environment toy-1\.2-cpu: .*no-such-folder"):
        ensure(definition, tmp_path / ".envs")
    assert installed(definition, tmp_path / ".envs") is None


def test_any_change_of_a_file_is_another_environment(definition_folder):
    before = load_definition(definition_folder).digest
    assert load_definition(definition_folder).digest == before
    (definition_folder / "hook.py").write_text("")
    assert load_definition(definition_folder).digest != before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("package: a\n", "needs `package` and `install`"),
        ("package: a\ninstall: [{requirements: r.txt}]\n", "no file 'r.txt'"),
        ("package: a\ninstall: [{requirements: hook.py}]\nremoves: []\n", "unknown key 'removes'"),
        ("package: a\ninstall: [{requirement: hook.py}]\n", "unknown key 'requirement'"),
        ("package: a\ninstall: [{requirements: hook.py}]\nalias: [{name: b}]\n", "needs `distribution` and `name`"),
        ("package: [", "no YAML"),
    ],
)
def test_bad_definitions(definition_folder, content, message):
    (definition_folder / "environment.yaml").write_text(content)
    with pytest.raises(InputError, match=message) as error:
        load_definition(definition_folder)
    assert "environment.yaml" in str(error.value)


def test_an_unknown_name_lists_the_known_ones(definition_folder, tmp_path):
    with pytest.raises(InputError, match=r"no environment 'toy'.*use one of toy-1\.2-cpu"):
        find_definition("toy", tmp_path / "envs")


def test_an_alias_of_what_is_not_there(definition_folder, tmp_path):
    with pytest.raises(CrossoverError, match="toy-cpu is not in"):
        apply(load_definition(definition_folder), tmp_path)
