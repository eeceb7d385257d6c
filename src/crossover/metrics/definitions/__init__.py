"""One definition a file: `DEFINITION` in words and `compute(observations, context)`.

A new metric is a new file here and nothing else. May import `crossover.metrics.definition` and
`crossover.metrics.observations`.
"""
