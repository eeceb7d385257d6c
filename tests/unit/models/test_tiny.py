"""The generated model: the bytes, the shapes, the rounding, the tokenizer."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from safetensors import safe_open
from tokenizers import Tokenizer

from crossover.models import TinyModel, generate, recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    generate(TinyModel(), folder)
    return folder


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_same_description_same_bytes(folder, tmp_path):
    generate(TinyModel(), tmp_path)
    assert digests(tmp_path) == digests(folder)


def test_another_seed_changes_the_weights_alone(folder, tmp_path):
    generate(TinyModel(seed=1), tmp_path)
    mine, other = digests(folder), digests(tmp_path)
    assert {name for name in mine if mine[name] != other[name]} == {"model.safetensors"}


def test_weights_are_what_the_configuration_says(folder):
    config = json.loads((folder / "config.json").read_text())
    with safe_open(str(folder / "model.safetensors"), framework="np") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    # By hand: two tables of 1000 x 64; a layer has 4 x 64 x 64 + 3 x 64 x 128 weights and 2 norms of 64; a
    # last norm.
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 2 * 64_000 + 2 * (16_384 + 24_576 + 128) + 64
    assert shapes["lm_head.weight"] == (config["vocab_size"], config["hidden_size"]) == (1000, 64)
    assert shapes["model.layers.1.mlp.down_proj.weight"] == (64, 128)


def test_weights_have_the_stated_spread(folder):
    with safe_open(str(folder / "model.safetensors"), framework="np") as file:
        table = file.get_tensor("lm_head.weight")
    # Uniform in +-a has the standard deviation a / sqrt(3); 64,000 draws leave 0.3 % of noise.
    assert abs(table.std() / 0.02 - 1) < 0.01
    assert np.abs(table).max() < 0.02 * 3**0.5 + 1e-6


def test_tokenizer_encodes_any_text_and_gives_it_back(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == 1000
    for text in ("The server answers.", "naïve 模型 🚀\n\ttabs  and  spaces", ""):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.token_to_id("<|end|>") == json.loads((folder / "config.json").read_text())["eos_token_id"]


def test_recipe_holds_the_text_not_its_place(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("one text")
    first, second = (recipe(TinyModel(texts=(tmp_path / name,))) for name in ("a", "b"))
    assert first == second
    assert str(tmp_path) not in json.dumps(first)
    assert recipe(TinyModel())["texts"] == []
