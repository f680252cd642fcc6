"""The commands of docs/guide/13-behind-a-proxy.md; tests of the proxies are in `tests/browser/proxies`."""

import json
import signal
from pathlib import Path

import httpx2

from tests.ops.conftest import wait_for
from tests.ops.guide_commands import command


def test_an_installation_starts_with_its_public_addresses(tmp_path: Path) -> None:
    home = tmp_path / "home"
    log = tmp_path / "up.log"
    up = command(13, "manage.py up").start(
        {"manage.py up": "manage.py up --port 0 --serving-port 0"},
        log=log,
        TRAINYARD_HOME=str(home),
        TRAINYARD_BROKER="embedded",
        TRAINYARD_STANDBY="0",
        DJANGO_SETTINGS_MODULE="webapp.settings.main",
    )

    def urls() -> dict[str, str]:
        assert up.poll() is None, log.read_text()
        path = home / "run" / "urls.json"
        found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        return found

    try:
        web = wait_for(urls, "the installation to be up")["web"]
        headers = {"Host": "trainyard.example", "X-Forwarded-Proto": "https"}
        answer = httpx2.get(f"{web}/accounts/login/", headers=headers, trust_env=False)
        assert answer.status_code == 200, answer.text
        assert all("Secure" in cookie for cookie in answer.headers.get_list("set-cookie"))
        plain = httpx2.get(f"{web}/accounts/login/", headers={"Host": "trainyard.example"}, trust_env=False)
        assert plain.headers["location"].startswith("https://trainyard.example/accounts/login/")
    finally:
        up.send_signal(signal.SIGTERM)
        assert up.wait(60) == 0
