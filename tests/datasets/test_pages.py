"""The data set pages."""

import base64
import zlib

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs import program, upload_files
from jobs.actions.data import profiles, resumable_uploads
from jobs.actions.experiments import experiments
from jobs.models import DatasetVersion, Job, ResumableUpload
from jobs.queries.runs.devices import describe_missing_workers
from tests.datasets.making import DIABETES, SHOP, make_ready
from tests.datasets.test_api import CSV
from tests.factories import make_dataset
from tests.markup import text_of
from tests.world import World
from webapp.pages.data.pictures import histogram_bars, png_uri


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


def upload(browser: Client, **fields: object) -> str:
    form = {"project": "yard", "file": SimpleUploadedFile("Some People.csv", CSV), **fields}
    answer = browser.post("/datasets/new", form)
    assert answer.status_code == 303, answer.content
    return str(answer["Location"])


def test_the_list_names_every_data_set_with_its_state(browser: Client) -> None:
    page = browser.get("/datasets").content.decode()
    for slug in ("digits", "iris", "diabetes"):
        assert f'href="/datasets/{slug}"' in page
    assert "preparing" in page


def test_who_has_no_project_for_data_reads_what_to_do(browser: Client, world: World) -> None:
    assert "Your own data belong to a project" not in text_of(browser.get("/datasets"))
    viewer = world.client(world.viewer)
    for address in ("/datasets", "/datasets/new"):
        page = viewer.get(address)
        assert 'href="/projects/new"' in page.content.decode()
        assert "in which you may add data" in text_of(page)


def test_a_version_of_images_shows_pictures_balance_and_split(browser: Client) -> None:
    page = browser.get("/datasets/digits/versions/1").content.decode()
    assert page.count("data:image/png;base64,") == 3
    assert "Class balance" in page
    assert "1\u202f079 rows" in page, "60 % of each class trains"
    assert "/p/yard/experiments/new?dataset=digits&amp;version=1" in page


def test_a_version_shows_which_experiments_use_it(
    world: World, browser: Client, spec: dict[str, object]
) -> None:
    experiments.create(world.project, name="on digits", spec=spec, by=world.owner)
    assert "on digits" in browser.get("/datasets/digits/versions/1").content.decode()
    assert "on digits" not in browser.get("/datasets/diabetes/versions/1").content.decode()


def test_a_version_of_numbers_shows_findings_and_missing_values(browser: Client) -> None:
    page = browser.get("/datasets/diabetes/versions/1").content.decode()
    assert "is constant and has no information" in page
    assert 'title="missing"' in page


def test_a_missing_text_is_shown_like_a_missing_number(browser: Client) -> None:
    rows = [{**SHOP["preview"][0], "city": ""}]
    data = make_dataset("gaps", project=None)
    make_ready(data.versions.get(), {**SHOP, "preview": rows})
    assert 'title="missing"' in browser.get("/datasets/gaps/versions/1").content.decode()


def test_a_preparing_version_waits_and_then_reloads(browser: Client) -> None:
    address = upload(browser)
    page = browser.get(address)
    assert "hx-trigger" in page.content.decode()
    assert "It waits for a worker, which reads the file." in text_of(page)
    assert f"No scheduler runs; start one with: {program.command_line('scheduler')}" in text_of(page)
    hold = Job.objects.filter(kind="profile", state="queued")
    hold.update(why_waiting=describe_missing_workers("default"))
    assert f"No worker runs in pool default; start one with: {program.command_line('worker')}" in text_of(
        browser.get(address)
    )
    hold.update(state="running")
    assert "A worker is reading it." in text_of(browser.get(address))
    make_ready(DatasetVersion.objects.get(dataset__slug="some-people"), DIABETES)
    answer = browser.get(address, headers={"HX-Request": "true"})
    assert answer["HX-Refresh"] == "true"


def test_a_file_with_damaged_rows_is_read_again_with_a_share_that_may_be_left_out(browser: Client) -> None:
    address = upload(browser)
    version = DatasetVersion.objects.get(dataset__slug="some-people")
    assert "Damaged rows" not in text_of(browser.get(address))
    DatasetVersion.objects.filter(pk=version.pk).update(
        state="failed", error={"message": "line 2 has 3 fields"}
    )
    assert "Damaged rows" in text_of(browser.get(address))
    roles = "/datasets/some-people/versions/1/roles?project=yard"
    browser.post(roles, {"max_bad_share": "2"})
    assert version.dataset.versions.count() == 1
    browser.post(roles, {"max_bad_share": "0.25"})
    new_version = version.dataset.versions.get(number=2)
    assert new_version.request["reading"]["max_bad_share"] == 0.25


def test_a_data_set_without_a_slug_is_named_after_its_file(browser: Client) -> None:
    assert upload(browser) == "/datasets/some-people/versions/1?project=yard"


def test_an_invalid_upload_shows_its_problems(browser: Client) -> None:
    form = {"project": "yard", "slug": "x", "file": SimpleUploadedFile("x.exe", b"MZ")}
    answer = browser.post("/datasets/new", form)
    assert answer.status_code == 422
    assert "must end in one of" in answer.content.decode()


def received(world: World, content: bytes = CSV) -> ResumableUpload:
    """Make an upload in parts that has arrived."""
    upload = resumable_uploads.begin(world.project, name="Parts.csv", length=len(content), by=world.owner)
    with upload_files.Part(upload.pk, offset=0, length=len(content)) as part:
        part.write(content)
    return upload


