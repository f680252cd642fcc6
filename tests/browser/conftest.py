"""Fixtures for browser tests: a real web server on the test database, and Chromium through Playwright.

`open_as(user)` returns a page of a logged-in user. `look(page, name)` checks accessibility, and the width on
two screens. A console or CSP error fails the test.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.db import connection
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from jobs.models import User
from tests.browser.looking import Look, look_at
from tests.browser.shared_context import SharedContext, new_context
from tests.browser.visitor import Visitor
from tests.browser.walk.cast import PATIENCE, Cast
from tests.flow.yard import RunningYard, open_yard
from tests.people import People, browser_of, make_people

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The cheapest first: the headless shell has no browser windows."""
CHROMIUM = next(filter(None, map(shutil.which, PROGRAMS)), None)
REQUIRED = os.environ.get("TRAINYARD_REQUIRE_BROWSER") == "1"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--process-per-site",
    "--js-flags=--no-opt --no-maglev",
]
"""One renderer process for all pages of a context: its compiled scripts serve the next page, too.

The scripts of a page run for a fraction of a second: optimizing them costs more than it saves.
"""
START_SECONDS = 60
PAGE_TIMEOUT = 60_000  # ms, for each wait


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None and not REQUIRED:
                item.add_marker(
                    pytest.mark.skip(reason="no Chromium on PATH (TRAINYARD_REQUIRE_BROWSER=1 forbids this)")
                )


def free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def database_url() -> str:
    """Return the URL of the test database for other processes."""
    parameters = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{parameters['NAME']}"
    login = f"{parameters['USER']}:{parameters['PASSWORD']}@{parameters['HOST']}:{parameters['PORT'] or 5432}"
    return f"postgresql://{login}/{parameters['NAME']}"


@pytest.fixture(scope="session")
def server(django_db_setup: None, django_db_blocker: object) -> Iterator[str]:
    """Run a web server on the test database and yield its address."""
    port, log = free_port(), settings.HOME / "web-of-tests.log"
    process = start_server(port, log)
    try:
        yield wait_until_up(port, process, log)
    finally:
        process.terminate()
        process.wait(timeout=15)


def start_server(port: int, log: Path, **variables: str) -> "subprocess.Popen[bytes]":
    """Start the dashboard's web server on the test database, with additional variables."""
    listening = socket.create_server(("127.0.0.1", port))
    command = [sys.executable, "-m", "webapp.ops.web_server", "--fd", str(listening.fileno())]
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "webapp.settings.test",
        "TRAINYARD_DATABASE_URL": database_url(),
        **variables,
    }
    with listening, log.open("wb") as file:
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=file, stderr=file, pass_fds=[listening.fileno()]
        )


def wait_until_up(port: int, process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Return the address of a server as soon as it answers."""
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            if httpx2.get(f"{address}/healthz", trust_env=False).is_success:
                return address
        except httpx2.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"no answer in {START_SECONDS} s: {log.read_text()}")


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Run one browser for this folder only, because Playwright's event loop occupies the thread.

    Asynchronous tests could not start their own loops, and Django would refuse database access.
    """
    assert CHROMIUM, "TRAINYARD_REQUIRE_BROWSER=1, but there is no Chromium on PATH"
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        expect.set_options(timeout=PAGE_TIMEOUT)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=120_000)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def shared_context(server: str, chromium: Browser) -> Iterator[SharedContext]:
    shared = SharedContext(chromium, server)
    yield shared
    shared.close()


@pytest.fixture
def people(transactional_db: None) -> People:
    """Create the known users in committed transactions, so that the server sees them."""
    return make_people()


