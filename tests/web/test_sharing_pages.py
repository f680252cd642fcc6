"""Queue, Workers and People show shares, limits, reservations and preemption, and change them."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import PoolSettings, Reservation, Share, User
from tests import factories
from tests.markup import text_of
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(people: People) -> Client:
    return browser_of(people.administrator)


def entries(**fields: Any) -> dict[str, Any]:
    begins = timezone.now() + timedelta(hours=2)
    moments = {"begins": begins, "ends": begins + timedelta(hours=1)}
    times = {name: f"{moment:%Y-%m-%dT%H:%M}" for name, moment in moments.items()}
    return {"pool": "default", "user": "member", "note": "demo"} | times | fields


def test_a_reservation_is_made_on_the_page_and_drawn_in_the_week(people: People, admin: Client) -> None:
    factories.make_worker("box", slots=4)
    assert admin.post("/workers/reservations", entries(slots=2)).status_code == 303
    page = admin.get("/workers")
    assert re.search("member ?: 2 slots of default", text_of(page))
    bar = re.search(r'class="ty-week-bar"\s+x="(\d+)"\s+y="1"\s+width="(\d+)"', page.content.decode())
    assert bar is not None
    assert int(bar[2]) == 6, "an hour, in thousandths of a week"
    stranger = text_of(browser_of(people.stranger).get("/workers"))
    assert "demo" not in stranger
    assert re.search("others ?: 2 slots of default", stranger)


def test_a_refused_reservation_is_shown_again_with_its_entries(admin: Client) -> None:
    factories.make_worker("box", slots=4)
    answer = admin.post("/workers/reservations", entries(slots=9))
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "9 is not from 1 to 4, the slots that there are" in page
    assert 'value="demo"' in page
    assert admin.post("/workers/reservations", entries(begins="soon")).status_code == 422
    assert not Reservation.objects.exists()


def test_gpus_are_reserved_on_the_page_and_named_in_the_week(people: People, admin: Client) -> None:
    box = factories.make_worker("box", slots=2)
    box.devices = [{"name": f"gpu:{number}", "kind": "NVIDIA H200"} for number in range(2)]
    box.info = {"keeps_reserved_gpus": True}
    box.save(update_fields=["devices", "info"])
    refused = admin.post("/workers/reservations", entries(worker="box", gpus="gpu:1, gpu:7"))
    assert refused.status_code == 422
    page = refused.content.decode()
    assert "worker box has no &#x27;gpu:7&#x27;; its GPUs are gpu:0, gpu:1" in page
    assert 'value="gpu:1, gpu:7"' in page
    assert admin.post("/workers/reservations", entries(worker="box", gpus="gpu:0 gpu:1")).status_code == 303
    row = Reservation.objects.get()
    assert (row.gpus, row.slots) == (["gpu:0", "gpu:1"], 2)
    assert re.search(
        rf"member ?: gpu:0, gpu:1 of box.*reservation {row.pk}", text_of(admin.get("/workers")), re.S
    )


def test_members_see_no_form_and_may_end_their_own_reservation(people: People) -> None:
    factories.make_worker("box", slots=4)
    now = timezone.now()
    row = Reservation.objects.create(
        pool="default",
        person=people.member,
        begins=now - timedelta(hours=1),
        ends=now + timedelta(hours=1),
        created_by=people.administrator,
    )
    browser = browser_of(people.member)
    assert "Reserve slots" not in text_of(browser.get("/workers"))
    assert browser.post(f"/workers/reservations/{row.pk}/end").status_code == 303
    row.refresh_from_db()
    assert row.ends <= timezone.now()


def test_preemption_of_a_pool_is_switched_by_administrators(people: People, admin: Client) -> None:
    factories.make_worker("box")
    assert "Preemption off" in text_of(admin.get("/workers"))
    assert "Preemption" not in text_of(browser_of(people.member).get("/workers"))
    admin.post("/workers/pools/default/preemption", {"on": "1"})
    assert PoolSettings.objects.get().preemption
    assert "Preemption on" in text_of(browser_of(people.member).get("/workers"))
    assert browser_of(people.member).post("/workers/pools/default/preemption", {"on": "0"}).status_code == 403


def test_the_slots_of_a_person_are_limited_on_the_page_of_people(people: People, admin: Client) -> None:
    assert admin.post("/people/member/slots", {"max_slots": "3"}).status_code == 303
    assert User.objects.get(username="member").max_slots == 3
    admin.post("/people/member/slots", {"max_slots": ""})
    assert User.objects.get(username="member").max_slots is None
    admin.post("/people/member/slots", {"max_slots": "0"})
    assert User.objects.get(username="member").max_slots is None


def test_the_queue_shows_how_much_each_person_has_used(people: People) -> None:
    Share.objects.create(pool="default", person=people.member, slot_seconds=7200, counted=timezone.now())
    assert "2.00 slot-hours" in text_of(browser_of(people.owner).get("/queue"))
    assert "another person" in text_of(browser_of(people.stranger).get("/queue"))
