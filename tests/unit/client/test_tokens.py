"""Tokens per event."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from crossover.client.framing import Body
from crossover.client.stream import Stream, read_stream
from crossover.client.tokens import load_counter, tokens_of_events
from crossover.errors import InputError


def stream_of(*texts: str) -> Stream:
    events = [json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) for text in texts]
    data = "".join(f"data: {event}\n\n" for event in events).encode()
    return read_stream(Body(data, np.zeros(1, np.int64), np.zeros(1, np.int64), True), keep_text=True)


def words_tokenizer(folder: Path) -> Path:
    """A token is a run of letters, a run of spaces, or a sign."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_as_many_output_events_as_tokens_means_one_each() -> None:
    tokens, source = tokens_of_events(stream_of("a", "", "b"), 2, None)
    assert (tokens.tolist(), source) == ([1, 0, 1], "events")


def test_a_tokenizer_counts_over_the_whole_text(tmp_path: Path) -> None:
    # "one", "two" and "three" are whole only with the event that brings their last letter.
    tokens, source = tokens_of_events(stream_of("one t", "wo thr", "ee"), 7, load_counter(words_tokenizer(tmp_path)))
    assert (tokens.tolist(), source) == ([1, 1, 1], "tokenizer")


def test_without_any_source_tokens_are_unknown() -> None:
    tokens, source = tokens_of_events(stream_of("a", "b"), 5, None)
    assert (tokens.tolist(), source) == ([-1, -1], None)


def test_a_file_that_is_no_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="no tokenizer"):
        load_counter(tmp_path)
