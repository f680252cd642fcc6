"""Environments on the code and worker pages, and over REST."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from jobs.actions.code import environments as actions
from jobs.messages.environments import EnvironmentFacts, EnvironmentFailure, InstalledPackage
from jobs.models import PackageEnvironment, Worker
from tests import factories
from tests.markup import squeezed
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db
PLACE = "0123456789abcdef"
LOG = "Collecting einops\nSuccessfully installed einops-0.8\n"


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.member)


@pytest.fixture
def worker(db: None) -> Worker:
    return factories.make_worker(name="oak", info={"environments": PLACE})


def store(browser: Client, *requirements: str) -> str:
    files = [
        {"path": "net.py", "text": "def build_model(hp): ...\n"},
        {"path": "requirements.txt", "text": "\n".join(requirements)},
    ]
    answer = browser.post(
        "/api/v1/code", {"project": "yard", "files": files}, content_type="application/json"
    )
    assert answer.status_code == 201, answer.content
    return str(answer.json()["digest"])


def facts(digest: str = "d" * 64, **changes: Any) -> EnvironmentFacts:
    fields: dict[str, Any] = {
        "digest": digest, "requirements": ("einops>=0.8",), "python": "3.13.0", "platform": "linux-x86_64",
        "for_engine": True, "packages": (InstalledPackage(name="einops", version="0.8"),),
        "bytes": 3_000_000, "seconds": 4.2, "built": time.time(), "installer": "pip",
        "source": "https://index.example/simple", "level": "bubblewrap", **changes,
    }  # fmt: skip
    return EnvironmentFacts(**fields)


def build(worker: Worker, build_facts: EnvironmentFacts) -> PackageEnvironment:
    actions.record_build(PLACE, build_facts, worker=worker.pk)
    actions.record_built(PLACE, build_facts, LOG)
    return PackageEnvironment.objects.get(digest=build_facts.digest)


def test_the_page_of_a_version_shows_its_packages_and_the_build_log(browser: Client, worker: Worker) -> None:
    digest = store(browser, "Einops >= 0.8")
    page = squeezed(browser.get(f"/code/{digest}").content.decode())
    assert "They are installed before the first run of this code" in page
    build(worker, facts())
    page = squeezed(browser.get(f"/code/{digest}").content.decode())
    for words in ("ready", "einops 0.8", "Successfully installed einops-0.8", "on oak", "bubblewrap"):
        assert words in page


def test_rest_has_the_environments_of_a_version(browser: Client, worker: Worker) -> None:
    digest = store(browser, "einops>=0.8", "-e .")
    environment = browser.get(f"/api/v1/code/{digest}/environment").json()
    assert environment["requirements"] == ["einops>=0.8", "-e ."]
    assert "'-e .' cannot be installed" in environment["problems"][0]
    assert environment["items"] == []
    digest = store(browser, "einops>=0.8")
    build(worker, facts())
    (item,) = browser.get(f"/api/v1/code/{digest}/environment").json()["items"]
    assert (item["state"], item["bytes"], item["worker"], item["log"]) == ("ready", 3_000_000, "oak", LOG)
    assert item["packages"] == [{"name": "einops", "version": "0.8", "digest": ""}]


def test_a_failed_build_shows_its_cause_and_its_log(browser: Client, worker: Worker) -> None:
    digest = store(browser, "einops>=0.8")
    actions.record_build(PLACE, facts(), worker=worker.pk)
    failure = EnvironmentFailure(code="package_not_found", message="The index has no package 'einops'.")
    actions.record_failure(PLACE, facts(), failure, "ERROR: none\n", worker=worker.pk)
    page = squeezed(browser.get(f"/code/{digest}").content.decode())
    assert "The index has no package &#x27;einops&#x27;." in page
    assert "ERROR: none" in page
    (item,) = browser.get(f"/api/v1/code/{digest}/environment").json()["items"]
    assert (item["state"], item["error"]["code"]) == ("failed", "package_not_found")


def test_a_worker_lists_its_environments_with_sizes(browser: Client, worker: Worker) -> None:
    assert "Packages of code" not in browser.get(f"/workers/{worker.pk}").content.decode()
    build(worker, facts())
    page = squeezed(browser.get(f"/workers/{worker.pk}").content.decode())
    assert "Packages of code" in page
    assert "1 package " in page
    other = factories.make_worker(name="elm", info={"environments": "other"})
    assert "Packages of code" not in browser.get(f"/workers/{other.pk}").content.decode()


def test_an_environment_that_is_not_there_any_more_is_recorded_as_removed(worker: Worker) -> None:
    remaining, gone = build(worker, facts("a" * 64)), build(worker, facts("b" * 64))
    later = time.time() + 60
    actions.record_use(PLACE, {remaining.digest: later})
    remaining.refresh_from_db()
    gone.refresh_from_db()
    assert (remaining.state, gone.state) == ("ready", "removed")
    assert remaining.last_used is not None
    assert remaining.last_used.timestamp() == pytest.approx(later)


def test_a_build_whose_worker_died_is_recorded_as_failed(worker: Worker) -> None:
    actions.record_build(PLACE, facts(), worker=worker.pk)
    (build,) = actions.unfinished_builds(PLACE)
    actions.record_interruption(PLACE, build._replace(started=build.started - timedelta(seconds=1)))
    assert actions.unfinished_builds(PLACE) == [build]
    actions.record_interruption(PLACE, build)
    row = PackageEnvironment.objects.get()
    assert row.state == "failed"
    assert row.error is not None
    assert row.error.code == "worker_lost"


def test_a_late_failure_does_not_change_the_build_of_another_worker(worker: Worker) -> None:
    other = factories.make_worker(name="elm", info={"environments": PLACE})
    actions.record_build(PLACE, facts(), worker=worker.pk)
    actions.record_build(PLACE, facts(), worker=other.pk)
    actions.record_failure(PLACE, facts(), None, "", worker=worker.pk)
    assert PackageEnvironment.objects.get().state == "building"
    actions.record_failure(PLACE, facts(), None, "", worker=other.pk)
    assert PackageEnvironment.objects.get().state == "failed"


def test_more_requirements_than_are_kept_are_refused_and_not_cut(browser: Client) -> None:
    digest = store(browser, *(f"package{number}" for number in range(201)))
    version = browser.get(f"/api/v1/code/{digest}").json()
    assert version["requirements"] is None
    assert "more than 200 requirements" in version["unreadable"][0]["message"]
