"""The versions that a completed experiment registers."""

import pytest

from jobs.actions.registry import registration
from jobs.actions.runs.kind_actions import actions_for
from jobs.errors import Conflict
from jobs.kinds.register.facts import REGISTER
from jobs.models import Job, Revision
from jobs.spec.experiment import ExperimentSpec
from tests.factories import SPEC, make_experiment, make_job, make_job_artifact
from tests.registry.conftest import Yard


def finished(yard: Yard, model: str) -> Job:
    """Return a training that registers its best model as `model`."""
    spec = {**SPEC, "after": {"register": {"model": model, "what": ["best"]}}}
    experiment = make_experiment(project=yard.project, by=yard.member)
    Revision.objects.filter(experiment=experiment).update(spec_json=spec)
    results = {"metrics": {"test": {"accuracy": 0.97}}}
    job = make_job(experiment=experiment, kind="train", by=yard.member, state="completed", results=results)
    make_job_artifact(job)
    return job


def test_the_best_model_becomes_a_version_of_a_new_model(yard: Yard) -> None:
    job = finished(yard, "fresh")
    (version,) = registration.register_outputs(job)
    assert (version.model.name, version.number, version.what) == ("fresh", 1, "best")
    assert version.created_by == yard.member
    assert version.metrics == {"test": {"accuracy": 0.97}}
    assert version.lineage["job"] == job.pk
    assert version.model.endpoint.generation == 0


def test_registering_twice_creates_one_version(yard: Yard) -> None:
    job = finished(yard, "digits")
    assert registration.register_outputs(job) == registration.register_outputs(job)
    assert yard.model.versions.count() == 1


def test_an_output_that_a_spec_names_many_times_becomes_one_version_with_one_job(yard: Yard) -> None:
    job = finished(yard, "digits")
    assert job.revision is not None
    spec = job.revision.spec_json | {"after": {"register": {"model": "digits", "what": ["best"] * 50}}}
    Revision.objects.filter(pk=job.revision.pk).update(spec_json=spec)
    job.refresh_from_db()
    assert len(registration.register_outputs(job)) == 1
    jobs = actions_for("register").children(job, ExperimentSpec.model_validate(spec))
    assert len(jobs) == 1
    assert REGISTER.planned(ExperimentSpec.model_validate(spec)) == 1


def test_a_name_of_another_project_is_refused(yard: Yard) -> None:
    job = finished(yard, "digits")
    yard.model.project = type(yard.project).objects.create(
        slug="other", name="Other", created_by=yard.stranger
    )
    yard.model.save()
    with pytest.raises(Conflict, match="another project"):
        registration.register_outputs(job)
