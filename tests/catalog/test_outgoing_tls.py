"""Certificates of servers that others chose are verified, for the name that was asked."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from catalog.outgoing import Failed, Refused, fetch
from tests.stub_server import Internet, StubServer, internet, redirect, respond

PUBLIC = "93.184.215.14"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of feed.example that has signed itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "feed.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("feed.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def stub(certificate: Path) -> Iterator[StubServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = StubServer(lambda connection: context.wrap_socket(connection, server_side=True))
    yield server
    server.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, stub: StubServer) -> Iterator[Internet]:
    with internet(monkeypatch) as net:
        net.names = {"feed.example": [[PUBLIC]], "another.example": [[PUBLIC]]}
        net.reach(PUBLIC, stub.port)
        yield net


def test_a_trusted_certificate_of_that_name_is_accepted(
    monkeypatch: pytest.MonkeyPatch, certificate: Path, stub: StubServer, world: Internet
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    stub.answers["/"] = respond(200, b"[]")
    assert fetch("https://feed.example/").content == b"[]"
    with pytest.raises(Failed) as caught:
        fetch("https://another.example/")
    assert caught.value.code == "tls"
    assert "not valid for 'another.example'" in caught.value.detail
    assert len(stub.asked) == 1


def test_a_certificate_that_nobody_vouches_for_is_refused(stub: StubServer, world: Internet) -> None:
    stub.answers["/"] = respond(200, b"[]")
    with pytest.raises(Failed) as caught:
        fetch("https://feed.example/?key=s3cret", headers={"X-Feed-Key": "s3cret"})
    assert caught.value.code == "tls"
    assert "self-signed certificate" in caught.value.detail
    assert stub.asked == []


def test_a_server_without_tls_is_told_apart(world: Internet) -> None:
    def greet(connection: socket.socket) -> socket.socket:
        connection.sendall(b"220 mail.example ESMTP\r\n")
        return connection

    plain = StubServer(greet)
    world.reach(PUBLIC, plain.port)
    with pytest.raises(Failed) as caught:
        fetch("https://feed.example/", seconds=5)
    plain.close()
    assert caught.value.code == "tls"


def test_a_redirect_does_not_leave_tls(
    monkeypatch: pytest.MonkeyPatch, certificate: Path, stub: StubServer, world: Internet
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    stub.answers["/"] = redirect("http://feed.example/plain")
    with pytest.raises(Refused) as caught:
        fetch("https://feed.example/")
    assert caught.value.code == "redirect_downgrade"
    assert len(stub.asked) == 1
