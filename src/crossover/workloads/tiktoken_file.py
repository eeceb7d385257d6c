"""Reads vocabularies in tiktoken's format (`tiktoken.model`), which models such as Kimi ship in place of a
tokenizer.json.

The file holds a line a token, `BASE64 RANK`. Its merges follow from the ranks: a token was made of the two
parts that are left when its bytes are merged by the ranks below its own. How text is split before that stands
in the model's own `tokenization_*.py` as `pat_str`, which is read, not run.
"""

from __future__ import annotations

import ast
import base64
import binascii
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crossover.errors import InputError

_REMEDY = "give the model's whole folder, with its tiktoken.model and tokenization_*.py"


def load_tiktoken(path: Path) -> Any:
    """Returns a `tokenizers.Tokenizer` that encodes as tiktoken does with this vocabulary; special tokens are
    left out.

    Raises:
        InputError: not such a file, or no pattern beside it.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    ranks = read_ranks(path)
    pattern = read_pattern(path)
    spelled = _spelling()
    vocabulary = {_spell(token, spelled): rank for token, rank in ranks.items()}
    merges = [(_spell(left, spelled), _spell(right, spelled)) for left, right in find_merges(ranks)]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def read_ranks(path: Path) -> dict[bytes, int]:
    """Returns the rank of each token."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise InputError("not a token and its rank", file=path, place=f"line {number}", remedy=_REMEDY) from error
    return ranks


def find_merges(ranks: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """Yields the two parts of each token of more than one byte, in order of rank."""
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) < 2:
            continue
        splits = [at for at in range(1, len(token)) if token[:at] in ranks and token[at:] in ranks]
        if len(splits) == 1:
            yield token[: splits[0]], token[splits[0] :]
        elif splits:
            parts = _merge_below(token, ranks, rank)
            if len(parts) == 2:
                yield parts[0], parts[1]


def _merge_below(token: bytes, ranks: Mapping[bytes, int], limit: int) -> list[bytes]:
    """Merges bytes by the lowest rank first, as encoding does, but only by ranks below `limit`."""
    parts = [token[at : at + 1] for at in range(len(token))]
    while len(parts) > 2:
        candidates = [(ranks.get(parts[at] + parts[at + 1], limit), at) for at in range(len(parts) - 1)]
        rank, at = min(candidates)
        if rank >= limit:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def pattern_file(path: Path) -> Path:
    """Returns the `tokenization_*.py` beside a vocabulary that defines `pat_str`."""
    for candidate in sorted(path.parent.glob("tokenization*.py")):
        if "pat_str" in candidate.read_text("utf-8"):
            return candidate
    raise InputError("no tokenization_*.py with a pat_str lies beside it", file=path, remedy=_REMEDY)


def read_pattern(path: Path) -> str:
    """Returns the regular expression by which text is split before merging."""
    source = pattern_file(path)
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Assign) and any(_is_pattern(target) for target in node.targets):
            found = _constant(node.value)
            if found is not None:
                return found
    raise InputError("pat_str is no plain text", file=source, remedy=_REMEDY)


def _is_pattern(target: ast.expr) -> bool:
    return getattr(target, "id", getattr(target, "attr", None)) == "pat_str"


def _constant(node: ast.expr) -> str | None:
    """Returns a literal, or `"separator".join([literals])`; None for anything that would have to be run."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        separator = _constant(node.func.value)
        items = node.args[0].elts if node.args and isinstance(node.args[0], ast.List | ast.Tuple) else []
        parts = [_constant(item) for item in items]
        if separator is not None and parts and None not in parts:
            return separator.join(part for part in parts if part is not None)
    return None


def _spelling() -> list[str]:
    """Returns a printable character for each byte, the ones that byte-level tokenizers use."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def _spell(token: bytes, spelled: list[str]) -> str:
    return "".join(spelled[byte] for byte in token)
