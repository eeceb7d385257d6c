"""python3 -m sglang.launch_server ARGS; SIMULATED_OPTIONS holds what `crossover sim` takes besides."""

import os
import sys

own = os.environ.get("SIMULATED_OPTIONS", "").split()
words = ["crossover.cli", "sim", "--dialect", "sglang", *own, "--", *sys.argv[1:]]
os.execv(sys.executable, [sys.executable, "-m", *words])
