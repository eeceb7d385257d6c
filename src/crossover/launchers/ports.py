"""Ports: a free one to ask for, whether one is taken, and whose a listener is."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

import psutil

from crossover.errors import InputError
from crossover.launchers.base import LaunchError

# Below the ports that systems hand out by themselves (32768 and above on Linux, 30000 and above to services of
# Kubernetes): an engine may load for ten minutes before it listens, and each of its connections would be handed one.
_OURS = range(18000, 30000)
_TRIES = 50


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port that was free a moment ago. Another process may take it first: `owns_port` tells
    afterwards.

    Raises:
        InputError: `host` is no address of this machine.
    """
    for port in random.SystemRandom().sample(_OURS, _TRIES):
        if not port_is_taken(host, port):
            return port
    return _bound_port(host, 0)


def port_is_taken(host: str, port: int) -> bool:
    """Returns whether somebody listens there already.

    Raises:
        InputError: nobody could listen there: not an address of this machine, or a port that is kept from this user.
    """
    try:
        _bound_port(host, port)
    except OSError:
        return True
    return False


def require_free(host: str, port: int) -> None:
    """Raises LaunchError where somebody listens there already, InputError as `port_is_taken` does."""
    if port_is_taken(host, port):
        raise LaunchError("port_in_use", f"port {port} on {host} is in use by another process")


def _bound_port(host: str, port: int) -> int:
    """Binds for a moment; returns the port. Raises OSError where it is taken."""
    if not 0 <= port <= 65535:
        raise InputError(f"{port} is no port", place="port", remedy="a number from 1 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return int(probe.getsockname()[1])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise
        if isinstance(error, PermissionError):
            told = f"this user may not listen on port {port}"
            raise InputError(told, place="port", remedy="one from 1024 up") from None
        raise InputError(
            f"{host} is no address of this machine ({error.strerror or error})",
            place="host",
            remedy="127.0.0.1, ::1 or 0.0.0.0, or leave it out",
        ) from None


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


def somebody_listens(url: str) -> bool:
    """Returns whether a connection to the server of an address comes about from here."""
    place = urlsplit(url)
    try:
        with socket.create_connection((str(place.hostname), place.port or 80), timeout=2.0):
            return True
    except OSError:
        return False


def client_host(host: str) -> str:
    """Returns the address at which a client on this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
