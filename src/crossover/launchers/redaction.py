"""Keeps secrets out of what is recorded of a command line."""

from __future__ import annotations

from collections.abc import Sequence

HIDDEN = "[secret]"


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
        shown.append(f"{name}={HIDDEN}" if is_secret_flag and equals else _hide(word, values))
    return tuple(shown)


def _hide(word: str, values: Sequence[str]) -> str:
    for value in values:
        if len(value) > 3:
            word = word.replace(value, HIDDEN)
    return word
