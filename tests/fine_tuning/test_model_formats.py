"""Uploaded models in other formats are refused with the way to convert them."""

import io
import pickle
import tarfile
import zipfile
import zlib
from typing import Any

import numpy as np
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


PICKLE = pickle.dumps({"weights": list(range(500))})


def arrays() -> bytes:
    body = io.BytesIO()
    np.savez(body, kernel=np.ones((2, 2)))
    return body.getvalue()


OTHERS = {
    "a pickle": (PICKLE, "This is a pickle, as joblib and scikit-learn"),
    # As `joblib.dump(…, compress=3)` writes it.
    "a compressed pickle": (zlib.compress(PICKLE, 3), "This is a pickle, as joblib and scikit-learn"),
    "PyTorch": (zipped("m/data.pkl", "m/byteorder", "m/data/0", "m/version"), "This is a file of PyTorch"),
    "old PyTorch": (pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2), "This is a file of PyTorch"),
    "ONNX": (b"\x08\x08\x12\x07pytorch\x1a\x052.4.0:" + b"\x00" * 300, "This is an ONNX file"),
    "TensorFlow Lite": (b"\x1c\x00\x00\x00TFL3" + b"\x00" * 300, "TensorFlow Lite"),
    "safetensors": (b'\x40\x00\x00\x00\x00\x00\x00\x00{"w":{"dtype":"F32"}}' + b" " * 300, "safetensors"),
    "XGBoost": (b'{"learner":{"attributes":{}}}' + b" " * 300, "trees from another library"),
    "LightGBM": (b"tree\nversion=v4\nnum_class=1\n", "trees from another library"),
    "layers without weights": (b'{"module": "keras", "class_name": "Sequential"}', "without their weights"),
    "arrays": (arrays(), "arrays of NumPy, not a model"),
    "a zip around a model": (zipped("final/model.keras", "final/notes.txt"), "unpack it"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_of_another_library_is_named_with_a_way_on(kind: str) -> None:
    content, message = OTHERS[kind]
    advice = how_to_convert(content, content)
    assert advice is not None and message in advice


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
