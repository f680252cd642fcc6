"""Compares the form with the experiment version that was saved while the form was open."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from jobs.models import Experiment
from jobs.queries.experiments.experiments import Difference, spec_differences
from jobs.spec.experiment import ExperimentSpec

Json = dict[str, Any]


def form_document(*, name: str, tags: str, notes: str, spec: Any) -> Json:
    """Return the form's fields as one object to compare."""
    listed = ", ".join(tag.strip() for tag in tags.split(",") if tag.strip())
    return {"name": name.strip(), "tags": listed, "notes": notes.replace("\r\n", "\n"), "spec": spec}


def saved_version(experiment: Experiment) -> Json:
    """Return the saved version: the draft if there is one, else the newest revision."""
    newest = experiment.revisions.order_by("-number").first()
    spec = experiment.draft if experiment.draft is not None else newest.spec_json if newest else {}
    tags = ", ".join(experiment.tags)
    return form_document(name=experiment.name, tags=tags, notes=experiment.notes, spec=spec)


def comparable_document(experiment: Experiment, mine: Json) -> Json:
    """Return the form's version as it would be saved.

    A revision has all defaults, which a draft may leave out.
    """
    if experiment.draft is not None:
        return mine
    try:
        return {**mine, "spec": ExperimentSpec.model_validate(mine["spec"]).to_json()}
    except ValidationError:
        return mine


def list_changes(saved: Json, mine: Json) -> list[Difference]:
    """List the values that saving `mine` would replace. Spec fields have the paths that revisions use.

    The order in a search space and empty spec parts are not listed.
    """
    return [
        *spec_differences(_without_spec(saved), _without_spec(mine)),
        *spec_differences(_spec(saved), _spec(mine)),
    ]


def _without_spec(version: Json) -> Json:
    return {name: value for name, value in version.items() if name != "spec"}


def _spec(version: Json) -> Mapping[str, Any]:
    spec = version["spec"]
    # A draft may be any JSON.
    return spec if isinstance(spec, Mapping) else {"spec": spec}
