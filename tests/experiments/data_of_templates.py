"""Data that each template takes, for tests over all of them."""

from typing import Any

from jobs.spec.data.profile import Profile
from jobs.spec.templates import TEMPLATES
from tests.datasets.making import DIGITS, SHOP
from webapp.forms.experiments.experiment.start import starting_spec

REVIEWS: dict[str, Any] = {
    "rows": 900, "kind": "vector", "task": "binary", "target": "label", "features": ["review", "stars"],
    "input_shape": [50], "has_pipeline": True, "outputs": 2, "preview": [],
    "blocks": [
        {"column": "review", "start": 0, "positions": 49, "kind": "plain"},
        {"column": "stars", "start": 49, "positions": 1, "kind": "number"},
    ],
    "columns": [
        {"name": "review", "role": "feature", "type": "text", "dtype": "text", "distinct": 900},
        {"name": "stars", "role": "feature", "type": "number", "dtype": "float64"},
        {"name": "label", "role": "target", "type": "category", "dtype": "text", "values": ["a", "b"]},
    ],
}  # fmt: skip
SALES = {**SHOP, "columns": [{**column, "missing": 0} for column in SHOP["columns"]]}
WINDOW = {"window": {"rows": 4, "time": "bought"}}
WHEN = {"kernel_steps": {"when": {"name": "kind", "in": ["conv"]}}}
NETWORKS = [info.name for info in TEMPLATES.values() if info.layers is not None]
DATA: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **dict.fromkeys(TEMPLATES, (DIGITS, {})),
    **dict.fromkeys(("text_bow", "text_transformer"), (REVIEWS, {})),
    "sequence": (SALES, WINDOW),
}
"""The data for each template, and the fields of the spec's data."""


def new_experiment(template: str) -> tuple[dict[str, Any], Profile]:
    """Return the spec with which the form of a new experiment begins, and its data's profile."""
    described, of_data = DATA[template]
    profile = Profile.model_validate(described)
    body = starting_spec("d", 1, profile, template)
    body["data"] |= of_data
    if of_data:
        body["data"]["split"] = {"validation": 0.2, "test": 0.2, "time": "bought"}
    return body, profile
