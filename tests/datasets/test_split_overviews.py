"""A split's parts: requested and read over REST and on the page, computed by a job."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.actions.storage import artifacts
from jobs.kinds.profile.rows import profiles_of
from jobs.kinds.split_overview.payload import SplitOverviewPayload
from jobs.messages.overview import Overview, PartRows, SplitOverview
from jobs.models import DatasetVersion, Job
from jobs.queries.data import datasets as queries
from jobs.spec.sections.data import Split
from jobs.states import JobState
from jobs.store import store
from tests.datasets.making import SHOP, make_ready
from tests.datasets.test_api import send
from tests.markup import squeezed
from tests.world import World

PLACE = "/api/v1/datasets/people/versions/1/split-overview"
PAGE = "/datasets/people/versions/1"
HOME = {"project": "yard"}


@pytest.fixture
def api(world: World) -> Client:
    client = world.client(world.owner)
    send(client)
    make_ready(newest(), SHOP)
    return client


def newest() -> DatasetVersion:
    return DatasetVersion.objects.latest("pk")


def jobs() -> list[Job]:
    return list(
        Job.objects.filter(kind="split_overview", payload_json__dataset_version=newest().pk).order_by("pk")
    )


def post(client: Client, **split: Any) -> Any:
    body = {"split": split}
    return client.post(f"{PLACE}?project=yard", body, content_type="application/json")


def give(job: Job, overview: SplitOverview, folder: Path, *, attempt: int = 1) -> None:
    """Store an overview as the newest of an attempt, as a runner reports it."""
    give_text(job, overview.model_dump_json(), folder, attempt=attempt)


def give_text(job: Job, text: str, folder: Path, *, attempt: int = 1) -> None:
    """Store an overview's text."""
    file = folder / "overview.json"
    file.write_text(text)
    stored = artifacts.adopt(store().put(file))
    job.artifacts.update_or_create(
        role="overview", name="overview.json", attempt=attempt, defaults={"artifact": stored}
    )


def test_a_split_is_computed_once_and_read_with_the_fields_of_a_spec(api: Client, tmp_path: Path) -> None:
    first = post(api, group="city", validation=0.3)
    assert (first.status_code, first.json()["state"]) == (202, "queued")
    # The proportions of classes and an explicit default change nothing in a split by group.
    assert (
        post(api, group="city", validation=0.3, test=0.2, stratify=False).json()["job"] == first.json()["job"]
    )
    (job,) = jobs()
    assert job.payload_as(SplitOverviewPayload).split.group == "city"
    overview = SplitOverview(
        rows=40,
        split=Split(group="city"),
        parts=(PartRows(part="train", rows=24, mean=2.5),),
        pending=("repeats",),
    )
    give(job, overview, tmp_path)
    Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
    answer = api.get(PLACE, {**HOME, "group": "city", "validation": "0.3"}).json()
    assert answer["state"] == "running" and answer["overview"]["pending"] == ["repeats"]
    assert answer["overview"]["parts"][0]["mean"] == 2.5
    assert api.get(PLACE, {**HOME, "group": "city"}).json()["state"] == "none"


@pytest.mark.parametrize(
    ("split", "pointer"),
    [
        ({"group": "nowhere"}, "/split/group"),
        ({"time": "bought"}, "/split/time"),
        ({"validation": 0.6, "test": 0.6}, "/split/validation"),
        ({"group": "city", "time": "bought"}, "/split"),
    ],
)
def test_a_split_that_is_impossible_is_refused_at_its_field(
    api: Client, split: dict[str, Any], pointer: str
) -> None:
    answer = post(api, **split)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert jobs() == []


def test_the_split_of_the_profile_needs_no_job(api: Client, tmp_path: Path) -> None:
    profile_job = Job.objects.filter(profiles_of(newest().pk)).get()
    give(profile_job, Overview(rows=40, sample_rows=40, split=Split()), tmp_path)
    assert post(api, stratify=False).json()["state"] == "completed", "the target has no classes"
    assert jobs() == []


