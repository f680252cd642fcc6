"""The shipped configuration of a reverse proxy, in front of the web server of the tests, with TLS."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.browser.conftest import free_port

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
START_SECONDS = 30.0
NGINX_HEAD = """\
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""
WITHOUT_WEBSOCKETS = (r"(?m)^.*proxy_set_header (Upgrade|Connection) .*\$.*$", "")
"""Leaves out the lines that most configurations lack."""
FOREIGN_ERRORS = (r"(?m)^ *error_page 413 .*$", "")
"""Leaves out the answer of the shipped configuration: other proxies have none."""
USUAL_BODY_SIZE = ("client_max_body_size 2g", "client_max_body_size 1m")
"""The limit that nginx has by itself."""


def program(name: str) -> str:
    """Return the path of a proxy's program; a test is skipped without it."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None and os.environ.get("TRAINYARD_REQUIRE_PROXIES") == "1":
        pytest.fail(f"TRAINYARD_REQUIRE_PROXIES=1, but {name} is not installed")
    if found is None:
        pytest.skip(f"{name} is not installed (TRAINYARD_REQUIRE_PROXIES=1 forbids this)")
    return found


@contextmanager
def behind_nginx(
    server: str, folder: Path, *changes: tuple[str, str], port: int = 0, others: Sequence[str] = ()
) -> Iterator[str]:
    """Run nginx with `deploy/nginx/trainyard.conf`, changed by regular expressions; yield its address.

    Args:
        server: the address of the web server.
        folder: an empty folder.
        changes: regular expressions of the configuration, and what replaces them.
        port: the proxy's port; by default a free one.
        others: the addresses of further web servers.
    """
    port = port or free_port()
    changes += ((r"listen 80;", f"listen 127.0.0.1:{free_port()};"), _name("trainyard"))
    with _nginx("trainyard.conf", [server, *others], folder, port, *changes) as address:
        yield address


@contextmanager
def below_path_by_nginx(server: str, folder: Path, port: int) -> Iterator[str]:
    """Run nginx with `deploy/nginx/sub-path.conf`; yield the dashboard's address without a last slash.

    The server takes the place of the prediction server too.
    """
    changes = (_name("tools"), (r"server 127\.0\.0\.1:8501;", f"server {urlsplit(server).netloc};"))
    with _nginx("sub-path.conf", [server], folder, port, *changes, path="/trainyard") as address:
        yield address


def _name(host: str) -> tuple[str, str]:
    return rf"server_name {host}\.example;", "server_name localhost;"


@contextmanager
def _nginx(
    name: str, servers: Sequence[str], folder: Path, port: int, *changes: tuple[str, str], path: str = ""
) -> Iterator[str]:
    nginx = program("nginx")
    key, certificate = _certificate(folder)
    upstream = " ".join(f"server {urlsplit(server).netloc};" for server in servers)
    text = _changed(
        DEPLOY / "nginx" / name,
        *changes,
        (r"listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
        (r"/etc/ssl/trainyard/fullchain\.pem", str(certificate)),
        (r"/etc/ssl/trainyard/privkey\.pem", str(key)),
        (r"server 127\.0\.0\.1:8000;", upstream),
    )
    (folder / "site.conf").write_text(text)
    (folder / "nginx.conf").write_text(NGINX_HEAD.format(folder=folder))
    command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    with _running(command, f"https://localhost:{port}{path}", folder) as address:
        yield address


def _changed(file: Path, *changes: tuple[str, str]) -> str:
    text = file.read_text()
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text)
        assert count, f"{pattern} is not in the configuration"
    return text


@contextmanager
def behind_caddy(server: str, folder: Path) -> Iterator[str]:
    """Run Caddy with `deploy/caddy/Caddyfile`; yield its address."""
    port = free_port()
    changes = [
        (r"(?m)^predictions\.trainyard\.example \{", f"http://localhost:{free_port()} {{"),
        (r"(?m)^trainyard\.example \{", _caddy_site(folder, port)),
    ]
    with _caddy("Caddyfile", server, folder, f"https://localhost:{port}", *changes) as address:
        yield address


@contextmanager
def below_path_by_caddy(server: str, folder: Path, port: int) -> Iterator[str]:
    """Run Caddy with `deploy/caddy/sub-path.Caddyfile`; yield the dashboard's address."""
    changes = (
        (r"(?m)^tools\.example \{", _caddy_site(folder, port)),
        (r"reverse_proxy 127\.0\.0\.1:8501", f"reverse_proxy {urlsplit(server).netloc}"),
    )
    address = f"https://localhost:{port}/trainyard"
    with _caddy("sub-path.Caddyfile", server, folder, address, *changes) as found:
        yield found


def _caddy_site(folder: Path, port: int) -> str:
    key, certificate = _certificate(folder)
    return f"https://localhost:{port} {{\n\ttls {certificate} {key}"


@contextmanager
def _caddy(name: str, server: str, folder: Path, address: str, *changes: tuple[str, str]) -> Iterator[str]:
    caddy = program("caddy")
    to_server = (r"reverse_proxy 127\.0\.0\.1:8000", f"reverse_proxy {urlsplit(server).netloc}")
    text = _changed(DEPLOY / "caddy" / name, *changes, to_server)
    # No port of the machine, and no certificate of an authority.
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"
    (folder / "Caddyfile").write_text(options + text)
    command = [caddy, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    with _running(command, address, folder):
        yield address


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Return a new key and its self-signed certificate."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = ["openssl", "req", *kind, *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


@contextmanager
def _running(command: list[str], address: str, folder: Path) -> Iterator[str]:
    log = folder / "proxy.log"
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    try:
        _wait_until_up(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=15)


def _wait_until_up(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            if httpx2.get(f"{address}/healthz", trust_env=False, verify=False).is_success:
                return
        except httpx2.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"no answer in {START_SECONDS} s: {log.read_text()}")
