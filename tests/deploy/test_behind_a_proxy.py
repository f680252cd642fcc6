"""The commands of docs/guide/13-behind-a-proxy.md; tests of the proxies are in `tests/browser/proxies`."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.browser.conftest import free_port
from tests.ops.conftest import ROOT, answers, wait_for
from tests.ops.guide_commands import Command, command

PORTS = {"manage.py up": "manage.py up --port 0 --serving-port 0"}
VARIABLES: dict[str, Any] = {
    "TRAINYARD_BROKER": "embedded",
    "TRAINYARD_STANDBY": "0",
    "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
}


@contextmanager
def installation(text: Command, folder: Path) -> Iterator[str]:
    """Run the command of a whole installation; yield the address of its dashboard."""
    home, log = folder / "home", folder / "up.log"
    up = text.start(PORTS, log=log, TRAINYARD_HOME=str(home), **VARIABLES)

    def urls() -> dict[str, str]:
        assert up.poll() is None, log.read_text()
        path = home / "run" / "urls.json"
        found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        return found

    try:
        yield wait_for(urls, "the installation to be up")["web"]
    finally:
        up.send_signal(signal.SIGTERM)
        assert up.wait(60) == 0


def behind_proxy(address: str, host: str) -> httpx2.Response:
    """Return an answer as a proxy that ends TLS gets it."""
    headers = {"Host": host, "X-Forwarded-Proto": "https"}
    return httpx2.get(address, headers=headers, trust_env=False)


def test_an_installation_starts_with_its_public_addresses(tmp_path: Path) -> None:
    with installation(command(13, "https://predictions.trainyard.example"), tmp_path) as web:
        answer = behind_proxy(f"{web}/accounts/login/", "trainyard.example")
        assert answer.status_code == 200, answer.text
        assert all("Secure" in cookie for cookie in answer.headers.get_list("set-cookie"))
        assert answer.headers["strict-transport-security"].startswith("max-age=")
        plain = httpx2.get(f"{web}/accounts/login/", headers={"Host": "trainyard.example"}, trust_env=False)
        assert plain.headers["location"].startswith("https://trainyard.example/accounts/login/")


def test_an_installation_starts_below_a_path(tmp_path: Path) -> None:
    with installation(command(13, "https://tools.example/predictions"), tmp_path) as web:
        # Whether the proxy passes the path on or removes it.
        for path in ("/trainyard/accounts/login/", "/accounts/login/"):
            answer = behind_proxy(f"{web}{path}", "tools.example")
            assert answer.status_code == 200, answer.text
            (cookie,) = answer.headers.get_list("set-cookie")
            assert cookie.startswith("__Secure-csrf-") and "Path=/trainyard;" in cookie
        styles = re.findall(r'"(/trainyard/static/[^"]+\.css)"', answer.text)
        assert len(styles) == 2
        assert [behind_proxy(f"{web}{path}", "tools.example").status_code for path in styles] == [200, 200]
        plain = httpx2.get(f"{web}/jobs", headers={"Host": "tools.example"}, trust_env=False)
        assert plain.headers["location"] == "https://tools.example/trainyard/jobs"
        # Logs have no links.
        printed = subprocess.run(
            [sys.executable, "manage.py", "adduser", "admin"],
            cwd=ROOT,
            env={
                **os.environ,
                **VARIABLES,
                "TRAINYARD_HOME": str(tmp_path / "home"),
                "TRAINYARD_PUBLIC_URL": "https://tools.example/trainyard",
            },
            capture_output=True,
            text=True,
            check=True,
        )
        link = printed.stdout.strip()
        assert link.startswith("https://tools.example/trainyard/login/")
        path = link.removeprefix("https://tools.example")
        assert behind_proxy(f"{web}{path}", "tools.example").status_code == 200


@contextmanager
def running(process: "subprocess.Popen[bytes]", port: int, log: Path) -> Iterator[str]:
    address = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        assert process.poll() is None, log.read_text()
        return answers(f"{address}/healthz")

    try:
        wait_for(is_up, f"the web server at {port}")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def test_two_web_servers_have_one_name_of_cookies_and_all_styles(tmp_path: Path) -> None:
    homes, ports = [tmp_path / "first", tmp_path / "second"], [free_port(), free_port()]
    shared: dict[str, Any] = {
        **VARIABLES,
        "TRAINYARD_DATABASE_URL": f"sqlite:///{tmp_path}/shared.sqlite3",
        "TRAINYARD_REDIS_URL": "unix:///nowhere/valkey.sock",
        "TRAINYARD_ARTIFACTS": str(tmp_path / "artifacts"),
    }
    log = tmp_path / "web.log"
    with ExitStack() as servers:
        first = command(13, "manage.py web --port 8000 --migrate").start(
            {"8000": str(ports[0])}, log=log, TRAINYARD_HOME=str(homes[0]), **shared
        )
        addresses = [servers.enter_context(running(first, ports[0], log))]
        homes[1].mkdir(mode=0o700)
        shutil.copy(homes[0] / "secret.key", homes[1])
        second = command(13, "manage.py web --port 8010").start(
            {"8010": str(ports[1])}, log=log, TRAINYARD_HOME=str(homes[1]), **shared
        )
        addresses.append(servers.enter_context(running(second, ports[1], log)))
        pages = [behind_proxy(f"{address}/accounts/login/", "trainyard.example") for address in addresses]
        assert [page.status_code for page in pages] == [200, 200]
        names = {page.headers["set-cookie"].partition("=")[0] for page in pages}
        assert len(names) == 1
        for path in re.findall(r'"(/static/[^"]+\.(?:css|js))"', pages[1].text):
            for address in addresses:
                assert behind_proxy(f"{address}{path}", "trainyard.example").status_code == 200, path
