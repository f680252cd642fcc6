"""The designer of an experiment, opened and changed as a browser does."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from jobs.actions.experiments import experiments
from jobs.models import Experiment
from tests.world import World

TWO_BY_FOUR = {
    "devices": "cpu",
    "shape": [2, 4],
    "axis_names": ["data", "model"],
    "batch_axis": "data",
    "simulate": 8,
    "layout": [{"match": "dense_[0-9]+/kernel", "axes": [None, "model"]}],
}
Fields = dict[str, Any]


def fields_of(page: Any, **changes: Any) -> Fields:
    """Return the fields of the designer's form on a page."""
    entries, view = page.context["entries"], page.context["view"]
    fields: Fields = {
        **page.context["source"].query,
        "version": page.context["version"],
        "before": page.context["before_text"],
        "devices": entries.devices,
        "axis_name": [axis.name for axis in entries.axes],
        "axis_size": [axis.size for axis in entries.axes],
        "batch_axis": "" if entries.batch is None else str(entries.batch),
        "match": [rule.match for rule in entries.rules],
        "axes": [rule.axes for rule in entries.rules],
        **view.query(),
        **({"simulated": "on"} if entries.simulated else {}),
    }
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}


@pytest.fixture
def experiment(world: World, spec: dict[str, Any]) -> Experiment:
    args = {"units": 32, "layers": 2}
    body = {**spec, "model": {**spec["model"], "args": args}, "fit": {"epochs": 5, "batch_size": 64}}
    return experiments.create(world.project, name="spread", spec=body, by=world.owner)


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


@pytest.fixture
def opened(browser: Client, experiment: Experiment) -> Callable[..., Any]:
    """Open the designer for the experiment; a mesh is sent as JSON."""

    def open_page(mesh: Any = TWO_BY_FOUR, **query: Any) -> Any:
        sent = {"mesh": json.dumps(mesh)} if mesh is not None else {}
        return browser.get("/mesh", {"experiment": experiment.pk, **sent, **query})

    return open_page


@pytest.fixture
def press(browser: Client) -> Callable[..., Any]:
    """Submit the form of a page with changes, and follow the redirect to the new design."""

    def submit(page: Any, **changes: Any) -> Any:
        return browser.post("/mesh", fields_of(page, **changes), follow=True)

    return submit
