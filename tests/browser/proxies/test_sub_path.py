"""The dashboard below a path, behind the shipped configurations of proxies: no request leaves the path."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Page, expect

from jobs.models import DatasetVersion
from tests.browser.conftest import free_port, start_server, wait_until_up
from tests.browser.data.test_upload_page import choose
from tests.browser.proxies.front_door import below_path_by_caddy, below_path_by_nginx
from tests.browser.proxies.test_front_doors import see_new_line
from tests.factories import make_job
from tests.people import People

Open = Callable[..., Page]
Proxy = Callable[[str, Path, int], AbstractContextManager[str]]
PATH = "/trainyard"


@contextmanager
def front_door(proxy: Proxy, folder: Path) -> Iterator[str]:
    """Start a web server that knows its path, and the proxy; yield the dashboard's address."""
    port, public = free_port(), free_port()
    log = folder / "server.log"
    # Not https://, which would serve built files only.
    server = start_server(port, log, TRAINYARD_PUBLIC_URL=f"http://localhost:{public}{PATH}")
    try:
        with proxy(wait_until_up(port, server, log), folder, public) as address:
            yield address
    finally:
        server.terminate()
        server.wait(timeout=15)


@pytest.mark.parametrize("proxy", [below_path_by_nginx, below_path_by_caddy])
def test_a_person_works_below_the_path(people: People, open_as: Open, tmp_path: Path, proxy: Proxy) -> None:
    job = make_job(by=people.member, project=people.project, kind="train", state="running")
    orders = tmp_path / "orders.csv"
    orders.write_text("id,price\n" + "".join(f"{i},{i % 7}\n" for i in range(500)))
    with front_door(proxy, tmp_path) as address:
        host = address.removesuffix(PATH)
        page = open_as(people.member, f"{PATH}/", at=host)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.get_by_role("link", name="Jobs", exact=True).first.click()
        expect(page).to_have_url(f"{address}/jobs")
        with page.expect_websocket() as opened:
            page.goto(f"{PATH}/jobs/{job.pk}?tab=logs")
        assert urlsplit(opened.value.url).path == f"{PATH}/ws/v1"
        see_new_line(page, job, "below a path")
        page.get_by_role("button", name="Theme: auto").first.click()
        page.goto(f"{PATH}/datasets/new")
        choose(page, orders)
        page.get_by_role("button", name="Upload", exact=True).click()
        expect(page.get_by_role("heading", name="orders v1")).to_be_visible()
        cookies = {cookie["name"]: cookie["path"] for cookie in page.context.cookies()}
        page.close()
    assert DatasetVersion.objects.filter(dataset__slug="orders").exists()
    assert cookies["theme-tests"] == PATH
    outside = [url for url in asked if url.startswith(host) and not url.startswith(f"{address}/")]
    assert not outside


@pytest.mark.parametrize("proxy", [below_path_by_nginx, below_path_by_caddy])
def test_the_address_without_its_last_slash_leads_to_the_login(
    tmp_path: Path, proxy: Proxy, db: None
) -> None:
    with front_door(proxy, tmp_path) as address:
        client = httpx2.Client(verify=False, trust_env=False, follow_redirects=True)
        response = client.get(address)
        assert str(response.url).startswith(f"{address}/accounts/login/"), response.url
        assert f'href="{PATH}/static/' in response.text


@contextmanager
def recording_server() -> Iterator[tuple[str, list[str]]]:
    """Run a server that answers every request; yield its address and the paths that it gets."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()


@pytest.mark.parametrize("proxy", [below_path_by_nginx, below_path_by_caddy])
def test_the_path_is_passed_to_the_dashboard_and_removed_for_the_prediction_server(
    tmp_path: Path, proxy: Proxy
) -> None:
    public = free_port()
    with recording_server() as (server, paths), proxy(server, tmp_path, public) as address:
        paths.clear()
        host = address.removesuffix(PATH)
        with httpx2.Client(verify=False, trust_env=False) as client:
            for path in (f"{PATH}/jobs", "/predictions/v1/models/orders"):
                assert client.get(f"{host}{path}").status_code == 200
    assert paths == [f"{PATH}/jobs", "/v1/models/orders"]
