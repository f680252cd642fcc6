"""The origin of a quantized, cast or pooled version names its sources."""

import pytest

from jobs.models import ModelVersion
from jobs.queries.registry import origins
from tests.factories import SEARCH, make_experiment, make_job, make_model
from tests.markup import text_of
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


def made_by(people: People, model: str, kind: str, **fields: object) -> ModelVersion:
    """Make a version of a job of some kind."""
    experiment = make_experiment(project=people.project, by=people.owner, spec=SEARCH)
    (version,) = make_model(model, project=people.project, by=people.owner).versions.all()
    version.source_job = make_job(
        by=people.owner,
        experiment=experiment,
        kind=kind,
        state="completed",
        **fields,  # type: ignore[arg-type]
    )
    version.save()
    return version


def origin_on_page(people: People, version: ModelVersion) -> str:
    page = browser_of(people.viewer).get(f"/models/{version.model.name}/versions/{version.number}")
    return text_of(page).split("Origin")[1].split("Metrics")[0]


@pytest.mark.parametrize(("mode", "words"), [("int8", "quantized from"), ("bfloat16", "cast from")])
def test_a_smaller_version_names_the_version_and_its_format(people: People, mode: str, words: str) -> None:
    source = made_by(people, "whole", "train")
    payload = {"source": source.source_job_id, "mode": mode, "artifact": source.artifact_id, "model": "whole"}
    smaller = made_by(people, "small", "quantize", payload=payload)
    shown = origin_on_page(people, smaller)
    assert f"{words} whole v1 to {mode}" in shown
    assert f"job {source.source_job_id}" in shown
    assert (
        'href="/models/whole/versions/1"'
        in browser_of(people.viewer).get("/models/small/versions/1").content.decode()
    )


def test_a_version_that_a_search_quantized_names_the_job_of_an_unregistered_model(people: People) -> None:
    training = make_job(by=people.owner, project=people.project, kind="train", title="Retrain trial 3")
    smaller = made_by(people, "small", "quantize", payload={"source": training.pk, "mode": "int8"})
    (origin,) = origins.origins_of(smaller, people.viewer)
    assert (origin.title, origin.version) == ("Retrain trial 3", None)
    assert f"quantized from Retrain trial 3 to int8, job {training.pk}" in origin_on_page(people, smaller)


def test_a_pooled_version_names_its_members_with_their_weights_the_largest_first(people: People) -> None:
    registered = made_by(people, "member", "train")
    other = make_job(by=people.owner, project=people.project, kind="train", title="Retrain trial 4")
    left_out = make_job(by=people.owner, project=people.project, kind="train", title="Retrain trial 5")
    keys = [left_out.pk, registered.source_job_id, other.pk]
    weights = dict(zip(keys, (0.0, 0.25, 0.75), strict=True))
    results = {"weights": [{"member": f"m{key}", "weight": weight} for key, weight in weights.items()]}
    pooled = made_by(people, "pool", "ensemble", payload={"members": keys}, results=results)
    members = origins.origins_of(pooled, people.viewer)
    assert [(each.kind, each.title) for each in members] == [
        ("pooled from", "Retrain trial 4"),
        ("pooled from", "member v1"),
        ("pooled from", "Retrain trial 5"),
    ]
    shown = origin_on_page(people, pooled)
    assert f"member v1 weight 0.25, job {registered.source_job_id}" in shown
    assert "Retrain trial 5 weight 0: left out" in shown


def test_a_version_that_was_trained_or_uploaded_is_made_of_nothing(people: People) -> None:
    assert origins.origins_of(made_by(people, "trained", "train"), people.viewer) == []
    (uploaded,) = make_model("up", project=people.project, by=people.owner).versions.all()
    assert origins.origins_of(uploaded, people.viewer) == []
