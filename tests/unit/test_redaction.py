"""Secrets are told by their names or values and reach no record."""

import pytest

from crossover.redaction import HIDDEN, hide, is_secret, is_secret_variable, names_of, redact_command, with_names


@pytest.mark.parametrize(
    "name",
    [
        "api-key", "admin_api_key", "OPENAI_API_KEY", "apikey", "hf-token", "access_token", "ssl-keyfile-password",
        "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "client_secret", "token_id_secret", "watermark_key_b",
    ],
)  # fmt: skip
def test_names_of_secrets(name):
    assert is_secret(name)
    assert is_secret_variable(name)


def test_names_that_only_look_like_secrets():
    names = ["eos_token", "pad_token_id", "max-total-tokens", "tokenizer", "TOKENIZERS_PARALLELISM", "key", "secretary"]
    assert not [name for name in names if is_secret(name)]
    assert not is_secret("GITHUB_TOKEN")  # as a setting it may be any token of a vocabulary
    assert is_secret_variable("GITHUB_TOKEN")


def test_values_are_hidden_wherever_they_stand_but_for_very_short_ones():
    assert hide("started with sk-12 and on", ["sk-12", "on"]) == f"started with {HIDDEN} and on"
    assert with_names(b"key sk-12!", names_of({"VLLM_API_KEY": "sk-12", "SHORT": "key"})) == b"key [VLLM_API_KEY]!"


def test_a_command_line_hides_every_word_of_a_secret_flag():
    """A flag takes several keys, in a word of its own or behind `=`, with dashes or underscores."""
    words = ("vllm", "--api-key", "one", "two", "--port", "1", "--hf_token=three", "--note=it-is-four")
    shown = redact_command(words, frozenset({"api-key", "hf-token"}), ["four"])
    assert shown == (
        "vllm",
        "--api-key",
        HIDDEN,
        HIDDEN,
        "--port",
        "1",
        f"--hf_token={HIDDEN}",
        f"--note=it-is-{HIDDEN}",
    )
