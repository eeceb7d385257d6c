"""Which variables of our own environment a local server gets: those that make a machine work, no others.

An allow-list, so that neither a token of the user's shell nor a stray setting of the engine reaches the
server undeclared.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping

_MACHINE = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*")
_LIBRARIES = (
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "OMP_*",
    "OPENBLAS_*",
    "MKL_*",
)
_DEVICES = ("CUDA_*", "NVIDIA_*", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "*_SOCKET_IFNAME")
_ALLOWED = _MACHINE + _LIBRARIES + _DEVICES
_PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_EXCEPTIONS = ("no_proxy", "NO_PROXY")
_NEAR = ("127.0.0.1", "localhost", "0.0.0.0", "::1")


def inherited_environment(own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables that a local server inherits; proxies among them, with an exception for this machine."""
    kept = {name: value for name, value in own.items() if any(fnmatch.fnmatchcase(name, one) for one in _ALLOWED)}
    kept |= {name: own[name] for name in _PROXIES if own.get(name)}
    return kept | exceptions_of_proxies(kept, {name: own[name] for name in _EXCEPTIONS if name in own})


def exceptions_of_proxies(environment: Mapping[str, str], below: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the variables that keep requests to the machine itself from its proxies; none where there is no proxy.

    SGLang asks itself for a completion at start-up, and a proxy in between makes that fail with a bare 502.

    Args:
        environment: variables of a server.
        below: what holds besides where `environment` has nothing else, such as variables that an image brings along.
    """
    whole = {**(below or {}), **environment}
    if not any(whole.get(name) for name in _PROXIES):
        return {}
    given = [one.strip() for name in _EXCEPTIONS for one in whole.get(name, "").split(",")]
    return dict.fromkeys(_EXCEPTIONS, ",".join(dict.fromkeys(one for one in (*given, *_NEAR) if one)))
