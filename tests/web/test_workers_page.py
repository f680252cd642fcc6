"""A worker's warm processes, on its page and over REST."""

import html
import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.messages.warm_processes import Warm
from jobs.models import Worker
from jobs.queries.runs.workers import warm_processes
from tests import factories
from tests.markup import text_of
from tests.people import People, browser_of
from workers.runner.environment import Environment

pytestmark = pytest.mark.django_db
STANDBY = Warm(
    kind="standby", state="ready", threads=2, devices="0", pid=77, since=time.time(), memory_bytes=150_000_000
)


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.member)


def worker(*rows: Any, **fields: Any) -> Worker:
    return factories.make_worker(info={"warm": list(rows)}, **fields)


def test_a_standby_is_shown_with_environment_state_and_memory(browser: Client) -> None:
    row = worker(STANDBY.model_dump(), STANDBY.model_dump() | {"pid": 78})
    page = browser.get(f"/workers/{row.pk}").content.decode()
    for words in ("standby", "2 threads · device 0", "ready", "150"):
        assert words in page
    assert "2 processes," in text_of(browser.get("/workers"))
    answer = browser.get(f"/api/v1/workers/{row.pk}").json()
    assert answer["warm"][0]["memory_bytes"] == STANDBY.memory_bytes
    assert [process["pid"] for process in answer["warm"]] == [77, 78]
    assert "warm" not in answer["info"]


@pytest.mark.parametrize("rows", [[], ["nonsense"], [{"kind": "oven"}]])
def test_a_worker_without_warm_processes_shows_so(browser: Client, rows: list[Any]) -> None:
    row = worker(*rows)
    assert warm_processes(row) == []
    assert "No standby process" in browser.get(f"/workers/{row.pk}").content.decode()


def test_a_lost_worker_has_no_warm_processes(browser: Client) -> None:
    row = worker(STANDBY.model_dump(), lease_until=timezone.now() - timedelta(minutes=1))
    assert "No standby process" in browser.get(f"/workers/{row.pk}").content.decode()


