"""Image archives in forms, pages and REST."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.kinds.profile.rows import profiles_of
from jobs.models import Artifact, DatasetVersion, Job, JobArtifact
from tests.datasets.making import PETS, make_ready
from tests.images import folders, tarred, zipped
from tests.markup import squeezed
from tests.world import World


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive_file:
        archive_file.writestr("cat/1.png", b"x")
    return file.getvalue()


def upload(browser: Client, name: str = "pets.zip", body: bytes = b"", **fields: object) -> Any:
    file = SimpleUploadedFile(name, body or archive())
    return browser.post("/datasets/new", {"project": "yard", "file": file, **fields})


def pets(browser: Client, **fields: Any) -> DatasetVersion:
    """Return a version of images that a worker has read, with its thumbnails."""
    assert upload(browser, **fields).status_code == 303
    version = make_ready(DatasetVersion.objects.latest("pk"), PETS)
    sheet = Artifact.objects.create(digest="f" * 64, bytes=10)
    job = Job.objects.filter(profiles_of(version.pk)).get()
    JobArtifact.objects.create(job=job, attempt=1, role="thumbnails", name="thumbnails.jpg", artifact=sheet)
    return version


@pytest.mark.parametrize("name", ["pets.zip", "pets", "pets.dat", "pets.data", "pets.tar.gz"])
@pytest.mark.parametrize("kind", ["zip", "w", "w:gz"])
def test_an_archive_is_recognized_by_its_content(
    browser: Client, tmp_path: Path, name: str, kind: str
) -> None:
    files = folders(count=1)
    path = zipped(tmp_path / "x", files) if kind == "zip" else tarred(tmp_path / "x", files, kind)
    assert upload(browser, name, path.read_bytes(), slug="pets").status_code == 303
    assert DatasetVersion.objects.latest("pk").request["source"] == "images"


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [("pets.zip", b"a,b", "does not contain zip or tar data"),
     ("pets.parquet", b"a,b", "does not contain Parquet data"),
     ("pets.html", b"a,b", "is a page of HTML, which is not read")],
)  # fmt: skip
def test_a_name_alone_makes_no_archive(browser: Client, name: str, body: bytes, message: str) -> None:
    answer = upload(browser, name, body)
    assert answer.status_code == 422
    assert message in answer.content.decode()


def test_size_and_fit_are_chosen_in_the_form(browser: Client) -> None:
    fields: dict[str, Any] = {"images.height": "32", "images.width": "48", "images.fit": "crop"}
    assert upload(browser, **fields).status_code == 303
    reading = DatasetVersion.objects.latest("pk").request["reading"]
    assert reading["images"] == {"height": 32, "width": 48, "fit": "crop"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"images.height": "0", "images.width": "5"}, "greater than or equal to 1"),
     ({"images.height": "9999", "images.width": "5"}, "less than or equal to 1024"),
     ({"images.height": "5"}, "height and width belong together"),
     ({"images.fit": "bend"}, "fit")],
)  # fmt: skip
def test_a_wrong_size_is_refused_beside_its_field(
    browser: Client, fields: dict[str, Any], message: str
) -> None:
    answer = upload(browser, **fields)
    assert answer.status_code == 422
    assert message in answer.content.decode()


def test_rest_takes_the_size_as_json(world: World) -> None:
    api = world.client(world.owner)
    size = {"height": 32, "width": 48}
    file = SimpleUploadedFile("pets.zip", archive())
    form = {"project": "yard", "slug": "pets", "file": file, "images": json.dumps(size)}
    assert api.post("/api/v1/datasets", form).status_code == 201
    reading = DatasetVersion.objects.latest("pk").request["reading"]
    assert reading["images"] == {**size, "fit": "fit"}
    for images, pointer in (("[]", "/images"), ('{"height": "x", "width": 1}', "/images/height")):
        file = SimpleUploadedFile("pets.zip", archive())
        answer = api.post("/api/v1/datasets", {**form, "slug": "more", "file": file, "images": images})
        assert answer.status_code == 422
        assert [problem["pointer"] for problem in answer.json()["errors"]] == [pointer]


def test_the_page_shows_thumbnails_of_each_class_and_the_originals(browser: Client) -> None:
    pets(browser)
    page = squeezed(browser.get("/datasets/pets/versions/1").content.decode())
    assert page.count(f'<image href="/api/v1/artifacts/{"f" * 64}" width="512" height="128"') == 2
    assert 'viewBox="0 64 320 64"' in page
    assert 'aria-label="images of dog"' in page
    assert "29 JPEG" in page
    assert "7 to 900, median 8" in page
    assert "3 left out" in page
    assert "cat/1.png" in page


def test_another_size_makes_another_version_of_the_same_file(browser: Client) -> None:
    pets(browser, **{"images.height": "8", "images.width": "12"})
    page = browser.get("/datasets/pets/versions/1").content.decode()
    assert 'name="images.height"' in page
    fields: dict[str, Any] = {
        "images.height": "16",
        "images.width": "16",
        "images.fit": "stretch",
        "target": "label",
    }
    assert browser.post("/datasets/pets/versions/1/roles?project=yard", fields).status_code == 303
    version = DatasetVersion.objects.latest("pk")
    assert version.number == 2
    assert version.request["reading"]["images"] == {"height": 16, "width": 16, "fit": "stretch"}


def test_rest_has_the_statistics_and_the_digest_of_the_thumbnails(browser: Client) -> None:
    pets(browser)
    version = browser.get("/api/v1/datasets/pets/versions/1").json()
    assert version["schema"]["images"]["shape"] == {"height": 8, "width": 12, "channels": 3, "fit": "crop"}
    assert [column["type"] for column in version["columns"]] == ["image", "category", "category"]
    preview = browser.get("/api/v1/datasets/pets/versions/1/preview").json()
    assert preview["thumbnails"] == "f" * 64
    assert preview["columns"] == ["file", "label"]


def test_a_stranger_sees_neither_page_nor_thumbnails(world: World, browser: Client) -> None:
    pets(browser)
    stranger = world.client(world.stranger)
    assert stranger.get("/datasets/pets/versions/1").status_code == 404
    assert stranger.get(f"/api/v1/artifacts/{'f' * 64}").status_code == 404
