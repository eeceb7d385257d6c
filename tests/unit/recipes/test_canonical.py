"""Keys: the same intent is the same key, whatever the order and however a number is written."""

import hashlib

import pytest

from crossover.recipes import canonical_json, digest_of_files, key_of


def test_order_and_number_form_do_not_matter() -> None:
    assert key_of({"a": 1, "b": [1.0, "x"]}) == key_of({"b": [1, "x"], "a": 1.0})


def test_canonical_text_is_as_written_by_hand() -> None:
    assert canonical_json({"b": (1, 2.5), "a": {"ü": None, "t": True}}) == '{"a":{"t":true,"ü":null},"b":[1,2.5]}'


def test_key_is_the_start_of_the_sha256_of_that_text() -> None:
    assert key_of({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()[:24]


def test_true_is_not_one() -> None:
    assert key_of({"a": True}) != key_of({"a": 1})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_recipe_holds_a_number_that_json_lacks(value: float) -> None:
    with pytest.raises(ValueError):
        key_of({"a": value})


def test_no_recipe_holds_an_object() -> None:
    with pytest.raises(TypeError):
        key_of({"a": object()})


def test_digest_of_files_sees_names_and_bytes(tmp_path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    both = digest_of_files([tmp_path / "a", tmp_path / "b"], tmp_path)
    assert both == digest_of_files([tmp_path / "b", tmp_path / "a"], tmp_path)
    (tmp_path / "b").rename(tmp_path / "c")
    assert both != digest_of_files([tmp_path / "a", tmp_path / "c"], tmp_path)
