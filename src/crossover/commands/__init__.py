"""One module a subcommand: `HELP`, `configure(parser)` and `run(args)`, which returns the exit status.

A command reads files and arguments, calls one function of the package that does the work, and writes the result;
it may import every package, but imports them inside `run`, so that `crossover --help` stays quick.
"""
