"""Weights: brought here from a hub by commit, with the SHA-256 of every file, into a cache that processes share.

May import `crossover.errors` and the hubs' own clients, which are only loaded when a hub is spoken to.
"""

from crossover.hubs.base import Hub, HubError, RemoteFile, Snapshot
from crossover.hubs.cache import cache_root, cached_snapshots, folder_of
from crossover.hubs.fetching import Weights, fetch
from crossover.hubs.local import describe_folder, fingerprint, fingerprint_of
from crossover.hubs.manifest import Manifest
from crossover.hubs.presence import faults, verify_folder
from crossover.hubs.registry import get_hub, hub_names

__all__ = [
    "Hub",
    "HubError",
    "Manifest",
    "RemoteFile",
    "Snapshot",
    "Weights",
    "cache_root",
    "cached_snapshots",
    "describe_folder",
    "faults",
    "fetch",
    "fingerprint",
    "fingerprint_of",
    "folder_of",
    "get_hub",
    "hub_names",
    "verify_folder",
]
