"""The ledger: every setting in which two variants differ, and whether a comparison of them is controlled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crossover.confounds.names import canonical_name, same_value

NOT_ISOLATED = "not isolated"

# Where an engine serves, under which name and with which parser: no part of how fast it is.
_WITHOUT_EFFECT = frozenset(
    {
        "host", "port", "served_model_name", "model", "model_path", "api_key", "log_level", "trust_remote_code",
        "reasoning_parser", "tool_call_parser", "enable_auto_tool_choice", "raw", "version", "engine", "tokenizer",
        "tokenizer_path", "seed", "random_seed", "download_dir", "load_format", "enable_metrics",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One setting of the ledger.

    Attributes:
        item: common name.
        first, second: effective values; None where the engine's log does not state it.
        status: `same`, `differs`, or `unknown` (one side does not state it).
        under_test: whether the comparison is about this very setting.
        impact: measured effect of the retest item that isolates it, else `not isolated`; empty for `same`.
    """

    item: str
    first: Any
    second: Any
    status: str
    under_test: bool
    impact: str


@dataclass(frozen=True)
class Ledger:
    """The differences of two variants.

    Attributes:
        items: all settings, differing ones first.
        verdict: `controlled` (nothing but the factor under test differs, and both sides state it all), `confounded`
            (something else differs), or `undetermined` (nothing else differs, but a side leaves settings open).
    """

    items: tuple[Item, ...]
    verdict: str
    confounders: tuple[str, ...] = field(default=())
    unknown: tuple[str, ...] = field(default=())

    def sentence(self, first: str, second: str) -> str:
        """Returns one plain sentence on what a comparison of the two can say."""
        if self.verdict == "controlled":
            return f"{first} and {second} differ in the factor under test alone: the comparison is controlled."
        if self.verdict == "undetermined":
            return (
                f"{first} and {second} differ in nothing that both logs state, but {len(self.unknown)} settings are "
                "stated by one of them only."
            )
        names = ", ".join(self.confounders[:6]) + (", ..." if len(self.confounders) > 6 else "")
        return (
            f"{first} and {second} also differ in {len(self.confounders)} settings ({names}): the comparison is "
            "confounded, and no difference can be put down to the engine."
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the ledger as the report's JSON holds it."""
        return {
            "verdict": self.verdict,
            "confounders": list(self.confounders),
            "unknown": list(self.unknown),
            "items": [vars(item) for item in self.items],
        }


def ledger(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    *,
    under_test: Collection[str] = (),
    effects: Mapping[str, str] | None = None,
) -> Ledger:
    """Sets two effective configurations side by side.

    Args:
        first, second: `effective_config` of two engine reports; the engine's own names (`raw`) are not compared,
            since two engines share none of them.
        under_test: settings that the comparison is about, by any of their spellings; `engine` stands for the
            engine itself.
        effects: setting -> measured effect of the retest item that isolates it.

    Returns:
        The ledger.
    """
    a, b = _settings(first), _settings(second)
    tested = {canonical_name(name) for name in under_test}
    measured = {canonical_name(name): text for name, text in (effects or {}).items()}
    items = [_item(name, a.get(name), b.get(name), tested, measured) for name in sorted(a.keys() | b.keys())]
    order = {"differs": 0, "unknown": 1, "same": 2}
    items.sort(key=lambda item: (order[item.status], item.item))
    confounders = _names(item for item in items if item.status == "differs" and not item.under_test)
    unknown = _names(item for item in items if item.status == "unknown" and not item.under_test)
    verdict = "confounded" if confounders else "undetermined" if unknown or not items else "controlled"
    return Ledger(tuple(items), verdict, confounders, unknown)


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    named = {canonical_name(str(name)): value for name, value in config.items() if value is not None}
    return {name: value for name, value in named.items() if name not in _WITHOUT_EFFECT}


def _item(name: str, first: Any, second: Any, tested: Collection[str], measured: Mapping[str, str]) -> Item:
    known = first is not None and second is not None
    status = ("same" if same_value(first, second) else "differs") if known else "unknown"
    impact = "" if status == "same" else measured.get(name, NOT_ISOLATED)
    return Item(name, first, second, status, name in tested, impact)


def _names(items: Iterable[Item]) -> tuple[str, ...]:
    return tuple(item.item for item in items)
