"""The page of audits, made from the audits themselves.

`python -m crossover.audits.documentation > docs/audits.md` renews it; a test fails where the two differ.
"""

from __future__ import annotations

from crossover.audits.registry import AUDITS, Audit

_HEAD = """# Audits

An audit is a file in `src/crossover/audits/checks/`, and this page is made from them
(`python -m crossover.audits.documentation`). A measured cell passes through all that apply before anyone sees its
numbers: a figure that fails is withheld, and the reason stands in its place in every table. `crossover audit FILE`
runs those that apply to a published table or to what a load client printed.

## Printed figures

A table shows rounded numbers: 12.28 stands for anything from 12.275 to 12.285. Identities are carried through
with these intervals, so that rounding is never a fault; tolerances below come on top of it.

## What `crossover audit` reads

YAML or JSON in the shape of `workflow/schemas/published.schema.json` (any part of it), a JSON list of records, CSV, and
text with tables or `name: value` lines: Markdown, HTML, box drawing, `+---+` grids, tabs, pandas summaries,
console output. Decimal commas are taken as such where a file shows that it means them. A
table may have a cell a row, a cell a column, a statistic a column or a row, or pairs; several lines of names; units in
a column or behind the values. Columns of two engines side by side (`vLLM TTFT (ms)`, `SGLang TTFT (ms)`) become a cell
an engine. The formats of known clients ([peers](peers.md)) are read with their own meanings.

A figure is recognised by its name and unit: `ttft_p90_ms`, `P90 TTFT (ms)` and `p90 time to first token (ms)` are one
figure. What is not recognised is listed as not used, and a cell of which nothing could be checked with what it would
have to state. What you know and the file does not say goes into options:

```
crossover audit config/published/kimi-k3-b300.yaml
crossover audit table.md --requests 10 --output-tokens 3000 --concurrency 10
crossover audit FILE --json      # {"findings": [...], "passed": [...], "not_used": [...], "unchecked": {...}, ...}
crossover audit FILE --strict    # exit status 1 if there is a fault
```

A file of `data: {...}` lines is a saved stream: it says which event stops which clock.

## Verdicts

| verdict | meaning |
| --- | --- |
| impossible | no run could give it |
| not closed | the figures of one row do not fit together |
| mislabelled | the figure follows another definition than its name |
| inconsistent | a claim or a count differs from the figures it is made of |
| contradiction | two statements on one thing differ |
| infeasible | the configuration cannot do what it promises |
| overcommitted | more was taken than was there |
| under-sampled | the sample cannot support the statistic |
| contaminated | something that is no part of the workload entered |
| incomplete | some requests did not succeed |
| missing | a figure was never measured, and a zero or a dash stands for it |
| rounding | a note, no fault: printed figures round otherwise, or stamps are coarser than the gaps |

## The audits
"""

_TAIL = """
## Order

An audit that needs sound figures waits for those that judge them, and says `not applicable` where they failed: client
and engine log are not set against each other while tokens are missing. So one fault has one finding.

## Attribution

Aggregate decode throughput = running requests x accepted length / step time. The engine's log gives the first two, so
the step time follows, and the ratio of two cells is the product of three ratios. `crossover audit` prints it for
every pair of variants at one context and every pair of contexts of one variant.
"""


def audits_page() -> str:
    """Returns docs/audits.md."""
    return _HEAD + "".join(_section(audit) for audit in sorted(AUDITS.values(), key=lambda audit: audit.name)) + _TAIL


def _section(audit: Audit) -> str:
    judges = [name for name, check in (("cells", audit.check_cell), ("tables", audit.check_table)) if check]
    waits = f"- Waits for: {', '.join(audit.after)}\n" if audit.after else ""
    return (
        f"\n### {audit.name} ({' and '.join(judges)})\n\n"
        f"- Identity: {audit.identity}\n"
        f"- Tolerance: {audit.tolerance}\n"
        f"- Reason: {audit.reason}\n{waits}"
    )


if __name__ == "__main__":
    print(audits_page(), end="")
