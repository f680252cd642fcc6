"""The fields to try a version that takes table columns."""

import base64
import shlex
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from jobs.errors import BadInput
from jobs.models import DatasetVersion
from jobs.spec.data.images import ImageShape
from jobs.spec.data.profile import Profile
from jobs.spec.signature import Signature, TensorSpec
from tests.datasets.making import SHOP
from tests.factories import make_dataset, make_experiment, make_job
from tests.markup import squeezed, text_of
from tests.people import browser_of
from tests.registry.conftest import Yard
from webapp.pages.registry import tryout_columns
from workers.features.images import decode

TENSOR = TensorSpec(name="input", dtype="float32", shape=(13,))
PROFILE = Profile.model_validate(SHOP)


def signature(**types: str) -> Signature:
    columns = [{"name": name, "type": kind} for name, kind in types.items()]
    return Signature.model_validate({"inputs": [TENSOR], "outputs": [TENSOR], "columns": columns})


def posted(*values: str) -> QueryDict:
    fields = QueryDict(mutable=True)
    fields.setlist("column", list(values))
    return fields


def test_each_column_has_a_field_of_its_type_with_a_real_value() -> None:
    fields = tryout_columns.column_fields(signature(city="category", bought="date", price="number"), PROFILE)
    assert [(field.widget, field.value) for field in fields] == [
        ("select", "O'Fallon"),
        ("date", "2026-11-01"),
        ("number", "5"),
    ]
    assert fields[0].choices == ("Paris", "Rome", "O'Fallon")


def test_an_image_is_chosen_as_a_file_and_sent_as_base64() -> None:
    inputs = signature(image="image")
    (field,) = tryout_columns.column_fields(inputs, None)
    assert (field.widget, field.value) == ("image", "")
    files: MultiValueDict[str, UploadedFile[Any]] = MultiValueDict(
        {"column": [SimpleUploadedFile("cat.png", b"pixels")]}
    )
    row = tryout_columns.read_row(posted(), inputs, files)
    assert row == {"image": {"b64": base64.b64encode(b"pixels").decode()}}
    with pytest.raises(BadInput, match="Choose a file"):
        tryout_columns.read_row(posted(), inputs, MultiValueDict())


def test_the_example_of_an_image_is_one(yard: Yard) -> None:
    version = yard.live()
    version.signature = signature(image="image").model_dump(mode="json")
    version.save()
    example = tryout_columns.example_row(signature(image="image"), None)
    shape = ImageShape(height=4, width=4, channels=1, fit="fit")
    assert (decode(base64.b64decode(example["image"]["b64"]), shape) == 128).all()
    browser = browser_of(yard.viewer)
    page = squeezed(browser.get("/models/digits/versions/1", {"tab": "try"}).content.decode())
    assert 'type="file"' in page and 'hx-encoding="multipart/form-data"' in page
    use = browser.get("/models/digits/versions/1", {"tab": "use"}).content.decode()
    assert "base64 -w0 image.jpg" in use
    assert "b64encode(file.read())" in use
    assert (
        "{&#x27;image&#x27;: {&quot;b64&quot;: image}}" in use or '{&#x27;image&#x27;: {"b64": image}}' in use
    )


