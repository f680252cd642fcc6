"""Indexes with certificates, passwords and closed folders, as an operator configures them."""

import base64
import datetime
import http.server
import ipaddress
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.environments.conftest import Bench, Server, python_of, served, serving
from tests.environments.packages import index_of, source, wheel
from workers.confinement.environments.failures import BuildFailed
from workers.confinement.environments.index import PackageIndex

PASSWORD = "correct-horse"


def certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey
) -> bytes:
    """Return a certificate for 127.0.0.1, or one of an authority if it signs itself."""
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=name == issuer, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
    )
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def secure_index(bench: Bench) -> Iterator[PackageIndex]:
    """An index with https, and the file of its authority."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority, chain = bench.root / "authority.pem", bench.root / "server.pem"
    authority.write_bytes(certificate("authority", authority_key, "authority", authority_key))
    chain.write_bytes(
        certificate("server", key, "authority", authority_key)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    wheel(bench.wheels, "first")
    index_of(bench.wheels, bench.root)
    with serving(bench.root, context) as server:
        address = f"https://127.0.0.1:{server.server_port}"
        yield PackageIndex(
            urls=(f"{address}/simple",), hosts=frozenset({("127.0.0.1", server.server_port)}), timeout=5
        )


def test_an_index_is_trusted_by_the_certificate_that_the_operator_names(
    bench: Bench, secure_index: PackageIndex
) -> None:
    authority = str(bench.root / "authority.pem")
    bench.index = secure_index._replace(certificates=authority, readable=(authority,))
    assert python_of(bench.ensure("first"), "import first; print(first.VERSION)") == "1.0"


def test_an_index_without_a_trusted_certificate_is_refused(bench: Bench, secure_index: PackageIndex) -> None:
    bench.index = secure_index
    with pytest.raises(BuildFailed, match="certificate of the package index is not trusted") as failed:
        bench.ensure("first")
    assert failed.value.code == "package_index"


def test_a_host_is_trusted_without_a_certificate_if_the_operator_names_it(
    bench: Bench, secure_index: PackageIndex
) -> None:
    bench.index = secure_index._replace(trusted=("127.0.0.1",))
    assert python_of(bench.ensure("first"), "import first; print(first.VERSION)") == "1.0"


@pytest.fixture
def guarded_index(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An index that asks for a name and a password."""
    expected = f"Basic {base64.b64encode(f'reader:{PASSWORD}'.encode()).decode()}"
    answer = http.server.SimpleHTTPRequestHandler.send_head

    def guard(handler: http.server.SimpleHTTPRequestHandler) -> object:
        if handler.headers["Authorization"] == expected:
            return answer(handler)
        handler.send_response(401)
        handler.send_header("WWW-Authenticate", "Basic")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return None

    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "send_head", guard)
    wheel(bench.wheels, "first")
    source(bench.wheels, "sourced", "found = 1")
    index_of(bench.wheels, bench.root)
    with serving(bench.root) as server:
        yield server


def with_password(server: Server, password: str) -> str:
    return server.address.replace("http://", f"http://reader:{password}@") + "/simple"


def test_the_password_in_an_address_opens_the_index_and_is_in_no_output(
    bench: Bench, guarded_index: Server
) -> None:
    bench.index = served(bench, guarded_index.address)._replace(
        urls=(with_password(guarded_index, PASSWORD),)
    )
    held = bench.ensure("first")
    assert python_of(held, "import first; print(first.VERSION)") == "1.0"
    with pytest.raises(BuildFailed, match=r"no wheel of sourced .*: the address .* has a password"):
        bench.ensure("sourced")
    assert PASSWORD not in "\n".join([*bench.lines, held.facts.model_dump_json()])


def test_a_wrong_password_is_named_as_the_cause_and_is_in_no_output(
    bench: Bench, guarded_index: Server
) -> None:
    bench.index = served(bench, guarded_index.address)._replace(
        urls=(with_password(guarded_index, "wrong-horse"),)
    )
    with pytest.raises(BuildFailed, match="name and password in its address are missing or wrong") as failed:
        bench.ensure("first")
    assert "wrong-horse" not in "\n".join([*bench.lines, failed.value.message])


def test_a_closed_folder_of_wheels_is_named(bench: Bench) -> None:
    if os.geteuid() != 0:
        pytest.skip("a build has the user of the worker, who owns the folder")
    wheel(bench.wheels, "first")
    closed = bench.root / "wheels"
    bench.index = PackageIndex(links=(str(closed),), readable=(str(closed),))
    closed.chmod(0o700)
    with pytest.raises(BuildFailed, match=f"may not read {closed}") as failed:
        bench.ensure("first")
    assert failed.value.code == "package_index"


def test_an_index_of_files_on_the_disk_is_used(bench: Bench) -> None:
    wheel(bench.wheels, "first")
    page = bench.root / "pages" / "simple" / "first"
    page.mkdir(parents=True)
    for folder in (page, *page.parents[:2]):
        folder.chmod(0o755)
    link = '<a href="../../../wheels/first-1.0-py3-none-any.whl">first-1.0-py3-none-any.whl</a>'
    (page / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>")
    url = Path(page.parent).as_uri()
    bench.index = PackageIndex(urls=(url,), readable=(str(bench.root / "pages"), str(bench.wheels)))
    assert python_of(bench.ensure("first"), "import first; print(first.VERSION)") == "1.0"
