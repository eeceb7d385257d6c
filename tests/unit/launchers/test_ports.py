"""Free and taken ports, over both protocols."""

from __future__ import annotations

import socket

import pytest

from crossover.errors import InputError
from crossover.launchers import LaunchError
from crossover.launchers.ports import free_port, port_is_taken, require_free


def listen(host, family=socket.AF_INET):
    listener = socket.socket(family)
    listener.bind((host, 0))
    listener.listen()
    return listener


def test_a_free_port_is_none_that_the_system_hands_out_to_connections():
    ports = {free_port() for _ in range(50)}
    assert all(18000 <= port < 30000 for port in ports)
    assert len(ports) > 10


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
def test_a_listener_takes_a_port(host):
    with listen("127.0.0.1") as other:
        port = other.getsockname()[1]
        assert port_is_taken(host, port)
        with pytest.raises(LaunchError, match=f"port {port} on {host} is in use by another process") as caught:
            require_free(host, port)
        assert caught.value.kind == "port_in_use"
    assert not port_is_taken(host, port)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_ports_of_the_newer_protocol():
    try:
        other = listen("::1", socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with other:
        port = other.getsockname()[1]
        assert port_is_taken("::1", port)
        assert port_is_taken("::", port)
    assert not port_is_taken("::1", port)
    assert 18000 <= free_port("::1") < 30000


@pytest.mark.parametrize(
    ("host", "port", "told"),
    [
        # 192.0.2.0/24 is kept for documents, so it is no address of any machine.
        ("192.0.2.1", 18000, "192.0.2.1 is no address of this machine"),
        ("no such host", 18000, "no such host is no address of this machine"),
        ("127.0.0.1", 70000, "70000 is no port"),
    ],
)
def test_what_can_never_be_listened_on_is_no_port_in_use(host, port, told):
    with pytest.raises(InputError, match=told):
        port_is_taken(host, port)


def test_a_port_kept_from_this_user_is_no_port_in_use(monkeypatch):
    def refused(self, address):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refused)
    with pytest.raises(InputError, match="this user may not listen on port 80; one from 1024 up"):
        port_is_taken("127.0.0.1", 80)
