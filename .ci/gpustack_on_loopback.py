"""Starts GPUStack on the loopback address alone, which it has no option for when its gateway is disabled."""

from __future__ import annotations

import sys

import uvicorn
from gpustack.config.config import Config
from gpustack.main import main


class LoopbackConfig(uvicorn.Config):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **{**options, "host": "127.0.0.1"})


uvicorn.Config = LoopbackConfig
Config.get_proxy_listen_address = lambda self, default="": "127.0.0.1"

if __name__ == "__main__":
    sys.argv[0] = "gpustack"
    sys.exit(main())
