"""Tries lists, sockets and requests with good bodies as a stranger, who sees and changes nothing.

The routes are the URL resolver's, so new ones are tried automatically. These tests fail until a new
argument has a value below. `test_every_role.py` tries every route with every verb.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from jobs import models
from jobs.actions.data import resumable_uploads
from jobs.actions.people import tokens
from jobs.actions.storage import deletions
from tests import factories
from tests.people import People, browser_of, make_people
from tests.reports import live, shardings, store_report
from webapp.live import routing

MARK = "secret-of-the-yard"
# Rows that a request may add without a change of the yard: sessions are those of its own browser.
UNCOUNTED = ("Role", "IdempotencyKey", "Session", "LoginAttempts")
# Django's admin guards itself (staff only, read-only); its own log-in page is not a page of ours.
OUTSIDE = ("admin/", "accounts/2fa/", "static/")
SOCKETS = {"ws/v1", "ws/v1/token"}


@dataclass(frozen=True)
class Yard:
    """A project whose objects all contain `MARK`, and the argument values in addresses."""

    people: People
    job: models.Job
    arguments: dict[str, Any]


def make_yard() -> Yard:
    people = make_people()
    owner, member, project = people.owner, people.member, people.project
    factories.make_dataset("yard", project=project, by=member)
    models.Dataset.objects.update(name=MARK)
    offer = {"finding": MARK, "label": MARK, "change": {"name": "width", "role": "id"}}
    models.DatasetVersion.objects.update(profile_json=factories.profile(offers=[offer]))
    experiment = factories.make_experiment(MARK, project=project, by=member)
    job = factories.make_job(by=member, experiment=experiment, state="running", title=MARK)
    factories.make_trials(job, 1)
    artifact = factories.make_job_artifact(job, name=MARK)
    store_report(job, shardings(live(MARK)), "shardings", "shardings.json")
    model = factories.make_model("yards-model", project=project, by=member)
    models.RegisteredModel.objects.update(description=MARK)
    promotion = factories.make_promotion(model.versions.get(), by=member)
    worker = factories.make_worker("box")
    factories.make_attempt(job, worker)
    code = factories.make_code(MARK, project=project, by=member)
    token, _ = tokens.create(owner, by=owner, scopes=["read"], name=MARK)
    upload = resumable_uploads.begin(project, name=f"{MARK}.csv", length=10, by=member)
    gone = factories.make_job(by=member, project=project, state="completed", title=MARK)
    deletion = deletions.delete(gone, by=member)
    hour, now = timedelta(hours=1), timezone.now()
    reservation = models.Reservation.objects.create(
        pool="default", project=project, begins=now - hour, ends=now + hour, note=MARK, created_by=owner
    )
    arguments = {
        "project": project.slug,
        "slug": project.slug,  # of the project and of its data set
        "job_id": job.pk,
        "id": experiment.pk,
        "experiment_id": experiment.pk,
        "number": 1,
        "position": 0,
        "digest": artifact.artifact_id,
        "name": model.name,
        "alias": "champion",
        "promotion_id": promotion.pk,
        "worker_id": worker.pk,
        "pool": "default",
        "reservation_id": reservation.pk,
        "token_id": token.pk,
        "upload_id": upload.pk,
        "code": code.digest,
        "username": member.username,
        "command": "kill",
        "what": "kill",
        "kind": "search",
        "deletable": "job",
        "target": job.pk,
        "deletion_id": deletion.pk,
        "secret": "no-such-secret",
    }
    return Yard(people, job, arguments)


@pytest.fixture
def yard(db: None) -> Yard:
    return make_yard()


def routes() -> list[str]:
    def walk(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
        for pattern in resolver.url_patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLPattern):
                yield route
            else:
                yield from walk(pattern, route)

    addresses = dict.fromkeys(route for route in walk(get_resolver()) if not route.startswith(OUTSIDE))
    return [route for route in addresses if "<" not in route or not route.startswith("^")]


ROUTES = routes()
PLAIN = [route for route in ROUTES if "<" not in route]
NEEDED = {"api/v1/comparison/curves": "&name=val_loss&job={job}", "jobs/orders": "&what=kill&job={job}"}
"""Parameters without which an address is refused before it looks for anything."""


def address(route: str, yard: Yard) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1].split(":")[-1]
        assert name in yard.arguments, f"{route}: add a value of <{name}> to make_yard"
        return str(yard.arguments[name])

    return "/" + re.sub(r"<([^>]+)>", value, route)


def ask(client: Client, method: str, path: str) -> HttpResponse:
    body = {} if method == "get" else {"data": "{}", "content_type": "application/json"}
    response: HttpResponse = getattr(client, method)(path, **body)
    return response


def body_of(response: Any) -> str:
    content: bytes = b"".join(response) if response.streaming else response.content
    return content.decode("utf-8", "replace")


def rows() -> dict[str, list[Any]]:
    """Return how many rows there are and their states, which a stranger must not change."""
    state = list(models.Job.objects.values_list("pk", "state", "desired", "priority"))
    promotions = list(models.PromotionRequest.objects.values_list("pk", "state"))
    people = list(models.User.objects.order_by("pk").values_list("pk", "is_active", "is_superuser"))
    counted = (getattr(models, name) for name in models.__all__ if name not in UNCOUNTED)
    counts = [(model.__name__, model.objects.count()) for model in counted]
    workers = list(models.Worker.objects.values_list("pk", "state"))
    return {"jobs": state, "promotions": promotions, "people": people, "workers": workers, "counts": counts}


def test_lists_show_the_stranger_nothing_of_the_yard(yard: Yard) -> None:
    stranger, wrong = browser_of(yard.people.stranger), []
    for route in PLAIN:
        response = ask(stranger, "get", f"/{route}?q=secret{NEEDED.get(route, '').format(job=yard.job.pk)}")
        if response.status_code not in (200, 302, 401, 403, 404, 405, 503) or MARK in body_of(response):
            wrong.append(f"{route}: {response.status_code}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/experiments", {"project": "yard", "name": "mine", "spec": factories.SPEC}),
        ("/api/v1/experiments/validate", {"project": "yard", "name": "mine", "spec": factories.SPEC}),
        ("/api/v1/experiments/dry-run", {"project": "yard", "spec": factories.SPEC}),
        ("/api/v1/models", {"project": "yard", "name": "mine"}),
        (
            "/api/v1/promotions",
            {"model": "yards-model", "version": 1, "stage": "production", "comment": ""},
        ),
        ("/api/v1/users", {"user": "friend"}),
    ],
)
def test_the_stranger_makes_nothing_in_the_yard(yard: Yard, path: str, body: dict[str, Any]) -> None:
    before = rows()
    response = browser_of(yard.people.stranger).post(path, body, content_type="application/json")
    assert response.status_code in (403, 404), f"{response.status_code}: {body_of(response)}"
    assert rows() == before


TOMORROW = (timezone.now() + timedelta(days=1)).isoformat()
RESERVATION = {"pool": "default", "user": "stranger", "begins": None, "ends": TOMORROW}
GPUS: list[tuple[str, str, dict[str, Any]]] = [
    ("post", "experiments/mesh-estimates", {"project": "yard", "spec": factories.SPEC}),
    ("get", "experiments/mesh-estimates/<int:job_id>", {}),
    ("get", "precision", {"project": "yard"}),
    ("get", "jobs/<int:job_id>/shardings", {}),
    ("patch", "jobs/<int:job_id>", {"max_minutes": 1}),
    ("patch", "users/<username>", {"max_slots": 1}),
    ("patch", "projects/<slug>/quotas", {"slots": 1}),
    ("patch", "queue/pools/<pool>", {"preemption": True}),
    ("post", "reservations", RESERVATION),
    ("post", "reservations/<reservation_id>/end", {}),
    ("delete", "reservations/<reservation_id>", {}),
    ("post", "models/<name>/versions/<number>/quantize", {"mode": "int8"}),
    ("post", "models/<name>/versions/<number>/cast", {"dtype": "bfloat16"}),
]
"""Calls about shared devices and about precision, with bodies that are accepted of others."""


@pytest.mark.parametrize(("method", "route", "body"), GPUS)
def test_the_stranger_has_no_part_in_the_devices_of_the_yard(
    yard: Yard, method: str, route: str, body: dict[str, Any]
) -> None:
    path, before = address(f"api/v1/{route}", yard), rows()
    sent = {} if method == "get" else {"content_type": "application/json"}
    response = getattr(browser_of(yard.people.stranger), method)(path, body, **sent)
    assert response.status_code in (403, 404), f"{response.status_code}: {body_of(response)}"
    assert MARK not in body_of(response)
    assert rows() == before


def test_the_owner_finds_the_marked_objects(yard: Yard) -> None:
    """Without this, the tests above could pass on empty pages."""
    owner = browser_of(yard.people.owner)
    for path in ("/jobs", "/queue", f"/jobs/{yard.job.pk}", "/api/v1/jobs", f"/search?q={MARK}"):
        assert MARK in body_of(ask(owner, "get", path)), path


def test_every_socket_is_known_here() -> None:
    assert {str(route.pattern) for route in (*routing.session_routes, *routing.token_routes)} == SOCKETS


class Socket:
    """A WebSocket to the whole ASGI application, origin check and session included."""

    def __init__(self, path: str, cookie: str = "") -> None:
        from webapp.asgi import application

        headers = [(b"origin", b"http://localhost"), (b"host", b"localhost"), (b"cookie", cookie.encode())]
        scope = {
            "type": "websocket",
            "path": path,
            "headers": headers,
            "query_string": b"",
            "subprotocols": [],
        }
        self._talk: Any = cast(Any, ApplicationCommunicator)(application, scope)

    async def open(self) -> dict[str, Any]:
        await self._talk.send_input({"type": "websocket.connect"})
        return await self.answer()

    async def send(self, body: dict[str, Any]) -> None:
        await self._talk.send_input({"type": "websocket.receive", "text": json.dumps(body)})

    async def answer(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._talk.receive_output(timeout=20)
        return message

    async def end(self) -> None:
        await self._talk.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._talk.wait(timeout=20)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", [*sorted(SOCKETS), "ws/other"])
async def test_sockets_are_closed_without_a_login(path: str) -> None:
    socket = Socket(f"/{path}")
    message = await socket.open()
    if message["type"] == "websocket.accept":
        message = await socket.answer()
    assert message["type"] == "websocket.close"
    await socket.end()


@pytest.mark.django_db(transaction=True)
async def test_the_socket_gives_the_stranger_no_event() -> None:
    yard = await sync_to_async(make_yard)()
    client = await sync_to_async(browser_of)(yard.people.stranger)
    name = settings.SESSION_COOKIE_NAME
    socket = Socket("/ws/v1", cookie=f"{name}={client.cookies[name].value}")
    assert (await socket.open())["type"] == "websocket.accept"
    await socket.send({"op": "subscribe", "job": yard.job.pk, "after": None})
    message = json.loads((await socket.answer())["text"])
    assert (message["type"], message["code"]) == ("error", "not_found")
    await socket.end()
