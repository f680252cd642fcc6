"""The page that compares a split's parts."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.messages.overview import PartRows, Repeats, SplitOverview, key_of
from jobs.models import Job
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import canonical
from jobs.spec.sections.data import Split
from jobs.states import JobState
from tests.datasets.making import SHOP, make_ready
from tests.datasets.test_api import send
from tests.datasets.test_schema import grouped
from tests.datasets.test_split_overviews import PAGE, give, jobs, newest, post
from tests.markup import squeezed
from tests.world import World

BY_CITY = {"way": "group", "along": "city", "validation": "0.3", "test": "0.1"}


@pytest.fixture
def api(world: World) -> Client:
    client = world.client(world.owner)
    send(client)
    make_ready(newest(), SHOP)
    return client


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
    overview = SplitOverview(
        rows=40,
        split=Split(group="city"),
        parts=tuple(
            PartRows(part=name, rows=9, mean=2.0, std=1.0, min=0.5, max=3.25) for name in ("train", "test")
        ),
        pending=("repeats",),
    )
    give(job, overview, tmp_path)
    page = squeezed(reader.get(link).content.decode())
    assert "Target in each part" in page and "3.25" in page
    assert "rows that training knows are being computed" in page
    repeats = Repeats(part="test", exact=7, exact_same_target=6, near=11)
    give(job, overview.with_sections("repeats", repeats=(repeats,)), tmp_path)
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
