"""How each engine speaks of its configuration: one module an engine, of the engine's name, found by `dialect_of`.

A module has `READERS` and `TRUST`, `own_arguments` and `common`: see `crossover.configuration.statements.Dialect`.
"""
