"""A recorder that is killed, and an endpoint behind TLS."""

from __future__ import annotations

import datetime
import ipaddress
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crossover.client import Endpoint, Load, Sampling, interpret, record
from crossover.client.spool import SPOOL_NAME
from ground_truth import GroundTruthServer, serve_in_thread

_RECORD = """
import sys
from pathlib import Path
from crossover.client import Endpoint, Load, Sampling, record
prompts = [{"index": i, "text": "a", "output_tokens": 10_000} for i in range(2)]
record(Endpoint(sys.argv[1], sys.argv[2]), prompts, Load(concurrency=2), Sampling(), Path(sys.argv[3]))
"""


def test_a_killed_recorder_leaves_what_it_had_read(server: GroundTruthServer, tmp_path: Path) -> None:
    model = "steady:ttft_ms=0,interval_ms=5"
    process = subprocess.Popen([sys.executable, "-c", _RECORD, server.url, model, str(tmp_path)])
    spool = tmp_path / SPOOL_NAME
    deadline = time.monotonic() + 30
    while not (spool.exists() and spool.stat().st_size > 20_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    found = interpret(tmp_path)
    assert found.requests["reason"].tolist() == ["stopped"] * 2
    assert "incomplete" in found.requests["status"].tolist()
    assert (found.events["kind"] == "content").sum() > 20
    assert "recorder_killed" in [finding["finding"] for finding in found.findings]
    # Reading it again gives the same.
    assert len(interpret(tmp_path).events) == len(found.events)


def test_a_half_written_block_is_dropped(server: GroundTruthServer, tmp_path: Path) -> None:
    from crossover.client.spool import NO_STAMP, Spool, read_spool

    spool = Spool(tmp_path / "spool")
    spool.reads.append((0, NO_STAMP, 1, b"whole"))
    spool.flush()
    spool.reads.append((0, NO_STAMP, 2, b"half"))
    spool.close()
    content = (tmp_path / "spool").read_bytes()
    (tmp_path / "spool").write_bytes(content[:-1])
    assert [block.payload for block in read_spool(tmp_path / "spool")] == [b"whole"]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "certificate.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return file


@pytest.mark.parametrize("trusted", [True, False])
def test_tls_has_user_time_only_and_says_so(
    certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    prompts = [{"index": i, "text": "word " * 20_000, "output_tokens": 5} for i in range(3)]
    with serve_in_thread(tls=context) as server:
        endpoint = Endpoint(server.url, "steady:ttft_ms=20,interval_ms=2")
        record(endpoint, prompts, Load(concurrency=2, connect_timeout_s=5), Sampling(), tmp_path / "out")
    found = interpret(tmp_path / "out")
    if not trusted:
        assert found.requests["reason"].tolist() == ["tls"] * 3
        return
    assert found.requests["status"].tolist() == ["ok"] * 3
    assert found.fitness["clock"] == "user"
    assert found.fitness["lag_s"] is None
    assert found.events["t_kernel_ns"].isna().all()
    assert found.events["t_user_ns"].notna().all()
    assert "user_clock" in [finding["finding"] for finding in found.findings]


def test_proxies_in_the_environment_are_ignored(
    server: GroundTruthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert os.environ["http_proxy"]
    prompts = [{"index": 0, "text": "a", "output_tokens": 2}]
    record(Endpoint(server.url, "steady:ttft_ms=5,interval_ms=1"), prompts, Load(concurrency=1), Sampling(), tmp_path)
    assert interpret(tmp_path).requests["status"].tolist() == ["ok"]
