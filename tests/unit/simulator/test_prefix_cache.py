from __future__ import annotations

from crossover.simulator.planted import WrongCache
from crossover.simulator.prefix_cache import PrefixCache

LONG = "word " * 19_999 + "end"  # 20,000 tokens


def test_a_repeated_prompt_hits_all_but_the_last_token_in_whole_blocks() -> None:
    cache = PrefixCache(block_tokens=64, capacity_tokens=10**6, enabled=True)
    assert cache.lookup(LONG, 20_000) == 0
    # 19,999 tokens may be reused; 312 blocks of 64 are 19,968.
    assert cache.lookup(LONG, 20_000) == 19_968
    assert cache.queries == 40_000
    assert cache.hits == 19_968
    assert cache.hit_rate() == 19_968 / 40_000


def test_a_shared_prefix_hits_up_to_where_the_prompts_part() -> None:
    cache = PrefixCache(block_tokens=100, capacity_tokens=10**6, enabled=True)
    cache.lookup(LONG, 20_000)
    other = "word " * 10_000 + "else " * 9_999 + "end"
    # 50,000 characters are shared: 12 pieces of 4,096 characters are 49,152, or 9,830 words and a part of one.
    assert cache.lookup(other, 20_000) == 9_800


def test_disabled_reset_and_eviction() -> None:
    off = PrefixCache(64, 10**6, enabled=False)
    assert off.lookup(LONG, 20_000) == off.lookup(LONG, 20_000) == 0
    assert off.queries == 0
    cache = PrefixCache(64, 10**6, enabled=True)
    cache.lookup(LONG, 20_000)
    cache.reset()
    assert cache.lookup(LONG, 20_000) == 0
    small = PrefixCache(64, 20_000, enabled=True)
    small.lookup(LONG, 20_000)
    small.lookup(LONG.replace("word", "other"), 20_000)
    assert small.lookup(LONG, 20_000) == 0


def test_the_wrong_cache_hits_whatever_comes_and_survives_a_reset() -> None:
    cache = WrongCache(block_tokens=64, share=0.5)
    assert cache.lookup("never seen before", 1000) == 448  # 500 in blocks of 64
    cache.reset()
    assert cache.lookup("neither this", 1000) == 448
    assert cache.hit_rate() == 0.448
