"""Uploaded models in other formats are refused with the way to convert them."""

import io
import tarfile
import zipfile
from typing import Any

import pytest

from jobs.model_formats import how_to_convert
from jobs.models import ModelVersion
from tests import factories
from tests.people import People, browser_of


def zipped(*names: str) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name in names:
            archive.writestr(name, b"\x00" * 100)
    return body.getvalue()


def tarred(mode: Any) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode=mode) as archive:
        member = tarfile.TarInfo("model/saved_model.pb")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
    return body.getvalue()


FILES = {
    "saved_model.pb": (b"\x08\x01\x12\xe8\x07" + b"\x00" * 400, "TensorFlow SavedModel"),
    "model.zip": (zipped("model/variables/variables.index", "model/saved_model.pb"), "TensorFlow SavedModel"),
    "model.tar": (tarred("w"), "TensorFlow SavedModel"),
    "model.tar.gz": (tarred("w:gz"), "packed archive"),
    "model.h5": (b"\x89HDF\r\n\x1a\n" + b"\x00" * 400, "HDF5"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_model_in_another_format_is_refused_with_the_way_to_convert_it(people: People, name: str) -> None:
    model = factories.make_model("digits", project=people.project, by=people.owner, versions=0)
    content, message = FILES[name]
    file = io.BytesIO(content)
    file.name = name
    answer = browser_of(people.member).post(f"/api/v1/models/{model.name}/versions", {"file": file})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/file"
    assert message in error["message"]
    assert '.save("model.keras")' in error["message"]
    assert not ModelVersion.objects.exists()


def test_a_keras_file_is_none_of_them() -> None:
    content = zipped("metadata.json", "config.json", "model.weights.h5")
    assert how_to_convert(content, content) is None