def test_a_third_image_at_once_is_refused_with_the_time_to_try_again(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = yard.live()
    version.signature = signature(image="image").model_dump(mode="json")
    version.save()
    path, refused = "/models/digits/versions/1/predict", "predicting 2 images already"
    partial, whole = {"HX-Request": "true"}, {"Referer": "http://testserver/models/digits/versions/1?tab=try"}
    depth: list[int] = []
    answers: list[Any] = []

    def send(headers: dict[str, str]) -> Any:
        image = SimpleUploadedFile("cat.png", b"pixels")
        return browser_of(yard.viewer).post(path, {"column": image}, headers=headers)

    def predict(model: str, version: int, instances: list[Any]) -> list[list[float]]:
        """Send further images while this one is being predicted."""
        depth.append(1)
        further = {1: [partial], 2: [partial, whole]}.get(len(depth), [])
        answers.extend([send(headers) for headers in further])
        return [[0.0] * 9 + [1.0]]

    monkeypatch.setattr("webapp.prediction.predict", predict)
    assert send(partial).status_code == 200
    assert [(answer.status_code, answer.get("Retry-After")) for answer in answers] == [
        (503, "2"),
        (503, "2"),
        (200, None),
    ]
    assert all(refused in answer.content.decode() for answer in answers[:2])
    depth.clear()
    answers.clear()
    assert send(partial).status_code == 200, "the places are free again"


def test_a_category_with_unlisted_values_is_typed() -> None:
    columns = [{**SHOP["columns"][1], "distinct": 5_000}]
    many = Profile.model_validate({**SHOP, "columns": columns})
    (field,) = tryout_columns.column_fields(signature(city="category"), many)
    assert (field.widget, field.choices) == ("text", ())
    assert field.suggestions == ("Paris", "Rome", "O'Fallon")


def test_the_entries_become_a_row_and_an_empty_one_is_missing() -> None:
    inputs = signature(
        age="number", rooms="integer", member="boolean", city="category", note="text", day="date"
    )
    row = tryout_columns.read_row(posted("1.5", "3", "false", "Rome", " a b ", ""), inputs)
    assert row == {"age": 1.5, "rooms": 3, "member": False, "city": "Rome", "note": " a b ", "day": None}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["x"], "age: 'x' is not of type number"),
        (["1", "2"], "The form has 2 fields, and the version takes 1 columns"),
    ],
)
def test_an_entry_of_another_type_is_refused(values: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        tryout_columns.read_row(posted(*values), signature(age="number"))


def test_the_page_offers_the_columns_and_quotes_texts_of_the_data(yard: Yard) -> None:
    version = yard.live()
    data = DatasetVersion.objects.filter(dataset=make_dataset("shop", project=yard.project, by=yard.member))
    data.update(profile_json=PROFILE.model_dump(mode="json"))
    spec = {"data": {"dataset": "shop"}, "model": {"kind": "template", "template": "mlp"}}
    experiment = make_experiment(project=yard.project, by=yard.member, spec={"version": 1, **spec})
    version.source_job = make_job(
        by=yard.member, experiment=experiment, payload={"dataset_version": data.get().pk}
    )
    version.signature = signature(city="category", bought="date").model_dump(mode="json")
    version.save()
    browser = browser_of(yard.viewer)
    page = squeezed(browser.get("/models/digits/versions/1", {"tab": "try"}).content.decode())
    assert '<option value="">missing</option>' in page
    assert '<option value="Paris"' in page
    assert 'type="date"' in page and 'value="2026-11-01"' in page
    use = browser.get("/models/digits/versions/1", {"tab": "use"}).content.decode()
    body = '{"instances": [{"city": "O\'Fallon", "bought": "2026-11-01"}]}'
    assert shlex.quote(body).replace("'", "&#x27;").replace('"', "&quot;") in use
    assert "a missing key equals null" in use


def test_a_whole_number_keeps_its_digits_and_a_fraction_is_refused() -> None:
    rooms = signature(rooms="integer")
    assert tryout_columns.read_row(posted("9007199254740993"), rooms) == {"rooms": 9007199254740993}
    assert tryout_columns.read_row(posted("3.0"), rooms) == {"rooms": 3}
    with pytest.raises(BadInput, match=r"rooms: '2\.9' is not of type integer"):
        tryout_columns.read_row(posted("2.9"), rooms)


@pytest.mark.parametrize("value", ["nan", "inf", "-1e999"])
def test_a_number_that_json_lacks_is_refused(value: str) -> None:
    with pytest.raises(BadInput, match="is not of type number"):
        tryout_columns.read_row(posted(value), signature(age="number"))


def test_many_columns_are_entered_as_json(yard: Yard) -> None:
    version = yard.live()
    version.signature = signature(**{f"c{i}": "number" for i in range(300)}).model_dump(mode="json")
    version.save()
    browser = browser_of(yard.viewer)
    page = browser.get("/models/digits/versions/1", {"tab": "try"}).content.decode()
    assert 'name="column"' not in page
    assert "c299" in page
    use = browser.get("/models/digits/versions/1", {"tab": "use"}).content.decode()
    assert "… 300 columns" in use


def test_the_time_of_the_day_is_asked_for_if_any_row_has_one() -> None:
    times = ["2026-11-01T00:00:00.000000", None, "2026-11-01T01:00:00.000000"]
    rows = [{**SHOP["preview"][0], "bought": time} for time in times]
    (field,) = tryout_columns.column_fields(
        signature(bought="date"), Profile.model_validate({**SHOP, "preview": rows})
    )
    assert (field.widget, field.value) == ("datetime-local", "2026-11-01T00:00:00")


def test_a_value_that_no_row_has_can_be_tried_where_all_values_are_offered() -> None:
    inputs = signature(city="category", bought="date")
    city, bought = tryout_columns.column_fields(inputs, PROFILE)
    assert (city.unknown in city.choices, bought.unknown) == (False, "")
    assert tryout_columns.read_row(posted(city.unknown, ""), inputs)["city"] == city.unknown


def test_the_value_that_no_row_has_is_another_one_if_a_row_has_it() -> None:
    columns = [{**SHOP["columns"][1], "values": ["unknown", "Rome"], "distinct": 2}]
    (city,) = tryout_columns.column_fields(
        signature(city="category"), Profile.model_validate({**SHOP, "columns": columns})
    )
    assert city.choices == ("unknown", "Rome")
    assert city.unknown == "unknown?"


def test_a_predicted_number_has_the_name_of_its_column(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    version = yard.live()
    data = DatasetVersion.objects.filter(dataset=make_dataset("shop", project=yard.project, by=yard.member))
    data.update(profile_json={**PROFILE.model_dump(mode="json"), "target": "price"})
    version.source_job = make_job(by=yard.member, payload={"dataset_version": data.get().pk})
    version.signature, version.class_labels = signature(city="category").model_dump(mode="json"), []
    version.save()
    monkeypatch.setattr("webapp.prediction.predict", lambda *_: [[1350.2076]])
    sent = {"column": "Rome"}
    answer = browser_of(yard.viewer).post("/models/digits/versions/1/predict", sent, HTTP_HX_REQUEST="true")
    assert text_of(answer).split() == ["1350.21", "price"]
