"""Line kinds that every engine shares: the HTTP server, CUDA and NCCL errors, downloads, crashes."""

from __future__ import annotations

from crossover.logs.table import LogTable

KINDS = ()
TABLE = LogTable(engine=None, kinds=KINDS)
