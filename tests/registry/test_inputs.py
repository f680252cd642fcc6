"""A model version's input positions: their columns, and an example row."""

import json
import re
import shlex
from html import unescape
from typing import Any

import numpy as np
import pytest

from jobs.models import DatasetVersion, ModelVersion
from jobs.queries.registry import vector_inputs
from tests.factories import make_dataset, make_experiment, make_job, profile
from tests.markup import one_line
from tests.people import browser_of
from tests.registry.conftest import Yard
from webapp.pages.registry import tryout
from workers.engine.data.encode import encode
from workers.engine.data.table import Table
from workers.engine.tasks.profile import make_profile

ROOMS = profile(
    target="kind",
    features=["width", "length", "side"],
    inputs=["width", "length", "side=north", "side=south"],
    input_shape=[4],
    columns=[],
    preview=[{"width": 1.5, "length": 2, "side": "south", "kind": "a"}],
)
SPEC: dict[str, Any] = {
    "version": 1,
    "data": {"dataset": "rooms"},
    "model": {"kind": "template", "template": "mlp"},
    "fit": {"epochs": 3},
}


def trained(yard: Yard, *, size: int = 4, described: dict[str, Any] = ROOMS, **roles: Any) -> ModelVersion:
    """Make a live version trained on rooms under these roles."""
    version = yard.live()
    data = DatasetVersion.objects.filter(dataset=make_dataset("rooms", project=yard.project, by=yard.member))
    data.update(profile_json=described)
    spec = SPEC | {"data": {"dataset": "rooms", **roles}}
    experiment = make_experiment(project=yard.project, by=yard.member, spec=spec)
    version.source_job = make_job(
        by=yard.member, experiment=experiment, payload={"dataset_version": data.get().pk}
    )
    version.signature = {**version.signature, "inputs": [{"name": "x", "dtype": "float32", "shape": [size]}]}
    version.save()
    return version


def names(version: ModelVersion) -> list[str]:
    return [position.name for position in vector_inputs.vector_positions(version)]


def page_of(yard: Yard, tab: str) -> str:
    return unescape(one_line(browser_of(yard.viewer).get("/models/digits/versions/1", {"tab": tab})))


@pytest.mark.parametrize("tab", ["overview", "use"])
def test_the_page_names_the_positions_in_order(yard: Yard, tab: str) -> None:
    trained(yard)
    page = page_of(yard, tab)
    labels = ("1</span> width", "2</span> length", "3</span> side = north", "4</span> side = south")
    places = [page.index(name) for name in labels]
    assert places == sorted(places)
    assert "1 at the position of its word" in page


def test_the_fields_to_try_it_are_labelled_and_hold_a_real_row(yard: Yard) -> None:
    trained(yard)
    page = page_of(yard, "try")
    assert '<label class="form-label" for="field-4">side = south</label>' in page
    assert "1 at the position of its word" in page
    assert "Input positions" not in page
    values = [page.split(f'id="field-{i}" name="field" value="')[1].split('"')[0] for i in range(1, 5)]
    assert [float(value) for value in values] == [1.5, 2, 0, 1]


def test_the_example_is_a_real_row_as_the_model_expects_it(yard: Yard) -> None:
    trained(yard)
    assert '{"instances": [[1.5, 2, 0.0, 1.0]]}' in page_of(yard, "use")


def test_features_of_the_experiment_keep_its_order(yard: Yard) -> None:
    assert names(trained(yard, size=3, features=["side", "width"])) == [
        "side = north",
        "side = south",
        "width",
    ]


def test_arrays_of_numbers_are_named_by_their_items(yard: Yard) -> None:
    described = {**ROOMS, "features": ["p"], "inputs": ["p_0", "p_1"], "preview": [{"p": [3, 4]}]}
    version = trained(yard, size=2, described=described)
    assert names(version) == ["p_0", "p_1"]
    positions = vector_inputs.vector_positions(version)
    assert [position.value_in({"p": [3, 4]}) for position in positions] == [3, 4]


def test_a_row_is_encoded_as_the_engine_encodes_it(yard: Yard) -> None:
    columns = {
        "side": np.array(["west", "a=b", "west"]),
        "open": np.array([True, False, True]),
        "width": np.array([1.5, 2.0, 3.0]),
        "y": np.array([0, 1, 0]),
    }
    table = Table(columns)
    encoded = encode(table, target="y", features=None, task=None)
    described = make_profile(table, encoded)
    version = trained(yard, size=encoded.x.shape[1], described=described.model_dump(mode="json"))
    vectors = [
        [position.value_in(row) for position in vector_inputs.vector_positions(version)]
        for row in described.preview
    ]
    np.testing.assert_array_equal(np.array(vectors, np.float32), encoded.x)


def test_unknown_positions_are_not_shown(yard: Yard) -> None:
    assert names(trained(yard, target="width")) == []
    assert "Input positions" not in page_of(yard, "overview")


def test_an_input_of_another_size_is_not_named(yard: Yard) -> None:
    assert names(trained(yard, size=5)) == []


@pytest.mark.parametrize("shapes", [[[4000, 4000]], [[1000]] * 11, [[2**24, 2**24, None]]])
def test_an_input_that_is_too_large_to_show_has_no_example(
    yard: Yard, shapes: list[list[int | None]]
) -> None:
    version = yard.live()
    tensors = [{"name": f"x{i}", "dtype": "float32", "shape": shape} for i, shape in enumerate(shapes)]
    version.signature = {**version.signature, "inputs": tensors}
    version.save()
    assert tryout.form_context(version).text == ""
    assert tryout.example_body(version) == ""
    for tab in ("try", "use"):
        assert "0, 0, 0" not in page_of(yard, tab)


def test_a_quote_in_the_name_of_an_input_stays_in_the_body_of_the_command(yard: Yard) -> None:
    version = yard.live()
    tensor = {"name": "x'; touch broken; '", "dtype": "float32", "shape": [1]}
    version.signature = {**version.signature, "inputs": [tensor, tensor | {"name": "y"}]}
    version.save()
    page = unescape(browser_of(yard.viewer).get("/models/digits/versions/1", {"tab": "use"}).content.decode())
    command = re.search(r"curl -s [^<]*", page)
    assert command is not None
    body = shlex.split(command.group(0))[-1]
    assert list(json.loads(body)["instances"][0]) == ["x'; touch broken; '", "y"]
