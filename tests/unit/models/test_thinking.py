"""The model that thinks: what it says, followed by hand through its own weights."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from crossover.errors import InputError
from crossover.models import TinyModel, generate, recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thinking")
    generate(TinyModel(thinking_tokens=5, answer_tokens=3), folder)
    return folder


def said(folder, after: str, count: int) -> list[str]:
    """Greedy decoding from the last token alone: embedding, RMS norm, output matrix.

    That is the whole model because its layers add nothing, which `test_its_layers_add_nothing` shows.
    """
    tensors = load_file(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    token, tokens = tokenizer.token_to_id(after), []
    for _ in range(count):
        vector = tensors["model.embed_tokens.weight"][token]
        vector = vector / np.sqrt(np.mean(vector**2) + 1e-6)
        token = int((tensors["lm_head.weight"] @ vector).argmax())
        tokens.append(tokenizer.id_to_token(token))
    return tokens


def test_it_thinks_answers_and_ends(folder) -> None:
    tokens = said(folder, "<|assistant|>", 15)
    # Opening marker, 5 words, closing marker, 3 words, end: 11 tokens; then the answer again: 3 words and the end.
    assert tokens[0] == "<think>"
    assert tokens[6] == "</think>"
    assert tokens[10] == tokens[14] == "<|end|>"
    words = [*tokens[1:6], *tokens[7:10]]
    assert len(set(words)) == 8
    assert all(word.startswith("Ġ") and word[1:].isalpha() for word in words)
    assert tokens[11:14] == tokens[7:10]


def test_its_layers_add_nothing(folder) -> None:
    tensors = load_file(folder / "model.safetensors")
    outputs = [name for name in tensors if name.endswith(("o_proj.weight", "down_proj.weight"))]
    assert len(outputs) == 4  # two layers
    assert not any(tensors[name].any() for name in outputs)
    assert tensors["model.layers.0.self_attn.q_proj.weight"].any()


def test_the_markers_are_tokens_but_not_special(folder) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = tokenizer.encode("a<think>b</think>").ids
    assert tokenizer.token_to_id("<think>") in ids
    assert "<think>" in tokenizer.decode(ids, skip_special_tokens=True)
    assert tokenizer.get_vocab_size() == json.loads((folder / "config.json").read_text())["vocab_size"] == 1000


def test_a_model_that_does_not_think_keeps_its_recipe() -> None:
    assert set(recipe(TinyModel(thinking_tokens=5))) - set(recipe(TinyModel())) == {"thinking_tokens", "answer_tokens"}


def test_what_cannot_be_is_said(tmp_path) -> None:
    with pytest.raises(InputError, match=r"generator\.thinking_tokens: 964 different words are wanted"):
        generate(TinyModel(thinking_tokens=900), tmp_path)
    with pytest.raises(InputError, match=r"generator\.hidden: 2 numbers a token are too few"):
        generate(TinyModel(hidden=2, heads=1, thinking_tokens=50), tmp_path)
    with pytest.raises(InputError, match=r"generator\.answer_tokens: 0 tokens; a whole number from 1 up"):
        TinyModel(thinking_tokens=5, answer_tokens=0)
