"""What of our own environment a server gets."""

from __future__ import annotations

import pytest

from crossover.launchers.inheritance import exceptions_of_proxies, inherited_environment

NEAR = "127.0.0.1,localhost,0.0.0.0,::1"


def test_neither_tokens_nor_settings_of_engines_are_inherited():
    own = {"PATH": "/bin", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "0", "HF_TOKEN": "t", "VLLM_USE_V1": "0"}
    assert inherited_environment(own) == {"PATH": "/bin", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "0"}
    assert inherited_environment({"no_proxy": "hub.example"}) == {}


def test_a_proxy_is_handed_on_without_this_machine_and_without_what_was_excepted_already():
    inherited = inherited_environment({"http_proxy": "http://127.0.0.1:3128", "NO_PROXY": "hub.example, localhost"})
    wanted = "hub.example,localhost,127.0.0.1,0.0.0.0,::1"
    assert inherited == {"http_proxy": "http://127.0.0.1:3128", "no_proxy": wanted, "NO_PROXY": wanted}


@pytest.mark.parametrize(
    ("environment", "below", "excepted"),
    [
        ({"HTTPS_PROXY": "http://p"}, {}, NEAR),
        ({}, {"http_proxy": "http://baked"}, NEAR),
        ({}, {"http_proxy": "http://baked", "no_proxy": "a"}, f"a,{NEAR}"),
        ({"http_proxy": ""}, {"http_proxy": "http://baked"}, None),  # taken away again by the experiment
        ({"no_proxy": "a"}, {}, None),
    ],
)
def test_proxies_that_are_declared_or_come_with_an_image(environment, below, excepted):
    found = exceptions_of_proxies(environment, below)
    assert found == ({} if excepted is None else {"no_proxy": excepted, "NO_PROXY": excepted})
