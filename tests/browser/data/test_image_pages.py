"""The page for an image archive, and the image that a person chooses to try a version."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from jobs.actions.storage import artifacts
from jobs.kinds.profile.rows import profiles_of
from jobs.models import DatasetVersion, Job, JobArtifact
from jobs.spec.data.profile import Profile
from jobs.store import store
from tests import factories
from tests.browser.looking import Look
from tests.datasets.making import PETS
from tests.images import picture
from tests.people import People
from tests.registry.conftest import make_yard

Open = Callable[..., Page]
DRAWN = """image => new Promise(resolve => {
  const loaded = new Image();
  loaded.onload = () => resolve([loaded.naturalWidth, loaded.naturalHeight]);
  loaded.onerror = () => resolve(null);
  loaded.src = image.getAttribute("href");
})"""
"""The size of the file of an image, once the browser has decoded it; null if it cannot."""


@pytest.fixture
def pets(people: People, tmp_path: Path) -> DatasetVersion:
    dataset = factories.make_dataset("pets", project=people.project, by=people.member)
    version = DatasetVersion.objects.get(dataset=dataset)
    version.profile_json = Profile.model_validate(PETS).model_dump(mode="json")
    version.upload, version.request = factories.make_artifact(), {"source": "images", "file": "pets.zip"}
    version.save(update_fields=["profile_json", "upload", "request"])
    path = tmp_path / "thumbnails.jpg"
    Image.fromarray(np.full((128, 512, 3), 120, np.uint8)).save(path)
    job = Job.objects.filter(profiles_of(version.pk)).first() or factories.make_job(
        by=people.member, kind="profile", payload={"dataset_version": version.pk}, project=people.project
    )
    sheet = artifacts.adopt(store().put(path))
    JobArtifact.objects.create(job=job, attempt=1, role="thumbnails", name=path.name, artifact=sheet)
    return version


def test_thumbnails_are_drawn_from_their_file(
    people: People, pets: DatasetVersion, open_as: Open, look: Look
) -> None:
    page = open_as(people.member, f"/datasets/pets/versions/1?project={people.project.slug}")
    images: Any = page.get_by_role("img", name="images of dog")
    expect(images).to_be_visible()
    assert images.locator("image").evaluate(DRAWN) == [512, 128]
    look(page, "dataset-images")
    page.get_by_label("Height of images").fill("16")
    page.get_by_role("button", name="Create v2").click()
    expect(page.get_by_role("heading", name="pets v2")).to_be_visible()
    version = DatasetVersion.objects.get(dataset=pets.dataset, number=2)
    assert version.request["reading"]["images"] == {"height": 16, "width": 12, "fit": "crop"}


def test_the_chosen_image_is_shown_before_it_is_sent(open_as: Open, tmp_path: Path) -> None:
    installation = make_yard(tmp_path)
    version = installation.live()
    tensor = {"name": "input", "dtype": "float32", "shape": [8, 12, 3]}
    version.signature = {
        "inputs": [tensor],
        "outputs": [tensor],
        "columns": [{"name": "image", "type": "image"}],
    }
    version.save(update_fields=["signature"])
    page = open_as(installation.viewer, "/models/digits/versions/1?tab=try")
    file = tmp_path / "pet.png"
    file.write_bytes(picture())
    preview = page.get_by_alt_text("the chosen image")
    expect(preview).to_be_hidden()
    page.get_by_label("image", exact=True).set_input_files(file)
    expect(preview).to_be_visible()
    assert preview.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [12, 8]
