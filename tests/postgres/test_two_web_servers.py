"""Two web servers with homes of their own, one database, broker and store, behind the shipped nginx."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from websockets.sync.client import connect

from tests.broker import running_broker
from tests.browser.conftest import free_port
from tests.browser.proxies.front_door import behind_nginx
from tests.ops.conftest import ROOT, answers, needs_postgres, new_database, wait_for

pytestmark = [needs_postgres, pytest.mark.timeout(600)]

NAMED = (r"location (/|~ [^{]+) \{\n", r"location \1 {\n add_header X-Server $upstream_addr always;\n")
"""Lets nginx report which server has answered."""
PASSWORD = "a-long-password-of-ann"
SECRET = "JBSWY3DPEHPK3PXP"
ENROL = f"""
from allauth.mfa.totp.internal.auth import TOTP
from jobs.actions.people.people import add_person
person = add_person("carl", by=None)
person.set_password("{PASSWORD}")
person.save(update_fields=["password"])
TOTP.activate(person, "{SECRET}")
print("enrolled")
"""
PART = b"1234567,7654321\n" * 1000


@dataclass
class Pair:
    """Both web servers.

    Attributes:
        address: the address of the proxy.
        servers: their own addresses.
        environments: their variables.
    """

    address: str
    servers: list[str]
    environments: list[dict[str, str]]
    seen: list[str] = field(default_factory=list)

    def client(self) -> httpx2.Client:
        """Return a browser that asks the proxy, and records which server answers."""

        def record(response: httpx2.Response) -> None:
            self.seen.append(response.headers.get("x-server", ""))

        return httpx2.Client(
            base_url=self.address,
            verify=False,
            trust_env=False,
            timeout=60,
            event_hooks={"response": [record]},
        )

    def manage(self, *arguments: str) -> str:
        """Run a command in the first home; return its last line."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.environments[0], check=True,
            capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        return done.stdout.strip().splitlines()[-1]

    def has_alternated(self) -> bool:
        """Return whether both servers answered since the last call."""
        seen = set(self.seen)
        self.seen.clear()
        return len(seen) == 2


@contextmanager
def web_server(environment: dict[str, str], port: int, log: Path, *options: str) -> Iterator[str]:
    with log.open("wb") as file:
        command = [sys.executable, "manage.py", "web", "--port", str(port), *options]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=file)
    address = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        assert process.poll() is None, log.read_text()
        return answers(f"{address}/healthz")

    try:
        wait_for(is_up, f"the web server at {port}")
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)
        sys.stdout.write(f"--- {log.name}\n{log.read_text()[-4000:]}\n")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder, public = tmp_path_factory.mktemp("pair"), free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    homes = [folder / "first", folder / "another" / "home"]
    with ExitStack() as running:
        url, _ = running.enter_context(new_database())
        broker = running.enter_context(running_broker(folder / "broker"))
        environments = [
            {
                **inherited,
                "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
                "TRAINYARD_HOME": str(home),
                "TRAINYARD_DATABASE_URL": url,
                "TRAINYARD_REDIS_URL": broker,
                "TRAINYARD_ARTIFACTS": f"file://{folder}/store",
                "TRAINYARD_PUBLIC_URL": f"https://localhost:{public}",
            }
            for home in homes
        ]
        first, second = free_port(), free_port()
        servers = [running.enter_context(web_server(environments[0], first, folder / "a.log", "--migrate"))]
        homes[1].mkdir(mode=0o700, parents=True)
        for key in ("secret.key", "release.key"):
            shutil.copy(homes[0] / key, homes[1])
        servers.append(running.enter_context(web_server(environments[1], second, folder / "b.log")))
        site = folder / "nginx"
        site.mkdir()
        door = behind_nginx(servers[0], site, NAMED, port=public, others=servers[1:])
        yield Pair(running.enter_context(door), servers, environments)


