"""Starts GPUStack, server or worker, on the loopback address alone, for which it has no option when its gateway is
disabled, and without downloading the tools that only GGUF models need."""

from __future__ import annotations

import sys

import uvicorn
from docker.models.containers import ContainerCollection
from gpustack.config.config import Config
from gpustack.main import main
from gpustack.worker.tools_manager import ToolsManager


class LoopbackConfig(uvicorn.Config):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **{**options, "host": "127.0.0.1"})


_create = ContainerCollection.create


def create_with_ordinary_rights(self, *arguments, **options):
    """Containers of the worker want all rights, which a small virtual machine or a container cannot grant."""
    return _create(self, *arguments, **{**options, "privileged": False, "oom_score_adj": None})


uvicorn.Config = LoopbackConfig
ContainerCollection.create = create_with_ordinary_rights
Config.get_proxy_listen_address = lambda self, default="": "127.0.0.1"
ToolsManager.prepare_tools = lambda self: None

if __name__ == "__main__":
    sys.argv[0] = "gpustack"
    sys.exit(main())