def test_a_failed_comparison_can_be_requested_again(api: Client) -> None:
    post(api, group="city")
    error = {"code": "bad_data", "message": "the file is damaged"}
    Job.objects.filter(pk=jobs()[0].pk).update(state=JobState.FAILED, error=error)
    answer = api.get(PLACE, {**HOME, "group": "city"}).json()
    assert (answer["state"], answer["error"]["message"]) == ("failed", "the file is damaged")
    assert post(api, group="city").json()["state"] == "queued"
    assert len(jobs()) == 2


@pytest.mark.parametrize("text", ["{}", None])
def test_a_split_is_compared_again_if_its_finished_file_is_lost_or_of_an_earlier_release(
    api: Client, tmp_path: Path, text: str | None
) -> None:
    post(api, group="city")
    (job,) = jobs()
    Job.objects.filter(pk=job.pk).update(state=JobState.COMPLETED)
    if text is not None:
        give_text(job, text, tmp_path)
    assert api.get(PLACE, {**HOME, "group": "city"}).json()["state"] == "none"
    answer = post(api, group="city").json()
    assert answer["state"] == "queued" and answer["job"] != job.pk


def test_sections_remain_after_a_worker_was_killed(api: Client, tmp_path: Path) -> None:
    post(api, group="city")
    (job,) = jobs()
    first = SplitOverview(rows=40, split=Split(group="city"), pending=("parts", "repeats"))
    give(job, first.with_sections("parts", parts=(PartRows(part="train", rows=24),)), tmp_path)
    give(job, first, tmp_path, attempt=2)
    answer = api.get(PLACE, {**HOME, "group": "city"}).json()["overview"]
    assert answer["pending"] == ["repeats"] and answer["parts"][0]["rows"] == 24


def test_the_page_names_why_parts_could_not_be_compared(api: Client) -> None:
    post(api, group="city")
    Job.objects.filter(pk=jobs()[0].pk).update(state=JobState.STOPPED)
    fragment = f"{PAGE}/split?project=yard&way=group&along=city&validation=0.2&test=0.2"
    failed = "<b>The parts could not be compared.</b>"
    assert f"{failed} The job was stopped. </p>" in squeezed(api.get(fragment).content.decode())
    error = {"code": "bad_data", "message": "the file is damaged"}
    Job.objects.filter(pk=jobs()[0].pk).update(state=JobState.FAILED, error=error)
    assert f"{failed} the file is damaged. </p>" in squeezed(api.get(fragment).content.decode())


def test_the_overview_of_a_version_is_read_once_for_its_page_and_not_while_a_job_compares_parts(
    api: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile_job = Job.objects.filter(profiles_of(newest().pk)).get()
    give(profile_job, Overview(rows=40, sample_rows=40, split=Split()), tmp_path)
    post(api, group="city")
    read: list[DatasetVersion] = []
    overview = queries.read_overview

    def counted(version: DatasetVersion) -> Overview | None:
        read.append(version)
        return overview(version)

    monkeypatch.setattr(queries, "read_overview", counted)
    page = api.get(f"{PAGE}?project=yard&way=random&validation=0.2&test=0.2").content.decode()
    assert "not been compared" not in page and len(read) == 1
    api.get(f"{PAGE}/split?project=yard&way=group&along=city&validation=0.2&test=0.2")
    assert len(read) == 1


def test_only_those_who_may_write_request_it_and_only_those_who_see_the_data_read_it(
    api: Client, world: World
) -> None:
    assert post(world.client(world.viewer), group="city").status_code == 403
    assert world.client(world.viewer).get(PLACE, HOME).status_code == 200
    assert post(world.client(world.stranger), group="city").status_code == 404
    assert world.client(world.stranger).get(PLACE).status_code == 404
    assert world.client(world.stranger).get(f"{PAGE}/split").status_code == 404
