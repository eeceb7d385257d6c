"""Keeps secrets out of what is recorded: told by their names, or by their values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

HIDDEN = "[secret]"
# Ends of names; `tokenizers_parallelism`, `max_total_tokens`, `eos_token` or `pad_token_id` are none.
_SETTING = re.compile(
    r"(?:^|_)(?:api_?key|access_key(?:_id)?|password|passphrase|secret|(?:hf|access|auth)_token|watermark_key\w*)$"
)
_VARIABLE = re.compile(r"(?:^|_)token$")
# Hiding a shorter text would blank half of an answer.
_SHORTEST_VALUE = 4


def is_secret(name: str) -> bool:
    """Returns whether an argument, a field or a setting of that name holds a secret; dashes count as underscores."""
    return bool(_SETTING.search(name.lower().replace("-", "_")))


def is_secret_variable(name: str) -> bool:
    """Returns whether an environment variable of that name holds a secret."""
    return is_secret(name) or bool(_VARIABLE.search(name.lower()))


def hide(text: str, values: Sequence[str]) -> str:
    """Returns the text with every value of four characters or more hidden."""
    for value in values:
        if len(value) >= _SHORTEST_VALUE:
            text = text.replace(value, HIDDEN)
    return text


def names_of(secrets: Mapping[str, str]) -> dict[bytes, bytes]:
    """Returns what `with_names` puts in place of each secret.

    Args:
        secrets: values by the names of their variables.
    """
    return {value.encode(): f"[{name}]".encode() for name, value in secrets.items() if len(value) >= _SHORTEST_VALUE}


def with_names(line: bytes, secrets: Mapping[bytes, bytes]) -> bytes:
    """Returns a line of a log with every secret (a key of `secrets`) replaced by its name in brackets."""
    for secret, name in secrets.items():
        line = line.replace(secret, name)
    return line


def redact_command(
    command: Sequence[str], secret_arguments: frozenset[str] = frozenset(), values: Sequence[str] = ()
) -> tuple[str, ...]:
    """Returns the command with the values of secret flags, and every given value, hidden.

    Args:
        command: words of the command line.
        secret_arguments: flags without their dashes, such as `api-key`.
        values: secrets, hidden wherever they stand inside a word.
    """
    shown: list[str] = []
    hide_next = False
    for word in command:
        name, equals, _ = word.partition("=")
        is_secret_flag = name.startswith("--") and name[2:].replace("_", "-") in secret_arguments
        if hide_next and not word.startswith("--"):
            shown.append(HIDDEN)
            continue  # a flag may take several secrets
        hide_next = is_secret_flag and not equals
        shown.append(f"{name}={HIDDEN}" if is_secret_flag and equals else hide(word, values))
    return tuple(shown)
