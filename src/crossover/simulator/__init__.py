"""The simulated engine: an OpenAI-compatible server that behaves, in time and in its log, like vLLM or SGLang.

`calibration`, `flags`, `settings`, `scheduler` and `timing` are pure; `server` owns the sockets and the clock.
The package
imports nothing of crossover but `errors`, and only the standard library and PyYAML, so that a start stays quick.
"""

SIMULATOR_VERSION = 1
"""Raised by hand when a simulated measurement would come out differently; part of the key of every simulated run."""