def test_a_form_names_an_upload_in_parts_instead_of_a_file(world: World, browser: Client) -> None:
    held = received(world)
    answer = browser.post("/datasets/new", {"project": "yard", "upload": held.pk})
    assert answer["Location"] == "/datasets/parts/versions/1?project=yard"
    assert not ResumableUpload.objects.exists()
    again = received(world, CSV + b"1,2,3\n")
    answer = browser.post("/datasets/new?dataset=parts&project=yard", {"upload": again.pk})
    assert answer["Location"] == "/datasets/parts/versions/2?project=yard"


def test_a_form_with_problems_keeps_its_upload(world: World, browser: Client) -> None:
    held = received(world)
    answer = browser.post("/datasets/new", {"project": "yard", "slug": "No slug", "upload": held.pk})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert f'name="upload" value="{held.pk}"' in page
    assert "Received: Parts.csv" in text_of(answer)
    unknown = browser.post("/datasets/new", {"project": "yard", "slug": "x", "upload": "k"})
    assert (unknown.status_code, "There is no upload" in text_of(unknown)) == (422, True)


def test_the_page_lists_unfinished_uploads_of_the_person(world: World, browser: Client) -> None:
    resumable_uploads.begin(world.project, name="rest.csv", length=2000, by=world.owner)
    assert "rest.csv for yard: 0 B of" in text_of(browser.get("/datasets/new"))
    assert "rest.csv" not in world.client(world.stranger).get("/datasets/new").content.decode()


def test_an_upload_of_a_refused_form_is_listed_and_can_be_used(world: World, browser: Client) -> None:
    upload(browser)
    held = received(world)
    form = {"project": "yard", "slug": "some-people", "upload": held.pk}
    assert browser.post("/datasets/new", form).status_code == 409
    held.refresh_from_db()
    assert held.artifact is not None
    page = browser.get("/datasets/new").content.decode()
    assert f'data-delete-upload="{held.pk}"' in page
    assert f'href="?use={held.pk}"' in page
    form_with_it = browser.get(f"/datasets/new?use={held.pk}")
    assert f'name="upload" value="{held.pk}"' in form_with_it.content.decode()
    of_dataset = browser.get("/datasets/new?dataset=some-people&project=yard").content.decode()
    assert f'href="?dataset=some-people&amp;project=yard&amp;use={held.pk}"' in of_dataset
    assert browser.post(f"/datasets/new?use={held.pk}", form | {"slug": "free"}).status_code == 303
    # Only the frame has the page's own address, for the way back from another project.
    used = browser.get(f"/datasets/new?use={held.pk}").content.decode().partition("<main")[2]
    assert "From a script" in used
    assert f"{held.pk}" not in used


def test_an_upload_that_has_not_arrived_cannot_be_used(world: World, browser: Client) -> None:
    rest = resumable_uploads.begin(world.project, name="rest.csv", length=2000, by=world.owner)
    assert f"use={rest.pk}" not in browser.get("/datasets/new").content.decode()
    others = world.client(world.stranger).get(f"/datasets/new?use={rest.pk}")
    assert (others.status_code, "rest.csv" in others.content.decode()) == (200, False)


def test_roles_are_set_by_a_new_version(browser: Client) -> None:
    upload(browser)
    answer = browser.post("/datasets/some-people/versions/1/roles?project=yard", {"target": "age"})
    assert answer["Location"] == "/datasets/some-people/versions/2?project=yard"


def test_a_failed_version_shows_why_and_can_be_retried(browser: Client) -> None:
    address = upload(browser)
    version = DatasetVersion.objects.get(dataset__slug="some-people")
    profiles.record_profile_failure(version.pk, {"code": "bad_data", "message": "row 7 is short"})
    assert "row 7 is short" in browser.get(address).content.decode()
    version.dataset.project.jobs.update(state="failed")  # type: ignore[union-attr]
    assert browser.post("/datasets/some-people/versions/1/again?project=yard").status_code == 303


def test_a_stranger_sees_the_bundled_ones_only(world: World, browser: Client) -> None:
    upload(browser)
    stranger = world.client(world.stranger)
    assert "some-people" not in stranger.get("/datasets").content.decode()
    for path in ("", "/versions/1"):
        assert stranger.get(f"/datasets/some-people{path}").status_code == 404
    for verb in ("roles", "again"):
        assert stranger.post(f"/datasets/some-people/versions/1/{verb}").status_code == 404


def test_a_viewer_may_not_upload(world: World, browser: Client) -> None:
    form = {"project": "yard", "slug": "x", "file": SimpleUploadedFile("x.csv", CSV)}
    assert world.client(world.viewer).post("/datasets/new", form).status_code == 403


def test_a_picture_is_a_png_of_the_image() -> None:
    address = png_uri([[0.0, 8.0], [16.0, 4.0]], 0, 16)
    assert address is not None
    raw = base64.b64decode(address.partition(",")[2])
    assert raw.startswith(b"\x89PNG")
    start = raw.index(b"IDAT") + 4
    assert zlib.decompress(raw[start : raw.index(b"IEND") - 8]) == bytes([0, 0, 128, 0, 255, 64])


@pytest.mark.parametrize("value", [None, 3, [], [1, 2], [[1], [1, 2]], [[[1, 2]]], ["ab"]])
def test_other_values_are_not_drawn(value: object) -> None:
    assert png_uri(value, 0, 1) is None


def test_a_bin_with_one_row_is_visible() -> None:
    heights = [bar.height for bar in histogram_bars([0, 1, 100_000])]
    assert heights == [0.0, 0.6, 30.0]
