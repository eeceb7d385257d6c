"""The report: reads a sheet of measured cells and writes page, Markdown, tables, figures and JSON.

It may import `crossover.statistics`, `crossover.attribution`, `crossover.confounds` and `crossover.audits`,
computes no statistic of its own, and is the only package that draws or fills templates. Everything missing
is shown as missing.
"""
