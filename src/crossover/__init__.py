"""crossover compares LLM inference engines and audits every number that it reports.

The package holds everything that is not workflow wiring: Snakemake is never imported here, so that each
step is a command (`crossover ...`) that runs and can be tested without it.
"""

__version__ = "0.1.0"
