"""Packages for code: installing them ahead of runs, and the versions that later runs get."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from jobs.actions.code import package_sets
from jobs.actions.runs import attempt_end, schedule
from jobs.actions.runs.tasks import task_for
from jobs.errors import StaleFence
from jobs.kinds.install.payload import InstallTask
from jobs.messages.environments import InstalledPackage, InstalledSet, PackageChoice
from jobs.messages.events import Phase, Started
from jobs.models import Attempt, CodeVersion, Job, PackageResolution, PackageSet, RecordedPackages
from jobs.spec.checks.packages import digest_of
from jobs.states import Outcome
from tests import factories
from tests.code.same_time import before_lock
from tests.jobs.yard import PretendWorker
from tests.markup import squeezed
from tests.people import People, browser_of
from tests.present import present

NEEDED = digest_of(["einops>=0.8"])
MODEL = "def build_model(hp): ...\n"


@pytest.fixture
def api(people: People) -> Client:
    factories.make_dataset("flowers", project=people.project, by=people.member)
    return browser_of(people.trainer)


@pytest.fixture
def worker(people: People) -> PretendWorker:
    pretend_worker = PretendWorker(slots=4)
    pretend_worker.row.info = {"sandbox": [{"level": "landlock", "offered": True}]}
    pretend_worker.row.save(update_fields=["info"])
    return pretend_worker


def stored(api: Client, text: str = MODEL, requirements: str = "einops>=0.8") -> str:
    files = [{"path": "model.py", "text": text}, {"path": "requirements.txt", "text": requirements}]
    sent = {"project": "yard", "files": files}
    answer = api.post("/api/v1/code", sent, content_type="application/json")
    assert answer.status_code in (200, 201), answer.content
    return str(answer.json()["digest"])


def install(api: Client, code: str, **body: Any) -> Any:
    return api.post(f"/api/v1/code/{code}/environment", body, content_type="application/json")


def claimed(worker: PretendWorker) -> Attempt:
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    return attempt


def installed_set(version: str = "0.8", **changes: Any) -> InstalledSet:
    fields: dict[str, Any] = {"python": "3.13", "platform": "linux-x86_64", "for_engine": True, **changes}
    return InstalledSet(
        packages=(InstalledPackage(name="einops", version=version, digest="e" * 64),), **fields
    )


def code_of(attempt: Attempt, folder: Path) -> Any:
    task = task_for(attempt.pk, folder=folder, threads=1)
    assert task.code is not None
    return task.code


def test_packages_are_installed_once_and_runs_that_need_them_wait(
    api: Client, worker: PretendWorker, people: People, tmp_path: Path
) -> None:
    code = stored(api)
    answer = install(api, code)
    assert answer.status_code == 202, answer.content
    job = answer.json()["id"]
    # Other code with the same requirements needs no other installation.
    other = stored(api, MODEL + "# changed\n")
    assert install(api, other).json()["id"] == job
    page = squeezed(api.get(f"/code/{code}").content.decode())
    assert f"Job {job}" in page and "Cancel" in page and "Install packages" not in page
    page = squeezed(api.get(f"/jobs/{job}").content.decode())
    assert f'href="/code/{code}?project=yard#environments-title"' in page and "<dd>models</dd>" in page
    attempt = claimed(worker)
    task = task_for(attempt.pk, folder=tmp_path, threads=1)
    assert isinstance(task, InstallTask)
    assert task.for_engine
    body = {"entry": "build_model", "data": {"dataset": "flowers"}}
    for digest in (other, stored(api, MODEL, "rich")):
        api.post(f"/api/v1/code/{digest}/dry-builds", body, content_type="application/json")
    needing, free = Job.objects.filter(kind="dry_build").order_by("pk")
    schedule.place_jobs()
    needing.refresh_from_db()
    assert needing.why_waiting == f"Its packages are being installed by job {job}."
    assert [claimed_attempt.job_id for claimed_attempt in worker.claim_all()] == [free.pk]
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})
    assert [claimed(worker).job_id] == [needing.pk]
    assert (
        "Install packages"
        in api.get(f"/code/{code}?part=environments", headers={"HX-Request": "true"}).content.decode()
    )


def test_of_two_equal_requests_at_the_same_time_the_second_finds_the_job_of_the_first(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, first = stored(api), []
    before_lock(monkeypatch, lambda: first.append(install(api, code).json()["id"]))
    assert install(api, code).json()["id"] == first[0]
    assert Job.objects.filter(kind="install").count() == 1


def test_the_duration_of_an_installation_is_that_of_its_installer(api: Client, worker: PretendWorker) -> None:
    job = install(api, stored(api)).json()["id"]
    attempt = claimed(worker)
    begin = time.time() - 100
    Attempt.objects.filter(pk=attempt.pk).update(claimed=timezone.now() - timedelta(seconds=100))
    worker.report(attempt, Phase(time=begin, name="installing packages"))
    assert api.get(f"/api/v1/jobs/{job}").json()["state"] == "running"
    # The runner, which only finds the packages, starts and ends at once.
    worker.report(attempt, Started(time=time.time()))
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})
    assert present(Job.objects.get(pk=job).started).timestamp() == pytest.approx(begin, abs=1)
    assert 100 <= api.get(f"/api/v1/jobs/{job}").json()["seconds"] < 110


@pytest.mark.parametrize(
    ("requirements", "body", "status", "pointer"),
    [
        ("", {}, 409, None),
        ("-e .", {}, 422, "/code"),
        ("rich", {"pool": "Not a pool"}, 422, "/pool"),
        ("rich", {"use": "both"}, 422, "/use"),
        ("rich", {"pol": "gpu"}, 422, "/pol"),
    ],
)
def test_an_installation_that_is_not_possible_is_refused(
    api: Client, requirements: str, body: dict[str, Any], status: int, pointer: str | None
) -> None:
    answer = install(api, stored(api, MODEL, requirements), **body)
    assert answer.status_code == status, answer.content
    assert [error["pointer"] for error in answer.json().get("errors", [])] == ([pointer] if pointer else [])
    assert not Job.objects.exists()


def test_only_people_who_may_run_code_install_or_resolve(api: Client, people: People) -> None:
    code = stored(api)
    for person, status in ((people.member, 403), (people.stranger, 404)):
        other = browser_of(person)
        assert install(other, code).status_code == status
        answer = other.post(f"/api/v1/code/{code}/environment/resolve", {}, content_type="application/json")
        assert answer.status_code == status
    assert "Install packages" not in browser_of(people.member).get(f"/code/{code}").content.decode()


def test_later_runs_get_the_recorded_packages_until_they_are_resolved_again(
    api: Client, worker: PretendWorker, tmp_path: Path
) -> None:
    code = stored(api)
    install(api, code)
    first = claimed(worker)
    begun = code_of(first, tmp_path)
    assert (begun.sets, begun.packages) == ((), None)
    package_sets.record_packages(first.pk, installed_set(), begun.choice)
    # A machine that has installed at the same time keeps its own, and changes nothing for others.
    package_sets.record_packages(first.pk, installed_set("0.9"), begun.choice)
    package_sets.record_packages(first.pk, installed_set("0.9", python="3.14"), begun.choice)
    first.refresh_from_db()
    assert first.packages_id == installed_set("0.9").digest
    again = code_of(first, tmp_path)
    assert again.wanted_packages("3.13", "linux-x86_64", for_engine=True) == installed_set().packages
    assert again.wanted_packages("3.13", "linux-x86_64", for_engine=False) is None
    assert again.choice == begun.choice
    environment = api.get(f"/api/v1/code/{code}/environment").json()
    assert {(record["python"], record["digest"]) for record in environment["recorded"]} == {
        ("3.13", installed_set().digest), ("3.14", installed_set("0.9").digest),
    }  # fmt: skip
    assert "Runs get exactly these packages" in squeezed(api.get(f"/code/{code}").content.decode())

    address = f"/code/{code}/resolve"
    assert api.post(address, {"project": "yard"}).status_code == 303
    assert "had the versions chosen again" in squeezed(api.get(f"/code/{code}").content.decode())
    assert code_of(first, tmp_path).sets == ()
    # A run that has begun before does not bring the old versions back.
    package_sets.record_packages(first.pk, installed_set(), begun.choice)
    assert not RecordedPackages.objects.exists()
    package_sets.record_packages(first.pk, installed_set("0.9"), code_of(first, tmp_path).choice)
    assert RecordedPackages.objects.get().packages_id == installed_set("0.9").digest


def interrupted(action: Callable[[], object]) -> int:
    """Do an action that breaks at each of its statements in turn; return their number."""
    for step in range(1, 100):
        done = 0

        def execute(run: Any, sql: str, params: Any, many: bool, context: Any, step: int = step) -> Any:
            nonlocal done
            done += 1
            if done == step:
                raise KeyboardInterrupt
            return run(sql, params, many, context)

        try:
            with connection.execute_wrapper(execute):
                action()
        except KeyboardInterrupt:
            yield_nothing(step)
        else:
            return step
    raise AssertionError("it never ended")


def yield_nothing(step: int) -> None:
    left = (PackageSet.objects.count(), RecordedPackages.objects.count())
    tokens = PackageResolution.objects.exclude(token="").count()
    assert (*left, tokens, Attempt.objects.filter(packages__isnull=False).count()) == (0, 0, 0, 0), step


@pytest.mark.django_db(transaction=True)
def test_a_process_that_dies_while_it_records_packages_leaves_all_or_nothing(people: People) -> None:
    api = browser_of(people.trainer)
    worker = PretendWorker(slots=1)
    worker.row.info = {"sandbox": [{"level": "landlock", "offered": True}]}
    worker.row.save(update_fields=["info"])
    code = stored(api)
    version = CodeVersion.objects.get(digest=code)
    assert interrupted(lambda: package_sets.resolve_again(version, by=people.trainer)) > 4
    PackageResolution.objects.update(token="")
    install(api, code)
    attempt = claimed(worker)
    choice = PackageChoice(requirements=NEEDED, resolution="")
    assert interrupted(lambda: package_sets.record_packages(attempt.pk, installed_set(), choice)) > 4
    assert RecordedPackages.objects.get().packages_id == installed_set().digest
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})
    with pytest.raises(StaleFence):
        package_sets.record_packages(attempt.pk, installed_set(), choice)