def test_the_open_page_of_a_worker_that_left_is_reloaded_and_leads_to_the_others(browser: Client) -> None:
    left = worker(name="oak", state=Worker.State.GONE)
    address = f"/workers/{left.pk}"
    answer = browser.get(address, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Refresh"]) == (204, "true")
    page = browser.get(address)
    assert page.status_code == 404
    assert "This worker is gone" in text_of(page)
    assert 'href="/workers"' in page.content.decode().split("<main")[1]
    assert "hx-get" not in page.content.decode().split("<main")[1]
    again = worker(name="oak")
    assert f'href="/workers/{again.pk}"' in browser.get(address).content.decode()
    assert browser.get("/workers/999").status_code == 404


def test_a_gpu_is_shown_with_its_model_and_uuid(browser: Client) -> None:
    gpu = {
        "name": "gpu:3",
        "kind": "NVIDIA H200",
        "uuid": "GPU-8932f937",
        "memory_bytes": 8,
        "memory_used": 1,
    }
    row = worker(devices=[gpu])
    assert "gpu:3 NVIDIA H200" in " ".join(text_of(browser.get("/workers")).split())
    assert "GPU-8932f937" in text_of(browser.get(f"/workers/{row.pk}"))
    assert browser.get(f"/api/v1/workers/{row.pk}").json()["devices"] == [gpu]


def test_a_worker_that_cannot_use_its_gpus_shows_the_reason(browser: Client) -> None:
    reason = "This machine has gpu:0, but JAX's CUDA plugin is not installed."
    row = factories.make_worker(info={"no_gpu": reason})
    for page in ("/workers", f"/workers/{row.pk}"):
        assert html.unescape(text_of(browser.get(page))).count(reason) == 1
    assert browser.get(f"/api/v1/workers/{row.pk}").json()["info"] == {"no_gpu": reason}


def test_a_worker_shows_the_gpus_that_it_leaves_out(browser: Client) -> None:
    reason = "GPU 0 (Tesla K80, compute capability 3.7): JAX's CUDA 12 needs 5.2"
    row = factories.make_worker(info={"unsupported_gpus": [reason]})
    for page in ("/workers", f"/workers/{row.pk}"):
        assert html.unescape(text_of(browser.get(page))).count(f"{reason}.") == 1
    assert browser.get(f"/api/v1/workers/{row.pk}").json()["info"] == {"unsupported_gpus": [reason]}


def test_a_worker_whose_runners_share_the_user_of_the_service_shows_the_reason(browser: Client) -> None:
    reason = "Runners share the user of the service and can read its keys: TRAINYARD_RUNNER_UIDS is off."
    isolation = {"level": "shared", "message": reason}
    row = factories.make_worker(info={"isolation": isolation})
    for page in ("/workers", f"/workers/{row.pk}"):
        assert html.unescape(text_of(browser.get(page))).count(reason) == 1
    assert browser.get(f"/api/v1/workers/{row.pk}").json()["info"] == {"isolation": isolation}
    row.info = {"isolation": {"level": "own_user", "message": "Each runner has a user id of its own."}}
    row.save(update_fields=["info"])
    assert "Runners share" not in text_of(browser.get("/workers"))
    assert "one each" in text_of(browser.get(f"/workers/{row.pk}"))


def test_a_process_of_every_environment_can_be_listed() -> None:
    environment = Environment(2, "cuda", 1, preallocate=True, memory_fraction=0.4)
    row = Warm(kind="fork server", state="ready", pid=77, since=time.time(), **environment._asdict())
    assert (
        row.environment
        == "2 threads · cuda · at most 40% of the GPU memory · GPU memory allocated at the start"
    )


def shared_gpu(**fields: Any) -> dict[str, Any]:
    """Return a GPU that a process with a hostile name uses too."""
    process = {
        "pid": 4711,
        "user": "<b>eve</b>",
        "program": "<script>alert(1)</script>",
        "same_user": False,
        "since": time.time(),
        "memory_bytes": 21_000_000_000,
    }
    return {
        "name": "gpu:1",
        "kind": "NVIDIA RTX 4090",
        "uuid": "GPU-77",
        "pci": "00000000:02:00.0",
        "memory_bytes": 24_000_000_000,
        "memory_used": 22_000_000_000,
        "load": 0.83,
        "temperature": 71.0,
        "power_watts": 312.4,
        "others_bytes": 21_000_000_000,
        "others": [process],
        **fields,
    }


def test_a_gpu_that_others_use_shows_who_and_how_much_and_escapes_their_names(browser: Client) -> None:
    row = worker(devices=[shared_gpu()])
    for address in ("/workers", f"/workers/{row.pk}"):
        answer = browser.get(address)
        text = " ".join(html.unescape(text_of(answer)).split())
        assert "load 83 %" in text
        assert "71 °C · 312 W" in text
        assert (
            "another user's <script>alert(1)</script> (user <b>eve</b>, process 4711): 21.0 GB since" in text
        )
        assert "<script>alert(1)" not in answer.content.decode()
        assert "<b>eve" not in answer.content.decode()
    assert "PCI 00000000:02:00.0" in text_of(browser.get(f"/workers/{row.pk}"))
    assert browser.get(f"/api/v1/workers/{row.pk}").json()["devices"] == row.devices


def test_the_run_that_holds_a_gpu_is_linked_for_those_who_may_see_it(people: People) -> None:
    row = worker(slots=2)
    job = factories.make_job(project=people.project, by=people.owner)
    attempt = factories.make_attempt(job, row)
    row.devices = [shared_gpu(attempts=[attempt.pk, 999_999], runs_bytes=900_000_000)]
    row.save(update_fields=["devices"])
    holders = browser_of(people.member).get("/workers").content.decode().split("Who uses gpu:1")[1]
    assert f'href="/jobs/{job.pk}"' in holders
    assert "900.0 MB" in holders
    holders = browser_of(people.stranger).get("/workers").content.decode().split("Who uses gpu:1")[1]
    assert f'href="/jobs/{job.pk}"' not in holders
    assert "a job of another project" in " ".join(holders.split())


def test_all_gpus_of_a_box_are_on_its_card_but_few_of_many_cores(browser: Client) -> None:
    worker(devices=[shared_gpu(name=f"gpu:{number}") for number in range(8)])
    worker(devices=[{"name": f"cpu:{number}", "kind": "cpu"} for number in range(8)])
    text = text_of(browser.get("/workers"))
    assert all(f"gpu:{number}" in text for number in range(8))
    assert "cpu:3" in text and "cpu:4" not in text
    assert "and 4 more devices" in text


def test_memory_of_processes_that_the_driver_does_not_list_is_shown(browser: Client) -> None:
    process = {**shared_gpu()["others"][0], "pid": None, "user": "", "program": ""}
    worker(devices=[shared_gpu(others=[process])])
    assert "processes that this worker cannot see: 21.0 GB" in " ".join(
        text_of(browser.get("/workers")).split()
    )


def test_a_divided_gpu_shows_its_parts_and_that_runs_use_the_first(browser: Client) -> None:
    parts = [
        {"name": f"gpu:1.{number}", "kind": "A100", "uuid": f"MIG-{number}", "memory_bytes": 10_000_000_000}
        for number in range(2)
    ]
    row = worker(devices=[shared_gpu(parts=parts)])
    text = " ".join(text_of(browser.get(f"/workers/{row.pk}")).split())
    assert "Divided into 2 parts: gpu:1.0 (0 B of 10.0 GB in use), gpu:1.1" in text
    assert "Runs use the first one alone." in text
    assert "MIG-1" in text


def test_a_run_with_several_slots_is_listed_once_and_hidden_ones_without_their_name(people: People) -> None:
    row = worker(slots=4)
    job = factories.make_job(project=people.project, by=people.owner, title="wide training")
    factories.make_attempt(job, row, slots=3)
    runs = text_of(browser_of(people.member).get(f"/workers/{row.pk}")).split("Runs now")[1]
    assert runs.split("Devices")[0].count("wide training 3 slots") == 1
    stranger = text_of(browser_of(people.stranger).get(f"/workers/{row.pk}"))
    assert "a job of another project 3 slots" in stranger
    assert "wide training" not in stranger


def test_the_slots_in_use_of_a_pool_are_a_part_of_its_slots(people: People) -> None:
    factories.make_worker(slots=2)
    draining = factories.make_worker(slots=4, state=Worker.State.DRAINING)
    job = factories.make_job(project=people.project, by=people.owner)
    factories.make_attempt(job, draining, slots=3)
    assert "0 of 2 slots" in text_of(browser_of(people.member).get("/workers"))
