"""The overview of a version, on its page and over REST."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.actions.data import profiles
from jobs.actions.storage import artifacts
from jobs.kinds.profile.rows import profiles_of
from jobs.messages.overview import (
    ColumnGaps,
    Correlations,
    Gaps,
    Information,
    Overview,
    PartRows,
    Repeats,
    Sample,
)
from jobs.models import Job
from jobs.queries.data import datasets as queries
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import Split
from jobs.store import store
from tests.datasets.making import DIGITS, PETS, SHOP, make_ready
from tests.datasets.test_api import send
from tests.datasets.test_schema import PLACE, newest
from tests.markup import squeezed
from tests.world import World
from webapp.report_figures.overview import SECTION_TITLES, pending_titles


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


OVERVIEW = Overview(
    rows=400,
    sample_rows=400,
    gaps=Gaps(block_rows=200, columns=(ColumnGaps(column="b<c", missing=9, percent=(0, 5)),), more=3),
    information=(Information(column="size", bits=1.5, share=0.75),),
    correlations=Correlations(
        columns=("size", "price"), values=((1.0, -0.5), (-0.5, None)), considered=2, numeric=2
    ),
    split=Split(),
    classes=("yes", "no"),
    parts=(
        PartRows(part="train", rows=300, counts=(100, 200)),
        PartRows(part="test", rows=100, counts=(40, 60)),
    ),
    compared_rows=100,
    repeats=(Repeats(part="test", exact=7, exact_same_target=6, near=11),),
)


Give = Callable[[str], None]


@pytest.fixture
def give_file(tmp_path: Path) -> Callable[..., None]:
    def give(role: str, text: str, attempt: int = 1) -> None:
        file = tmp_path / f"{role}.json"
        file.write_text(text)
        job = Job.objects.filter(profiles_of(newest().pk)).get()
        artifact = artifacts.adopt(store().put(file))
        job.artifacts.create(artifact=artifact, role=role, name=file.name, attempt=attempt)

    return give


@pytest.fixture
def give_overview(give_file: Callable[..., None]) -> Give:
    return partial(give_file, "overview")


def test_the_overview_is_drawn_with_tables_that_have_its_numbers(api: Client, give_overview: Give) -> None:
    send(api)
    make_ready(newest(), SHOP)
    give_overview(OVERVIEW.model_dump_json())
    page = squeezed(api.get(PLACE).content.decode())
    for words in (
        "Target in each part", "33.3 %", "Rows that training knows", "among 100 rows drawn at random",
        "b&lt;c", "missing in block 2", "3 more have some", "75.0 %", "size and price: -0.50",
        "not defined",
    ):  # fmt: skip
        assert words in page, words
    assert "b<c" not in page
    answer = api.get("/api/v1/datasets/people/versions/1/overview", {"project": "yard"}).json()
    assert answer["state"] == "ready"
    assert Overview.model_validate(answer["overview"]) == OVERVIEW


@pytest.mark.parametrize("text", ["", "{", '{"rows": "many"}'])
def test_a_file_that_is_no_overview_is_not_shown(api: Client, give_overview: Give, text: str) -> None:
    send(api)
    make_ready(newest(), SHOP)
    give_overview(text)
    assert "Target in each part" not in api.get(PLACE).content.decode()
    answer = api.get("/api/v1/datasets/people/versions/1/overview", {"project": "yard"})
    assert answer.json() == {"state": "ready", "overview": None}


def test_the_overview_is_for_those_who_may_see_the_data_set(api: Client, world: World) -> None:
    send(api)
    stranger = world.client(world.stranger)
    assert stranger.get("/api/v1/datasets/people/versions/1/overview").status_code == 404
    assert stranger.post("/datasets/people/versions/1/gaps?project=yard").status_code == 404
    assert world.client(world.viewer).post("/datasets/people/versions/1/gaps?project=yard").status_code == 403


def test_columns_are_found_by_name_and_by_being_left_out(api: Client) -> None:
    send(api)
    more = [{"name": f"m{i}", "role": "feature", "type": "number", "dtype": "float64"} for i in range(30)]
    make_ready(newest(), {**SHOP, "columns": [*SHOP["columns"], *more]})
    page = api.get(PLACE).content.decode()
    assert "Filter columns" in page and 'value="m7"' in page
    assert "34, 1 left out" in page
    left_out = api.get(f"{PLACE}&show=left_out").content.decode()
    assert 'name="include" value="id"' in left_out and 'value="m7"' not in left_out
    named = api.get(f"{PLACE}&find=M7").content.decode()
    assert 'name="column" value="m7"' in named and 'name="column" value="m8"' not in named


def test_dates_and_texts_have_a_picture_in_the_table_of_columns(api: Client) -> None:
    send(api)
    day = {"type": "date", "dtype": "datetime64[us]", "earliest": "2026-01-03T00:00:00.000000",
           "latest": "2026-12-03T00:00:00.000000", "histogram": [3, 4]}  # fmt: skip
    note = {
        "type": "text",
        "dtype": "text",
        "min": 4,
        "max": 90,
        "mean": 20,
        "histogram": [2, 5],
        "values": ["wood"],
    }
    columns = [
        *SHOP["columns"],
        {"name": "day", "role": "feature", **day},
        {"name": "note", "role": "feature", **note},
    ]
    make_ready(newest(), {**SHOP, "columns": columns})
    page = squeezed(api.get(PLACE).content.decode())
    assert 'aria-label="histogram of day from 2026-01-03 to 2026-12-03"' in page
    assert 'aria-label="lengths in characters of note from 4 to 90"' in page
    assert "wood" in page and "characters" in page


def test_the_choice_for_rows_without_a_target_comes_with_an_address(api: Client) -> None:
    body = {"project": "yard", "slug": "far", "url": "https://data.example.org/a.csv"}
    for choice, status in (("perhaps", 422), ("leave_out", 201)):
        sent = {**body, "rows_without_target": choice}
        assert api.post("/api/v1/datasets", sent, "application/json").status_code == status
    assert newest().request["rows_without_target"] == "leave_out"


def test_parts_of_a_version_are_shown_while_a_worker_computes_the_others(
    api: Client, give_overview: Give, give_file: Callable[..., None]
) -> None:
    send(api)
    Job.objects.filter(kind="profile").update(state="running")
    assert "Each part is shown" in squeezed(api.get(PLACE).content.decode())
    give_file(
        "sample",
        Sample(rows=400, columns=("b<c", "y"), preview=({"b<c": "Rome", "y": None},)).model_dump_json(),
    )
    page = squeezed(api.get(PLACE).content.decode())
    assert "the first 1 of 400 rows as they were read" in page and "Rome" in page and "b&lt;c" in page
    rows = api.get("/api/v1/datasets/people/versions/1/preview", {"project": "yard"}).json()["rows"]
    assert rows == [{"b<c": "Rome", "y": None}]
    give_file("profile", json.dumps(SHOP))
    page = squeezed(api.get(PLACE).content.decode())
    assert "as they were read" not in page and "a worker compares its parts" not in page
    assert page.count("being computed") == len(SECTION_TITLES) and "Create v2" not in page
    give_overview(OVERVIEW.model_copy(update={"pending": ("parts", "repeats")}).model_dump_json())
    page = squeezed(api.get(PLACE).content.decode())
    assert page.count("being computed") == 2 and "missing in block 2" in page
    answer = api.get("/api/v1/datasets/people/versions/1/overview", {"project": "yard"}).json()
    assert (answer["state"], answer["overview"]["pending"]) == ("preparing", ["parts", "repeats"])
    profiles.record_profile_failure(newest().pk, {"code": "bad_data", "message": "the file is damaged"})
    page = api.get(PLACE).content.decode()
    assert "missing in block 2" not in page, "parts of a file that cannot be used are not shown"


@pytest.mark.parametrize("described", [DIGITS, PETS])
def test_images_and_arrays_announce_no_sections_of_tables(described: dict[str, Any]) -> None:
    profile = Profile.model_validate(described)
    announced = pending_titles(None, profile, is_preparing=True)
    assert announced == ["Missing values", "Target in each part", "Rows that training knows"]


def test_sections_that_a_killed_worker_has_computed_stay_until_another_one_has_more(
    api: Client, give_file: Callable[..., None]
) -> None:
    send(api)
    give_file("overview", OVERVIEW.model_copy(update={"pending": ("repeats",)}).model_dump_json())
    begun = Overview(rows=400, sample_rows=400, split=Split(), pending=("correlations", "parts", "repeats"))
    give_file("overview", begun.model_dump_json(), attempt=2)
    overview = queries.read_overview(newest())
    assert overview is not None and overview.parts == OVERVIEW.parts
    give_file("overview", OVERVIEW.model_dump_json(), attempt=3)
    assert queries.read_overview(newest()) == OVERVIEW
