"""A vocabulary in tiktoken's format encodes as the byte-level tokenizer that it was written from."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from crossover.errors import InputError
from crossover.workloads import build, read_prompts, recipe
from crossover.workloads.datasets.sharegpt_shaped import conversations
from crossover.workloads.streams import Stream
from crossover.workloads.tiktoken_file import _spelling, find_merges, load_tiktoken, read_pattern

# The split of the byte-level tokenizer, in two parts as models write it.
SOURCE = """
class Tokenization:
    pat_str = "|".join([
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+",
        r" ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    ])
"""


@pytest.fixture
def model(byte_bpe: Path, tmp_path: Path) -> Path:
    """The folder of a model with tiktoken.model and tokenization_example.py, of the same vocabulary as `byte_bpe`."""
    byte_of = {character: byte for byte, character in enumerate(_spelling())}
    vocabulary = json.loads(byte_bpe.read_text("utf-8"))["model"]["vocab"]
    lines = []
    for token, rank in vocabulary.items():
        if token != "<|end|>":
            raw = bytes(byte_of[character] for character in token)
            lines.append(f"{base64.b64encode(raw).decode()} {rank}")
    (tmp_path / "tiktoken.model").write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "tokenization_example.py").write_text(SOURCE, "utf-8")
    return tmp_path


def test_it_encodes_as_the_tokenizer_it_came_from(model: Path, byte_bpe: Path) -> None:
    original, read = Tokenizer.from_file(str(byte_bpe)), load_tiktoken(model / "tiktoken.model")
    source = conversations(Stream("tiktoken"))
    texts = [next(source) for _ in range(30)] + ["ünïcödé 漢字 \n\n x's 12345 \t!", "   "]
    for text in texts:
        ids = original.encode(text, add_special_tokens=False).ids
        assert read.encode(text).ids == ids
        assert read.decode(ids) == text


def test_merges_follow_from_ranks() -> None:
    # "abc" can be made of "ab" and "c" or of "a" and "bc"; "bc" has the lower rank and is merged first.
    ranks = {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"ab": 4, b"abc": 5}
    assert list(find_merges(ranks)) == [(b"b", b"c"), (b"a", b"b"), (b"a", b"bc")]


def test_prompts_of_exact_length_from_a_models_folder(model: Path, byte_bpe: Path, tmp_path: Path) -> None:
    spec = {"dataset": "random", "input_tokens": 300, "output_tokens": 1, "requests": 2}
    spec["tokenizer"] = {"kind": "file", "path": str(model)}
    build(spec, tmp_path / "out")
    counter = Tokenizer.from_file(str(byte_bpe))
    for prompt in read_prompts(tmp_path / "out"):
        assert len(counter.encode(prompt["text"], add_special_tokens=False).ids) == 300
    before = recipe(spec)
    assert before["tokenizer"]["pattern"].startswith("'s|'t")
    (model / "tokenization_example.py").write_text('pat_str = r"\\s+|\\S+"', "utf-8")
    assert recipe(spec) != before


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("tiktoken.model", "YQ== zero", r"tiktoken\.model: line 1: not a token and its rank"),
        ("tokenization_example.py", "pat_str = compile('a')", r"tokenization_example\.py: pat_str is no plain text"),
        ("tokenization_example.py", "pattern = 'a'", r"tiktoken\.model: no tokenization_\*\.py with a pat_str"),
    ],
)
def test_what_is_wrong_with_a_folder_is_told(name: str, text: str, problem: str, model: Path) -> None:
    (model / name).write_text(text, "utf-8")
    with pytest.raises(InputError, match=problem):
        load_tiktoken(model / "tiktoken.model")


def test_a_pattern_may_be_a_plain_text(model: Path) -> None:
    (model / "tokenization_example.py").write_text('self.pat_str = r"\\w+"', "utf-8")
    assert read_pattern(model / "tiktoken.model") == r"\w+"