def form_token(page: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found is not None, page
    return found[1]


@pytest.fixture(scope="module")
def login_link(pair: Pair) -> str:
    return pair.manage("adduser", "ann")


@pytest.fixture(scope="module")
def ann(pair: Pair, login_link: str) -> Iterator[httpx2.Client]:
    """Ann, who logged in by her link: its page came from one server, and its form went to the other."""
    with pair.client() as browser:
        page = browser.get(login_link)
        assert page.status_code == 200, page.text
        form = {"csrfmiddlewaretoken": form_token(page.text)}
        answer = browser.post(login_link, data=form, headers={"Referer": login_link})
        assert answer.status_code == 302, answer.text
        assert pair.has_alternated()
        yield browser


@pytest.fixture(scope="module")
def job(pair: Pair, ann: httpx2.Client) -> Iterator["subprocess.Popen[str]"]:
    """A process that appends events in the first home; the first line of its output names project and job."""
    command = [sys.executable, "-m", "tests.postgres.prepare_job", "ann"]
    with subprocess.Popen(
        command, cwd=ROOT, env=pair.environments[0], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def token(pair: Pair, job: "subprocess.Popen[str]") -> str:
    assert job.stdout is not None
    job.stdout.readline()
    return pair.manage("token", "ann", "--scopes", "read,write")


def test_a_link_that_one_server_has_used_is_used_at_the_other(
    pair: Pair, ann: httpx2.Client, login_link: str
) -> None:
    with pair.client() as stranger:
        assert [stranger.get(login_link).status_code for _ in range(4)] == [404] * 4
    assert pair.has_alternated()


def test_a_person_stays_logged_in_while_requests_alternate(pair: Pair, ann: httpx2.Client) -> None:
    assert [ann.get("/jobs").status_code for _ in range(6)] == [200] * 6
    assert pair.has_alternated()
    assert {cookie.name.rpartition("-")[0] for cookie in ann.cookies.jar} == {
        "__Host-session",
        "__Host-csrf",
    }


def test_both_serve_each_style_and_script(pair: Pair, ann: httpx2.Client) -> None:
    page = ann.get("/jobs").text
    files = set(re.findall(r'"(/static/[^"#]+)', page))
    assert len(files) > 5
    for path in files:
        answered = [httpx2.get(f"{server}{path}", headers=proxied(pair)) for server in pair.servers]
        assert [response.status_code for response in answered] == [200, 200], path
        assert answered[0].content == answered[1].content, path


def proxied(pair: Pair) -> dict[str, str]:
    return {"X-Forwarded-Proto": "https", "Host": pair.address.removeprefix("https://")}


def test_a_form_and_its_message_may_take_different_servers(pair: Pair, ann: httpx2.Client) -> None:
    page = ann.get("/accounts/password/set/")
    pair.seen.clear()
    form = {
        "csrfmiddlewaretoken": form_token(page.text),
        "password1": PASSWORD,
        "password2": PASSWORD,
    }
    headers = {"Referer": f"{pair.address}/accounts/password/set/"}
    answer = ann.post("/accounts/password/set/", data=form, headers=headers)
    assert answer.status_code == 302, answer.text
    shown = ann.get(answer.headers["location"])
    assert pair.has_alternated()
    assert 'data-level="success"' in shown.text


def test_wrong_passwords_are_counted_over_both(pair: Pair, ann: httpx2.Client) -> None:
    pair.manage("adduser", "bob")
    with pair.client() as stranger:
        answers_seen = []
        for _ in range(8):
            page = stranger.get("/accounts/login/")
            form = {"csrfmiddlewaretoken": form_token(page.text), "login": "bob", "password": "wrong"}
            headers = {"Referer": f"{pair.address}/accounts/login/"}
            answers_seen.append(stranger.post("/accounts/login/", data=form, headers=headers).status_code)
            # The next form goes to the other server.
            stranger.get("/healthz")
    assert 429 in answers_seen[:7], answers_seen


def test_a_socket_at_one_server_gets_the_events_of_the_other(
    pair: Pair, job: "subprocess.Popen[str]", token: str
) -> None:
    number = httpx2.get(
        f"{pair.servers[1]}/api/v1/jobs", headers={**proxied(pair), "Authorization": f"Bearer {token}"}
    ).json()["items"][0]["id"]
    assert job.stdin is not None
    for server in pair.servers:
        address = f"{server.replace('http', 'ws')}/ws/v1/token"
        with connect(address, additional_headers={"Authorization": f"Bearer {token}"}) as socket:
            socket.send(json.dumps({"op": "subscribe", "job": number, "after": None}))
            text = f"for {server}"
            job.stdin.write(f"{text}\n")
            job.stdin.flush()
            wait_for(lambda: text in str(socket.recv(timeout=20)), f"an event at {server}", 30)  # noqa: B023


def test_each_may_ask_prediction_servers(pair: Pair) -> None:
    files = [
        Path(environment["TRAINYARD_HOME"], "run", "prediction.token") for environment in pair.environments
    ]
    own = [file.read_text().strip() for file in files]
    assert len(set(own)) == 2
    for secret in own:
        headers = {**proxied(pair), "Authorization": f"Bearer {secret}"}
        assert httpx2.get(f"{pair.servers[0]}/api/v1/serving/access", headers=headers).status_code == 200


def begin_upload(browser: httpx2.Client, token: str, length: int) -> str:
    """Begin an upload; return its address."""
    metadata = "filename b3JkZXJzLmNzdg==,project eWFyZA=="
    headers = {"Tus-Resumable": "1.0.0", "Upload-Length": str(length), "Upload-Metadata": metadata}
    answer = browser.post("/api/v1/uploads", headers={**headers, "Authorization": f"Bearer {token}"})
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


def form_with(**fields: str) -> dict[str, tuple[None, str]]:
    """Return the fields of a multipart form."""
    return {name: (None, value) for name, value in fields.items()}


def part_headers(token: str, offset: int) -> dict[str, str]:
    return {
        "Tus-Resumable": "1.0.0",
        "Upload-Offset": str(offset),
        "Content-Type": "application/offset+octet-stream",
        "Authorization": f"Bearer {token}",
    }


def test_the_parts_of_an_upload_reach_one_server(pair: Pair, token: str) -> None:
    pair.seen.clear()
    with pair.client() as browser:
        place = begin_upload(browser, token, 4 * len(PART) + 9)
        for number, part in enumerate([b"id,price\n", PART, PART, PART, PART]):
            offset = max(0, 9 + (number - 1) * len(PART)) if number else 0
            answer = browser.patch(place, content=part, headers=part_headers(token, offset))
            assert answer.status_code == 204, answer.text
        form = form_with(project="yard", slug="orders", upload=place.rpartition("/")[2])
        made = browser.post("/api/v1/datasets", files=form, headers={"Authorization": f"Bearer {token}"})
        assert made.status_code == 201, made.text
    assert len(set(pair.seen)) == 1


def test_a_part_that_reaches_the_other_server_is_refused_with_the_reason(pair: Pair, token: str) -> None:
    headers = proxied(pair)
    first = httpx2.Client(base_url=pair.servers[0], headers=headers, trust_env=False, timeout=60)
    second = httpx2.Client(base_url=pair.servers[1], headers=headers, trust_env=False, timeout=60)
    with first, second:
        place = begin_upload(first, token, 2 * len(PART))
        assert first.patch(place, content=PART, headers=part_headers(token, 0)).status_code == 204
        for refused in (
            second.patch(place, content=PART, headers=part_headers(token, len(PART))),
            second.patch(place, content=PART, headers=part_headers(token, 0)),
        ):
            assert (refused.status_code, refused.json()["code"]) == (421, "on_other_server")
        head = {"Tus-Resumable": "1.0.0", "Authorization": f"Bearer {token}"}
        assert second.head(place, headers=head).status_code == 421
        form = form_with(project="yard", slug="halves", upload=place.rpartition("/")[2])
        made = second.post("/api/v1/datasets", files=form, headers={"Authorization": f"Bearer {token}"})
        assert made.status_code == 421, made.text
        # Nothing was lost by it.
        assert first.head(place, headers=head).headers["upload-offset"] == str(len(PART))
        assert first.patch(place, content=PART, headers=part_headers(token, len(PART))).status_code == 204


def test_password_and_code_may_take_different_servers_and_a_code_works_once(pair: Pair) -> None:
    assert pair.manage("shell", "--no-imports", "-c", ENROL) == "enrolled"

    def log_in(browser: httpx2.Client, code: str) -> httpx2.Response:
        page = browser.get("/accounts/login/")
        form = {"csrfmiddlewaretoken": form_token(page.text), "login": "carl", "password": PASSWORD}
        first = browser.post("/accounts/login/", data=form, headers={"Referer": str(page.url)})
        assert first.headers["location"].startswith("/accounts/2fa/authenticate/"), first.text
        page = browser.get(first.headers["location"])
        form = {"csrfmiddlewaretoken": form_token(page.text), "code": code}
        return browser.post("/accounts/2fa/authenticate/", data=form, headers={"Referer": str(page.url)})

    # A code is valid for 30 s.
    wait_for(lambda: time.time() % 30 < 15, "the beginning of the time of a code")
    code = format_hotp_value(hotp_value(SECRET, next(yield_hotp_counters_from_time())))
    pair.seen.clear()
    with pair.client() as browser, pair.client() as thief:
        assert log_in(browser, code).status_code == 302
        assert pair.has_alternated()
        assert browser.get("/jobs").status_code == 200
        assert log_in(thief, code).status_code != 302
