"""One audit a file: `IDENTITY`, `TOLERANCE`, `REASON`, and `check_cell`, `check_table` or both.

`AFTER` names audits whose failure leaves nothing to say. A new audit is a new file here and nothing else.
May import `crossover.audits`' own modules, `crossover.metrics` and `crossover.confounds`.
"""
