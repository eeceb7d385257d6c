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
_NEAR = "127.0.0.1,localhost,0.0.0.0,::1"


def inherited_environment(own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables that a local server inherits.

    Proxies are handed on only with an exception for this machine: SGLang asks itself for a completion at
    start-up, and a proxy in between makes that fail with a bare 502.
    """
    kept = {name: value for name, value in own.items() if any(fnmatch.fnmatchcase(name, one) for one in _ALLOWED)}
    proxies = {name: own[name] for name in _PROXIES if own.get(name)}
    if proxies:
        proxies |= {"no_proxy": _NEAR, "NO_PROXY": _NEAR}
    return kept | proxies
