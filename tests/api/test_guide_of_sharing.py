"""The commands of docs/guide/21-sharing.md have the described effects."""

import datetime as dt
import shlex
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import PoolSettings, Reservation, User
from tests.api.conftest import Caller
from tests.jobs.yard import PretendWorker
from tests.ops.guide_commands import Command, command
from tests.people import People

URL = "http://testserver"


@pytest.fixture
def ada(people: People) -> User:
    del people
    PretendWorker(slots=4)
    return User.objects.create(username="ada")


def send(page_command: Command, people: People) -> Any:
    """Send the request that a curl command describes."""
    token = Caller(people.administrator, ("read", "admin")).secret
    ends = (timezone.now() + dt.timedelta(hours=2)).isoformat()
    script = page_command.script().replace("\\\n", " ")
    for name, value in {"TOKEN": token, "URL": URL, "ENDS": ends}.items():
        script = script.replace(f"${name}", value)
    words = shlex.split(script)
    assert words[0] == "curl"
    options: dict[str, list[str]] = {"-X": [], "-H": [], "-d": []}
    addresses = []
    rest = iter(words[1:])
    for word in rest:
        if word in options:
            options[word].append(next(rest))
        else:
            addresses.append(word)
    headers = dict(header.split(": ", 1) for header in options["-H"])
    (address,), (body,), (method,) = addresses, options["-d"], options["-X"]
    kind = headers.pop("Content-Type")
    return Client(headers=headers).generic(method, address.removeprefix(URL), body, content_type=kind)


def test_a_persons_limit_is_set(people: People, ada: User) -> None:
    assert send(command(21, "/api/v1/users/ada"), people).status_code == 200
    ada.refresh_from_db()
    assert ada.max_slots == 4


def test_slots_are_reserved_from_now_on(people: People, ada: User) -> None:
    answer = send(command(21, '"slots": 2'), people)
    assert answer.status_code == 201, answer.content
    row = Reservation.objects.get()
    assert (row.person, row.slots, row.worker, row.note) == (ada, 2, "", "demo")
    assert row.begins <= timezone.now()


def test_a_gpu_of_a_box_is_reserved(people: People, ada: User) -> None:
    PretendWorker(slots=2, gpus=2, name="box", info={"keeps_reserved_gpus": True})
    answer = send(command(21, '"gpus"'), people)
    assert answer.status_code == 201, answer.content
    row = Reservation.objects.get()
    assert (row.person, row.worker, row.gpus, row.slots) == (ada, "box", ["gpu:1"], 1)


def test_preemption_is_switched_on(people: People) -> None:
    assert send(command(21, "/api/v1/queue/pools/default"), people).status_code == 200
    assert PoolSettings.objects.get(pool="default").preemption
