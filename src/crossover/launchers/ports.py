"""Ports: a free one to ask for, whether one is taken, and whose a listener is."""

from __future__ import annotations

import socket
from collections.abc import Iterable

import psutil


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port that was free a moment ago. Another process may take it first: `owns_port` tells
    afterwards."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def port_is_taken(host: str, port: int) -> bool:
    """Returns whether somebody listens there already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def listens(pids: Iterable[int], port: int) -> bool | None:
    """Returns whether one of the processes listens on the port, None where the system does not show it."""
    hidden = False
    for pid in pids:
        try:
            connections = psutil.Process(pid).net_connections(kind="tcp")
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            hidden = True
            continue
        for connection in connections:
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                return True
    return None if hidden else False


def client_host(host: str) -> str:
    """Returns the address at which a client on this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
