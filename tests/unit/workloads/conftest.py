"""A small byte-level BPE tokenizer, trained on made-up text, for exact lengths beyond words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from crossover.workloads.datasets.sharegpt_shaped import conversations
from crossover.workloads.streams import Stream


def _some_text(turns: int = 60) -> list[str]:
    source = conversations(Stream("tokenizer"))
    return [next(source) for _ in range(turns)]


@pytest.fixture(scope="session")
def byte_bpe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer.json of 900 tokens with one special token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_some_text(), trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="session")
def whole_text_bpe(byte_bpe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same vocabulary without splitting at spaces: merges may cross words, so cuts are not local."""
    declared = json.loads(byte_bpe.read_text("utf-8"))
    declared["pre_tokenizer"]["use_regex"] = False
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_text(json.dumps(declared), "utf-8")
    return path
