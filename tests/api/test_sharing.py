"""Reservations, limits of people and preemption in REST: who may, and what bad input gets."""

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import PoolSettings, Reservation, User
from tests.api.conftest import ALL, Caller
from tests.jobs.yard import PretendWorker
from tests.people import People


@pytest.fixture
def admin(people: People) -> Caller:
    del people
    return Caller(User.objects.create(username="root", is_superuser=True), ALL)


def body(**fields: Any) -> dict[str, Any]:
    now = timezone.now()
    times = {
        "begins": (now + dt.timedelta(hours=1)).isoformat(),
        "ends": (now + dt.timedelta(hours=2)).isoformat(),
    }
    return {"pool": "default", "user": "root"} | times | fields


def pointers(answer: Any) -> list[str]:
    return [problem["pointer"] for problem in answer.json()["errors"]]


def test_a_reservation_is_made_listed_ended_and_deleted(admin: Caller) -> None:
    PretendWorker(slots=2, name="box")
    made = admin.post("/reservations", body(worker="box", slots=1, note="demo"))
    assert made.status_code == 201
    assert made.json() | {"begins": 0, "ends": 0, "created": 0} == {
        "id": made.json()["id"],
        "pool": "default",
        "worker": "box",
        "slots": 1,
        "gpus": [],
        "begins": 0,
        "ends": 0,
        "user": "root",
        "project": None,
        "note": "demo",
        "created_by": "root",
        "created": 0,
    }
    path = f"/reservations/{made.json()['id']}"
    assert [row["id"] for row in admin.get("/reservations").json()["items"]] == [made.json()["id"]]
    assert admin.post(f"{path}/end").status_code == 409
    assert admin.send("delete", path).status_code == 204
    assert admin.send("delete", path).status_code == 404
    now = admin.post("/reservations", body(begins=None))
    assert admin.post(f"/reservations/{now.json()['id']}/end").status_code == 200
    assert admin.get("/reservations").json()["items"] == []
    assert len(admin.get("/reservations", ended="true").json()["items"]) == 1


def test_reservations_are_listed_by_pool(admin: Caller) -> None:
    for pool in ("default", "large"):
        PretendWorker(slots=2, name=pool, pool=pool)
        assert admin.post("/reservations", body(pool=pool)).status_code == 201
    assert [row["pool"] for row in admin.get("/reservations", pool="large").json()["items"]] == ["large"]


def test_gpus_of_a_worker_are_reserved_with_their_slots(admin: Caller) -> None:
    PretendWorker(slots=4, gpus=2, name="box", info={"keeps_reserved_gpus": True})
    made = admin.post("/reservations", body(worker="box", gpus=["gpu:1"]))
    assert made.status_code == 201, made.content
    assert (made.json()["gpus"], made.json()["slots"]) == (["gpu:1"], 2)
    twice = admin.post("/reservations", body(worker="box", gpus=["gpu:1"]))
    assert pointers(twice) == ["/gpus"]
    assert admin.post("/reservations", body(worker="box", gpus=["gpu:0"])).status_code == 201


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"pool": "no pool"}, "/pool"),
        ({"pool": "empty"}, "/pool"),
        ({"worker": "bix"}, "/worker"),
        ({"slots": 0}, "/slots"),
        ({"slots": 99}, "/slots"),
        ({"gpus": ["gpu:0"]}, "/worker"),
        ({"worker": "box", "gpus": ["gpu:0"]}, "/gpus"),
        ({"worker": "box", "gpus": "gpu:0"}, "/gpus"),
        ({"worker": "box", "gpus": ["x" * 33]}, "/gpus/0"),
        ({"begins": "yesterday"}, "/begins"),
        ({"begins": "0001-01-01T00:00:00+14:00"}, "/begins"),
        ({"begins": "9999-12-31T23:59:59-14:00"}, "/begins"),
        ({"begins": "2030-01-01T00:00:00"}, "/begins"),
        ({"ends": "0001-01-01T00:00:00+14:00"}, "/ends"),
        ({"ends": "9999-12-31T23:59:59-14:00"}, "/ends"),
        ({"ends": None}, "/ends"),
        ({"user": "nobody"}, "/user"),
        ({"user": ""}, "/user"),
        ({"user": "", "project": "nothing"}, "/project"),
        ({"note": "x" * 201}, "/note"),
        ({"unknown": 1}, "/unknown"),
    ],
)
def test_a_bad_reservation_is_refused_at_its_field(
    admin: Caller, fields: dict[str, Any], pointer: str
) -> None:
    PretendWorker(slots=2, name="box")
    answer = admin.post("/reservations", body(**fields))
    assert answer.status_code == 422, answer.content
    assert pointer in pointers(answer)
    assert not Reservation.objects.exists()


def test_only_administrators_reserve_limit_and_switch_preemption(admin: Caller) -> None:
    PretendWorker(slots=2)
    member = Caller(User.objects.create(username="mia"), ALL)
    assert member.post("/reservations", body()).status_code == 403
    assert member.send("patch", "/users/root", {"max_slots": 1}).status_code == 403
    assert member.send("patch", "/queue/pools/default", {"preemption": True}).status_code == 403
    key = admin.post("/reservations", body()).json()["id"]
    assert member.post(f"/reservations/{key}/end").status_code == 403
    assert member.send("delete", f"/reservations/{key}").status_code == 403
    reader = Caller(User.objects.get(username="root"), ("read",))
    assert reader.post("/reservations", body()).status_code == 403


def test_a_persons_limit_is_set_shown_and_removed(admin: Caller) -> None:
    User.objects.create(username="mia")
    assert admin.send("patch", "/users/mia", {"max_slots": 3}).json()["max_slots"] == 3
    assert admin.send("patch", "/users/mia", {"active": True}).json()["max_slots"] == 3
    assert admin.send("patch", "/users/mia", {"max_slots": None}).json()["max_slots"] is None
    assert pointers(admin.send("patch", "/users/mia", {"max_slots": 0})) == ["/max_slots"]


def test_preemption_of_a_pool_is_switched_and_shown_with_its_queue(admin: Caller) -> None:
    assert admin.get("/queue/pools", pool="gpu").json()["items"][0]["preemption"] is False
    assert admin.send("patch", "/queue/pools/gpu", {"preemption": True}).json()["preemption"] is True
    assert admin.get("/queue/pools", pool="gpu").json()["items"][0]["preemption"] is True
    assert PoolSettings.objects.get().pool == "gpu"
    assert admin.send("patch", "/queue/pools/No Pool", {"preemption": True}).status_code in (404, 422)
    assert pointers(admin.send("patch", "/queue/pools/gpu", {})) == ["/preemption"]
