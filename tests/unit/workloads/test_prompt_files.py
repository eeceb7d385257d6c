"""A prompts file that somebody else wrote: what is read, and what is said of a bad line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crossover.errors import InputError
from crossover.workloads import read_prompts


def test_a_byte_order_mark_windows_line_ends_and_empty_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes(
        b'\xef\xbb\xbf{"text": "a\\u00e9\\u2028", "output_tokens": 5}\r\n\r\n  \n{"text": "\xf0\x9f\x8e\x89"}'
    )
    assert list(read_prompts(file)) == [{"text": "a\u00e9\u2028", "output_tokens": 5}, {"text": "\U0001f389"}]


def test_a_huge_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"text": "' + "word " * 1_000_000 + '"}\n')
    (prompt,) = read_prompts(file)
    assert len(prompt["text"]) == 5_000_000


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"not json", "not JSON"),
        (b'{"text": "\xff"}', "not JSON"),
        (b'{"text": "\\ud83d"}', "not JSON"),
        (b'{"text": "a", "temperature": NaN}', "not JSON"),
        (b"[1]", "none of text, token_ids and messages"),
        (b'{"prompt": "a"}', "none of text, token_ids and messages"),
        (b'{"text": "a", "token_ids": [1]}', "text and token_ids"),
        (b'{"text": ""}', 'text is ""'),
        (b'{"text": 5}', "text is 5"),
        (b'{"token_ids": []}', "token_ids is []"),
        (b'{"token_ids": [1, "2"]}', "give a list of whole numbers"),
        (b'{"messages": ["hi"]}', "give a list of objects with role and content"),
        (b'{"text": "a", "output_tokens": "9"}', 'output_tokens is "9"'),
        (b'{"text": "a", "output_tokens": 0}', "output_tokens is 0"),
        (b'{"text": "a", "output_tokens": true}', "output_tokens is true"),
        (b'{"text": "a", "index": -1}', "index is -1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes(b'{"text": "good"}\n' + line + b"\n")
    with pytest.raises(InputError, match=re.escape(said)) as error:
        list(read_prompts(file))
    assert "mine.jsonl: line 2: " in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\r\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"mine\.jsonl: holds no prompts"):
        list(read_prompts(file))
