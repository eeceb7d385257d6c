"""A wrong spec is one line that names the place and what would be right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossover import cli
from crossover.errors import InputError
from crossover.workloads import build, parse_spec, read_prompts

GOOD: dict[str, Any] = {"dataset": "random", "input_tokens": 20, "output_tokens": 5, "requests": 2}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"dataset": "wikipedia"},
            r"dataset: unknown dataset 'wikipedia'; use one of documents, jsonl, random",
        ),
        ({"colour": 1}, r"colour: unknown key; known keys: dataset, form"),
        ({"requests": 0}, r"requests: 0 is not a whole number of at least 1"),
        ({"requests": True}, r"requests: True is not"),
        ({"input_tokens": None}, r"input_tokens: dataset random needs input_tokens"),
        ({"output_tokens": "many"}, r"output_tokens: 'many' is not a whole number"),
        ({"purpose": "fun"}, r"purpose: 'fun' is not known; use one of measure, warmup"),
        ({"form": "audio"}, r"form: 'audio' is not known; use one of text, token_ids"),
        ({"form": "token_ids"}, r'form: the words tokenizer has no token ids; .* kind "ids"'),
        ({"tokenizer": "words"}, r"tokenizer: must be a mapping"),
        (
            {"tokenizer": {"kind": "magic"}},
            r"tokenizer\.kind: 'magic' is not known; use one of words, file, ids",
        ),
        ({"tokenizer": {"kind": "words", "path": "x"}}, r"tokenizer\.path: unknown key"),
        ({"tokenizer": {"kind": "file"}}, r"tokenizer\.path: None is not a path"),
        ({"tokenizer": {"kind": "file", "path": "no.json"}}, r"tokenizer\.path: no such file: no\.json"),
        ({"tokenizer": {"kind": "ids"}}, r"tokenizer\.vocabulary_size: is missing"),
        ({"tokenizer": {"kind": "words", "server_adds": 20}}, r"input_tokens: 20 tokens leave none"),
        ({"options": {"speed": 1}}, r"options\.speed: unknown key; known keys: none"),
        ({"dataset": "documents"}, r"options\.files: is missing; the text files, in order"),
        ({"dataset": "documents", "options": {"files": []}}, r"options\.files: \[\] is not a list of paths"),
        (
            {"dataset": "shared-prefix", "options": {"prefix_tokens": 20}},
            r"options\.prefix_tokens: a prefix of 20 tokens",
        ),
        ({"dataset": "sharegpt", "options": {"file": "a", "preset": "x"}}, r"options\.file: no such file: a"),
    ],
)
def test_a_wrong_spec_is_told_in_one_line(change: dict[str, Any], line: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=line) as caught:
        build({**GOOD, **change}, tmp_path / "out", base_dir=tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    spec = {**GOOD, "tokenizer": {"kind": "file", "path": "tokenizer.json"}}
    with pytest.raises(InputError, match=r"tokenizer\.json: not a tokenizer file"):
        build(spec, tmp_path / "out", base_dir=tmp_path)


def test_a_model_folder_stands_for_its_tokenizer(byte_bpe: Path) -> None:
    spec = parse_spec({**GOOD, "tokenizer": {"kind": "file", "path": str(byte_bpe.parent)}})
    assert spec.tokenizer["path"] == str(byte_bpe)


def test_the_command_builds_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "spec.json"
    sheet.write_text(json.dumps(GOOD), "utf-8")
    assert cli.main(["prompts", str(sheet), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    assert len(list(read_prompts(tmp_path / "out" / "prompts.jsonl"))) == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        (json.dumps({**GOOD, "seed": -1}), "seed: -1 is not a whole number"),
    ],
)
def test_the_command_names_the_sheet(text: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "spec.json"
    sheet.write_text(text, "utf-8")
    assert cli.main(["prompts", str(sheet), "--out", str(tmp_path / "out")]) == 2
    assert f"crossover prompts: {sheet}: {line}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nonsense", "line 1: not JSON"),
        ('{"text": "a", "token_ids": [1]}', "line 1: holds text and token_ids of"),
    ],
)
def test_a_prompts_file_that_is_none(line: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text(line, "utf-8")
    with pytest.raises(InputError, match=problem):
        list(read_prompts(tmp_path))
    with pytest.raises(InputError, match="no such prompts file"):
        list(read_prompts(tmp_path / "nowhere"))
