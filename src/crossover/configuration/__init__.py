"""The configuration that a server really ran with: what its log, its information endpoints and its metrics say, merged
under common names, each value with its source, and set against what was asked for.

May import the names of `crossover.logs` (`logs.vllm.config`, `logs.sglang.config`), `crossover.confounds` and
`crossover.redaction`.
"""

from crossover.configuration.merge import Configuration, Setting, effective_configuration
from crossover.configuration.statements import LOG, Statement, statements

__all__ = ["LOG", "Configuration", "Setting", "Statement", "effective_configuration", "statements"]