class Watch:
    """Collects the errors of a page's console."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def follow(self, page: Page) -> None:
        page.on("console", lambda entry: self.errors.append(entry.text) if entry.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def assert_quiet(self) -> None:
        assert not self.errors, "\n".join(self.errors)

    def ignore(self, text: str) -> None:
        """Drop errors that contain `text`, such as a status that the test provoked."""
        self.errors = [line for line in self.errors if text not in line]


class Held:
    """Holds the requests whose addresses match a pattern until the test answers them."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page = page
        self.waiting: list[Route] = []
        page.route(pattern, lambda route: self.waiting.append(route))

    def next(self) -> Route:
        """Wait for the next request."""
        deadline = time.monotonic() + PAGE_TIMEOUT / 1000
        while not self.waiting:
            assert time.monotonic() < deadline, "the page has not sent it"
            self._page.wait_for_timeout(10)  # the browser's messages are read only meanwhile
        return self.waiting.pop(0)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def open_as(
    server: str, chromium: Browser, shared_context: SharedContext, watch: Watch, transactional_db: None
) -> Iterator[Callable[..., Page]]:
    """Open a page as a user, or anonymously for None; `goto` accepts relative addresses.

    `at` is the address of another server.
    """
    contexts: list[BrowserContext] = []

    def open_page(user: User | None, path: str = "/", *, at: str = server) -> Page:
        context = shared_context.lend() if at == server else None
        if context is None:
            context = new_context(chromium, at)
            contexts.append(context)
        if user is not None:
            morsel = browser_of(user).cookies[settings.SESSION_COOKIE_NAME]
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": morsel.value, "url": at}])
        page = context.new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        watch.follow(page)
        page.goto(path)
        return page

    with ExitStack() as ends:
        # Each of these is done also if another one fails.
        ends.callback(watch.assert_quiet)
        yield open_page
        for context in contexts:
            ends.callback(context.close)
        ends.callback(shared_context.take_back)


@pytest.fixture
def look(watch: Watch) -> Look:
    """Check a page, in both themes and widths."""

    def take(page: Page, name: str) -> None:
        look_at(page, name)
        watch.assert_quiet()

    return take


@pytest.fixture(scope="package")
def wheels() -> Iterator[Path]:
    """The folder from which the installation has its packages, empty until a test writes into it."""
    # Not a folder of pytest: users of builds cannot enter that of root.
    with tempfile.TemporaryDirectory(prefix="trainyard-wheels-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="package")
def installation(
    tmp_path_factory: pytest.TempPathFactory, migrated: Path | None, wheels: Path
) -> Iterator[RunningYard]:
    """Broker, web, scheduler, worker and prediction server, with the two people in one project."""
    home = tmp_path_factory.mktemp("seen") / "home"
    with open_yard(home, TRAINYARD_PACKAGE_FOLDER=str(wheels)) as running:
        running.open(database=migrated)
        yield running


@dataclass
class KnownUser:
    """A user of the installation: a context, which one test after the other borrows, and their session."""

    shared: SharedContext
    cookies: list[Any]
    """As Playwright returns them."""


@pytest.fixture(scope="package")
def known_users(installation: RunningYard, chromium: Browser) -> Iterator[dict[str, KnownUser]]:
    """The users by name, once they have logged in. Their sessions last, as in a browser that they keep."""
    users: dict[str, KnownUser] = {}
    yield users
    for user in users.values():
        user.shared.close()


@pytest.fixture
def cast(
    installation: RunningYard,
    chromium: Browser,
    known_users: dict[str, KnownUser],
    watch: Watch,
    look: Look,
) -> Iterator[Cast]:
    """The users of the installation, who log in when a test first names them."""

    def enter(name: str) -> Visitor:
        if name not in known_users:
            known_users[name] = KnownUser(SharedContext(chromium, installation.urls["web"]), [])
        user = known_users[name]
        context = user.shared.lend()
        assert context is not None
        context.set_default_timeout(PATIENCE)
        context.add_cookies(user.cookies)
        page = context.new_page()
        watch.follow(page)
        visitor = Visitor(page, look)
        if user.cookies:
            page.goto("/account/")
        else:
            visitor.log_in(installation.call("tests.flow.people", "login", name), name)
            user.cookies = list(context.cookies())
        return visitor

    expect.set_options(timeout=PATIENCE)
    with ExitStack() as ends:
        # Each of these is done also if another one fails.
        ends.callback(watch.assert_quiet)
        yield Cast(enter)
        expect.set_options(timeout=PAGE_TIMEOUT)
        for user in known_users.values():
            ends.callback(user.shared.take_back)
