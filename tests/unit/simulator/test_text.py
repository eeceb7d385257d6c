from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossover.simulator.text import are_natural_ids, count_words, fingerprint, is_natural, prefix_tokens


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab \n\t\u00a0\u2003é\x1c", max_size=60))
def test_count_is_that_of_split(text: str) -> None:
    assert count_words(text) == len(text.split())


@pytest.mark.parametrize("text", ["", " ", "one", "a b", "a  b", " a b", "a b ", "a\nb c", "a b c d e"])
def test_count_of_plain_texts(text: str) -> None:
    assert count_words(text) == len(text.split())


def test_prose_is_natural_and_invented_words_are_not() -> None:
    prose = "It was the best of times, it was the worst of times, and all of us had everything before us. " * 30
    draw = random.Random(0)
    invented = " ".join("".join(draw.choice("bdfgklmnaeio") for _ in range(6)) for _ in range(3000))
    assert is_natural(prose)
    assert not is_natural(invented)
    assert not is_natural("")


def test_token_ids_that_repeat_are_natural() -> None:
    draw = random.Random(0)
    uniform = [draw.randrange(100_000) for _ in range(3000)]
    # Zipf-like: id k with weight 1/k, so that the ten commonest have 2.93 / 8.2 of the mass.
    skewed = draw.choices(range(1, 2001), weights=[1 / k for k in range(1, 2001)], k=3000)
    assert not are_natural_ids(uniform)
    assert are_natural_ids(skewed)
    assert not are_natural_ids([1] * 50)  # too few to judge


def test_equal_prefixes_have_equal_leading_hashes() -> None:
    shared = "word " * 4000  # 20,000 characters: four whole pieces of 4,096
    one, two = fingerprint(shared + "one"), fingerprint(shared + "two")
    assert one[:4] == two[:4]
    assert one[4] != two[4]
    assert prefix_tokens(shared, 4) == len(shared[: 4 * 4096].split())
    assert prefix_tokens([1] * 10_000, 2) == 8192
