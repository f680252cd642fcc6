"""The fields to try a version that takes the columns of a table."""

import shlex

import pytest
from django.http import QueryDict

from jobs.contracts.profile import Profile
from jobs.contracts.signature import Signature, TensorSpec
from jobs.errors import BadInput
from jobs.models import DatasetVersion
from tests.datasets.making import SHOP
from tests.factories import make_dataset, make_experiment, make_job
from tests.markup import squeezed
from tests.people import browser_of
from tests.registry.conftest import Yard
from webapp.pages import tryout_columns

TENSOR = TensorSpec(name="input", dtype="float32", shape=(13,))
PROFILE = Profile.model_validate(SHOP)


def signature(**types: str) -> Signature:
    columns = [{"name": name, "type": kind} for name, kind in types.items()]
    return Signature.model_validate({"inputs": [TENSOR], "outputs": [TENSOR], "columns": columns})


def posted(*values: str) -> QueryDict:
    given = QueryDict(mutable=True)
    given.setlist("column", list(values))
    return given


def test_each_column_has_a_field_of_its_type_with_a_real_value() -> None:
    fields = tryout_columns.fields(signature(city="category", bought="date", price="number"), PROFILE)
    assert [(field.widget, field.value) for field in fields] == [
        ("select", "O'Fallon"),
        ("date", "2026-11-01"),
        ("number", "5"),
    ]
    assert fields[0].choices == ("Paris", "Rome", "O'Fallon")


def test_a_category_with_unlisted_values_is_typed() -> None:
    columns = [{**SHOP["columns"][1], "distinct": 5_000}]
    many = Profile.model_validate({**SHOP, "columns": columns})
    (field,) = tryout_columns.fields(signature(city="category"), many)
    assert (field.widget, field.choices) == ("text", ())
    assert field.suggestions == ("Paris", "Rome", "O'Fallon")


def test_the_entries_become_a_row_and_an_empty_one_is_missing() -> None:
    wanted = signature(
        age="number", rooms="integer", member="boolean", city="category", note="text", day="date"
    )
    row = tryout_columns.read(posted("1.5", "3", "false", "Rome", " a b ", ""), wanted)
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
        tryout_columns.read(posted(*values), signature(age="number"))


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


@pytest.mark.parametrize("value", ["nan", "inf", "-1e999"])
def test_a_number_that_json_lacks_is_refused(value: str) -> None:
    with pytest.raises(BadInput, match="is not of type number"):
        tryout_columns.read(posted(value), signature(age="number"))


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
