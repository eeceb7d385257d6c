"""Prefill rate by chunk: how fast tokens go in as the context before them grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from crossover.report.context import Context
from crossover.report.figures.model import LABEL_LETTERS, MAX_PANELS, MAX_SERIES, Figure, Panel
from crossover.report.figures.style import from_zero, look, looks
from crossover.report.formatting import cut, number, slug, tokens

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Chunks of the same place in a prompt are gathered in steps of this many tokens of context before them.
STEP_TOKENS = 8192


def build(context: Context) -> list[Figure]:
    """Returns the figure where an engine log told its prefill chunks."""
    rows = []
    for cell in context.sheet.good:
        chunks = cell.engine_facts.get("prefill_chunks")
        for chunk in chunks if isinstance(chunks, list) else ():
            if isinstance(chunk, Mapping) and chunk.get("tok_s") and chunk.get("context_tokens") is not None:
                rows.append(
                    {
                        "cell": cell.id,
                        "variant": cell.variant,
                        "dataset": cell.dataset,
                        "context_tokens": chunk["context_tokens"],
                        "new_tokens": chunk.get("new_tokens"),
                        "prefill_tok_s": chunk["tok_s"],
                        "run_key": cell.run_key,
                    }
                )
    if not rows:
        return []
    frame = pd.DataFrame(rows)
    groups = list(frame.groupby("dataset", sort=False))
    panels = [_panel(context, str(name), part) for name, part in groups[:MAX_PANELS]]
    lead = "Median over requests, from the engine log; the context is what was prefilled before the chunk."
    return [Figure("prefill", "Prefill rate by chunk", lead, frame, panels, max(0, len(groups) - MAX_PANELS))]


def _panel(context: Context, dataset: str, part: pd.DataFrame) -> Panel:
    variants = context.sheet.order
    present = [variant for variant in variants if variant in set(part["variant"])][:MAX_SERIES]
    bins = (part["context_tokens"] / STEP_TOKENS).round() * STEP_TOKENS
    medians = part.assign(at=bins).groupby(["variant", "at"], as_index=False)["prefill_tok_s"].median()

    def draw(axes: Axes) -> None:
        import seaborn as sns

        sns.lineplot(
            medians[medians["variant"].isin(present)],
            x="at",
            y="prefill_tok_s",
            ax=axes,
            errorbar=None,
            markeredgewidth=0,
            legend=False,
            **looks(variants, present),
        )
        for variant in present:
            axes.plot([], [], label=cut(variant, LABEL_LETTERS), **look(variants.index(variant)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}K")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}K")
        axes.set_xlabel("context before the chunk, tokens")
        axes.set_ylabel("prefill, tok/s")
        from_zero(axes)
        # A prompt of one chunk is one point.
        axes.set_xlim(-STEP_TOKENS / 2, medians["at"].max() + STEP_TOKENS / 2)
        axes.legend(loc="best")

    told = "; ".join(_told(medians[medians["variant"] == variant], variant) for variant in present)
    return Panel(f"prefill-{slug(dataset)}", dataset, f"Prefill rate by context before the chunk. {told}.", draw)


def _told(mine: pd.DataFrame, variant: str) -> str:
    first, last = mine.iloc[0], mine.iloc[-1]
    return (
        f"{variant}: {number(float(first['prefill_tok_s']))} tok/s at {tokens(int(first['at']))}, "
        f"{number(float(last['prefill_tok_s']))} at {tokens(int(last['at']))}"
    )
