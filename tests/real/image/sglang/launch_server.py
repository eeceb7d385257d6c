"""python3 -m sglang.launch_server ARGS"""

import os
import sys

scale = os.environ.get("SIMULATED_TIME_SCALE", "1")
words = ["crossover.cli", "sim", "--dialect", "sglang", "--time-scale", scale, "--", *sys.argv[1:]]
os.execv(sys.executable, [sys.executable, "-m", *words])
