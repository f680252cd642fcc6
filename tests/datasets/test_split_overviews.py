"""The parts of any split of a version: requested and read over REST and on the page, computed by a job."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.actions.storage import artifacts
from jobs.kinds.profile.rows import profiles_of
from jobs.kinds.split_overview.payload import SplitOverviewPayload
from jobs.messages.overview import Overview, PartRows, Repeats, SplitOverview, key_of
from jobs.models import DatasetVersion, Job
from jobs.queries.data import datasets as queries
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import canonical
from jobs.spec.sections.data import Split
from jobs.states import JobState
from jobs.store import store
from tests.datasets.making import SHOP, make_ready
from tests.datasets.test_api import send
from tests.datasets.test_schema import grouped
from tests.markup import squeezed
from tests.world import World

PLACE = "/api/v1/datasets/people/versions/1/split-overview"
PAGE = "/datasets/people/versions/1"
HOME = {"project": "yard"}
BY_CITY = {"way": "group", "along": "city", "validation": "0.3", "test": "0.1"}


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


def give(job: Job, found: SplitOverview, folder: Path, *, attempt: int = 1) -> None:
    """Store an overview as the newest of an attempt, as a runner reports it."""
    give_text(job, found.model_dump_json(), folder, attempt=attempt)


def give_text(job: Job, text: str, folder: Path, *, attempt: int = 1) -> None:
    """Store the text of an overview."""
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
    found = SplitOverview(
        rows=40,
        split=Split(group="city"),
        parts=(PartRows(part="train", rows=24, mean=2.5),),
        pending=("repeats",),
    )
    give(job, found, tmp_path)
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


def test_bundled_data_are_compared_in_a_project_of_the_caller(world: World) -> None:
    client = world.client(world.owner)
    place = "/api/v1/datasets/digits/versions/1/split-overview"
    body = {"split": {"seed": 7}}
    refused = client.post(place, body, content_type="application/json")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/project")
    answer = client.post(place, {**body, "project": "yard"}, content_type="application/json")
    assert answer.status_code == 202
    assert Job.objects.get(pk=answer.json()["job"]).project == world.project


BUNDLED = "/api/v1/datasets/digits/versions/1/split-overview"
BUNDLED_PAGE = "/datasets/digits/versions/1?way=random&validation=0.3&test=0.1&stratify=1"


def post_bundled(client: Client, project: str) -> Any:
    body = {"split": {"validation": "0.3", "test": "0.1"}, "project": project}
    return client.post(BUNDLED, body, content_type="application/json").json()


def test_projects_share_no_job_of_bundled_data_before_it_has_finished(world: World, tmp_path: Path) -> None:
    mine, theirs = world.client(world.owner), world.client(world.stranger)
    first = Job.objects.get(pk=post_bundled(theirs, "elsewhere")["job"])
    assert mine.get(BUNDLED, {"validation": "0.3", "test": "0.1"}).json()["state"] == "none"
    second = Job.objects.get(pk=post_bundled(mine, "yard")["job"])
    assert second.project == world.project
    error = {"code": "bad_data", "message": "a message of another project"}
    Job.objects.filter(pk=first.pk).update(state=JobState.FAILED, error=error)
    Job.objects.filter(pk=second.pk).update(why_waiting="Project yard uses 2 of its 2 slots.")
    answer = mine.get(BUNDLED, {"validation": "0.3", "test": "0.1"}).json()
    assert (answer["job"], answer["error"]) == (second.pk, None)
    assert answer["why_waiting"] == "Project yard uses 2 of its 2 slots."
    page = squeezed(mine.get(BUNDLED_PAGE).content.decode())
    assert "Project yard uses 2 of its 2 slots." in page and f"job {second.pk}" in page

    Job.objects.filter(pk=second.pk).update(state=JobState.COMPLETED)
    give(second, SplitOverview(rows=40, split=Split(validation=0.3, test=0.1)), tmp_path)
    answer = theirs.get(BUNDLED, {"validation": "0.3", "test": "0.1"}).json()
    assert (answer["state"], answer["job"], answer["overview"]["rows"]) == ("completed", None, 40)
    assert post_bundled(theirs, "elsewhere")["state"] == "completed"


def test_the_page_of_a_split_has_a_link_that_shows_its_parts_as_they_arrive(
    api: Client, world: World, tmp_path: Path
) -> None:
    answer = api.post(f"{PAGE}/split?project=yard", BY_CITY)
    link = answer["Location"]
    assert link == f"{PAGE}?project=yard&way=group&along=city&validation=0.3&test=0.1#split-title"
    (job,) = jobs()
    reader = world.client(world.viewer)
    page = squeezed(reader.get(link).content.decode())
    assert "A worker compares the parts of this split" in page and 'hx-trigger="every 2s"' in page
    found = SplitOverview(
        rows=40,
        split=Split(group="city"),
        parts=tuple(
            PartRows(part=name, rows=9, mean=2.0, std=1.0, min=0.5, max=3.25) for name in ("train", "test")
        ),
        pending=("repeats",),
    )
    give(job, found, tmp_path)
    page = squeezed(reader.get(link).content.decode())
    assert "Target in each part" in page and "3.25" in page
    assert "rows that training knows are being computed" in page
    known = Repeats(part="test", exact=7, exact_same_target=6, near=11)
    give(job, found.with_sections("repeats", repeats=(known,)), tmp_path)
    Job.objects.filter(pk=job.pk).update(state=JobState.COMPLETED)
    part = squeezed(reader.get(f"{PAGE}/split?{link.split('?')[1].split('#')[0]}").content.decode())
    assert "Rows that training knows" in part and "every 2s" not in part


def test_the_form_shows_why_rows_cannot_be_split_in_this_way(api: Client) -> None:
    answer = api.post(f"{PAGE}/split?project=yard", {**BY_CITY, "test": "0.8"})
    page = squeezed(api.get(answer["Location"]).content.decode())
    assert "leave nothing to train on" in page and jobs() == []
    answer = api.post(f"{PAGE}/split?project=yard", {**BY_CITY, "along": ""})
    assert "choose a column" in api.get(answer["Location"]).content.decode()


def test_settings_without_effect_do_not_make_another_split() -> None:
    shop, with_group = Profile.model_validate(SHOP), Profile.model_validate(grouped())
    assert canonical(Split(column="city", seed=3, test=0.1), shop) == Split(column="city")
    assert canonical(Split(time="bought", seed=3, test=0.1), shop) == Split(time="bought", test=0.1)
    assert canonical(Split(use_roles=False, seed=3), shop) == Split(seed=3)
    at_random = canonical(Split(use_roles=False, seed=3), with_group)
    assert at_random == Split(use_roles=False, seed=3)
    assert canonical(Split(), with_group).group == "id"


def test_a_further_field_of_splits_does_not_hide_earlier_results() -> None:
    class LaterSplit(Split):
        further: int = 0

    assert key_of(LaterSplit(group="city")) == key_of(Split(group="city"))
    assert key_of(LaterSplit(group="city", further=1)) != key_of(Split(group="city"))


def test_the_comparisons_of_a_data_set_are_deleted_with_it(api: Client) -> None:
    post(api, group="city")
    Job.objects.update(state=JobState.COMPLETED)
    assert api.delete("/api/v1/datasets/people?project=yard").status_code == 204
    assert not Job.objects.filter(kind__startswith="split").exists()
