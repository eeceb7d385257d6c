"""A secret written out in an experiment is refused; names that only look like one are not."""

from pathlib import Path

import pytest

from crossover.errors import InputError
from crossover.experiment.secrets import refuse_secrets

FILE = Path("e.yaml")


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("arguments", "api-key"), ("arguments", "admin_api_key"), ("arguments", "hf-token"),
        ("arguments", "ssl-keyfile-password"), ("environment", "HF_TOKEN"), ("environment", "VLLM_API_KEY"),
        ("environment", "AWS_SECRET_ACCESS_KEY"),
    ],
)  # fmt: skip
def test_a_secret_is_refused_by_its_name_and_never_shown(part, name) -> None:
    with pytest.raises(InputError) as caught:
        refuse_secrets({part: {name: "sk-123"}}, FILE, "variants.a")
    assert str(caught.value).startswith(f"e.yaml: variants.a.{part}.{name}: a secret is written out")
    assert "secrets" in str(caught.value)
    assert "sk-123" not in str(caught.value)


def test_other_settings_are_not_taken_for_secrets() -> None:
    arguments = {"max-total-tokens": 5, "eos-token": "</s>", "tokenizer": "x", "api-key": None, "enable-api-key": True}
    environment = {"TOKENIZERS_PARALLELISM": "false", "VLLM_API_KEY": "", "KEY": "x"}
    refuse_secrets({"arguments": arguments, "environment": environment}, FILE, "variants.a")
