"""The stand-in tokenizer counts words, as the workloads do without a model."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from crossover.peers.word_tokenizer import write_word_tokenizer
from crossover.workloads import build, read_prompts


def test_it_counts_what_the_prompts_were_built_to(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(write_word_tokenizer(tmp_path / "tokenizer") / "tokenizer.json"))
    spec = {"dataset": "random", "input_tokens": 37, "output_tokens": 1, "requests": 3, "tokenizer": {"kind": "words"}}
    build(spec, tmp_path / "prompts")
    counted = [len(tokenizer.encode(prompt["text"]).ids) for prompt in read_prompts(tmp_path / "prompts")]
    assert counted == [37] * 3
    assert (tmp_path / "tokenizer" / "tokenizer_config.json").is_file()
