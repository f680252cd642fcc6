"""Registering a job's model as a version, on the pages."""

import re

import pytest

from jobs.actions.runs.payloads import change_payload
from jobs.kinds.base import SourceTrial
from jobs.models import Job, JobArtifact, ModelVersion, Project, RegisteredModel
from jobs.queries.registry import registry
from tests import factories
from tests.markup import text_of
from tests.people import People, browser_of


@pytest.fixture
def trained(people: People) -> JobArtifact:
    """A completed training's model."""
    experiment = factories.make_experiment("Digits for real", project=people.project, by=people.owner)
    job = factories.make_job(experiment=experiment, by=people.owner, kind="train", state="completed")
    factories.make_job_artifact(job, role="evaluation", name="evaluation.json")
    return factories.make_job_artifact(job)


def register(trained: JobArtifact) -> str:
    return f"/jobs/{trained.job_id}/artifacts/{trained.artifact_id}/register"


def test_a_finished_training_leads_to_a_new_model_and_its_version(
    people: People, trained: JobArtifact
) -> None:
    browser = browser_of(people.member)
    for tab in ("overview", "artifacts"):
        page = browser.get(f"/jobs/{trained.job_id}", {"tab": tab}).content.decode()
        assert register(trained) in page, tab
    assert 'value="digits-for-real"' in browser.get(register(trained)).content.decode()
    answer = browser.post(register(trained), {"model": "", "name": "digits-for-real"})
    version = ModelVersion.objects.get(artifact=trained.artifact)
    assert (answer.status_code, answer["Location"]) == (303, "/models/digits-for-real/versions/1")
    assert (version.what, version.source_job_id, version.lineage["job"]) == (
        "best",
        trained.job_id,
        trained.job_id,
    )
    assert Job.objects.filter(kind="register").exists(), "a worker validates that it loads"
    page = text_of(browser.get(f"/jobs/{trained.job_id}", {"tab": "artifacts"}))
    assert "digits-for-real v1" in page


@pytest.mark.parametrize("existing", [False, True])
def test_one_click_registers_under_the_name_that_fits(
    people: People, trained: JobArtifact, existing: bool
) -> None:
    if existing:
        factories.make_model("digits-for-real", project=people.project, by=people.owner)
    browser = browser_of(people.member)
    page = browser.get(f"/jobs/{trained.job_id}").content.decode()
    form = page.partition(f'action="{register(trained)}"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'name="(model|name)" value="([^"]*)"', form))
    assert fields == {("model" if existing else "name"): "digits-for-real"}
    number = 2 if existing else 1
    assert browser.post(register(trained), fields)["Location"] == f"/models/digits-for-real/versions/{number}"


def test_an_experiment_keeps_proposing_the_model_that_has_its_versions(
    people: People, trained: JobArtifact
) -> None:
    browser = browser_of(people.member)
    browser.post(register(trained), {"model": "", "name": "an-earlier-name"})
    assert registry.model_name_for(trained.job) == "an-earlier-name"
    page = browser.get(f"/jobs/{trained.job_id}").content.decode()
    assert 'name="name" value="digits-for-real"' not in page


def test_the_click_names_the_model_before_it_is_made(people: People, trained: JobArtifact) -> None:
    browser = browser_of(people.member)
    assert "Register as new model digits-for-real" in text_of(browser.get(f"/jobs/{trained.job_id}"))
    factories.make_model("digits", project=people.project, by=people.owner, versions=0)
    page = text_of(browser.get(f"/jobs/{trained.job_id}"))
    assert "Register in digits" in page and "Register as new model" not in page
    form = browser.get(register(trained)).content.decode()
    assert '<option value="digits" selected>' in form and 'value="digits-for-real"' not in form


@pytest.mark.parametrize(
    ("data_fields", "proposed"),
    [
        ({"target": "label"}, "weather"),
        ({"target": "width"}, "digits-for-real"),
        ({"target": "label", "task": "regression"}, "digits-for-real"),
    ],
)
def test_the_model_for_the_same_column_of_the_same_data_is_proposed(
    people: People, trained: JobArtifact, data_fields: dict[str, str], proposed: str
) -> None:
    data = factories.make_dataset("rain", project=people.project, by=people.owner).versions.get()
    trained.job.payload_json = {"dataset_version": data.pk}
    trained.job.save(update_fields=["payload_json"])
    other = factories.make_experiment("Other", project=people.project, by=people.owner)
    assert other.revisions.get().spec.required_data.target is None
    job = factories.make_job(
        experiment=other,
        by=people.owner,
        kind="train",
        state="completed",
        payload={"dataset_version": data.pk},
    )
    other.revisions.update(spec_json={**factories.SEARCH, "data": {"dataset": "rain", **data_fields}})
    (version,) = factories.make_model("weather", project=people.project, by=people.owner).versions.all()
    version.source_job = job
    version.save(update_fields=["source_job"])
    assert registry.model_name_for(Job.objects.get(pk=trained.job_id)) == proposed


def test_it_becomes_the_next_version_of_an_existing_model(people: People, trained: JobArtifact) -> None:
    model = factories.make_model("digits", project=people.project, by=people.owner)
    factories.make_model("others", project=Project.objects.get(slug="elsewhere"), by=people.stranger)
    browser = browser_of(people.owner)
    assert b"others" not in browser.get(register(trained)).content
    assert browser.post(register(trained), {"model": "others"}).status_code == 422
    before = model.versions.count()
    browser.post(register(trained), {"model": "digits", "name": ""})
    assert model.versions.count() == before + 1


@pytest.mark.parametrize("name", ["", "Two Words", "taken"])
def test_an_invalid_name_is_refused_at_its_field(people: People, trained: JobArtifact, name: str) -> None:
    factories.make_model("taken", project=people.project, by=people.owner)
    answer = browser_of(people.owner).post(register(trained), {"model": "", "name": name})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["name"])
    assert not ModelVersion.objects.filter(artifact=trained.artifact).exists()
    assert RegisteredModel.objects.count() == 1


def test_only_models_are_registered_and_only_by_those_who_may(people: People, trained: JobArtifact) -> None:
    report = JobArtifact.objects.get(role="evaluation")
    assert browser_of(people.owner).get(register(report)).status_code == 404
    viewer = browser_of(people.viewer)
    assert viewer.post(register(trained), {"name": "mine"}).status_code == 403
    assert (
        register(trained) not in viewer.get(f"/jobs/{trained.job_id}", {"tab": "artifacts"}).content.decode()
    )


def test_a_retrained_trial_is_registered_under_the_name_that_fits_its_search(
    people: People, trained: JobArtifact
) -> None:
    experiment = factories.make_experiment("Digits search", project=people.project, by=people.owner)
    search = factories.make_job(experiment=experiment, by=people.owner, state="completed")
    change_payload(trained.job, source=SourceTrial(search=search.pk, trial=1))
    page = browser_of(people.member).get(f"/jobs/{trained.job_id}").content.decode()
    assert 'name="name" value="digits-search"' in page


def test_a_project_at_its_quota_of_unfinished_jobs_registers_nothing(
    people: People, trained: JobArtifact
) -> None:
    Project.objects.filter(pk=people.project.pk).update(max_jobs=1)
    factories.make_job(experiment=trained.job.experiment, by=people.owner, kind="train", state="running")
    answer = browser_of(people.member).post(register(trained), {"model": "", "name": "digits-for-real"})
    assert answer.status_code == 422
    assert "its quota is 1" in answer.content.decode()
    assert not ModelVersion.objects.exists()


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("iris mlp, keras tuner bayesian search", "iris"),
        ("iris HyperResNet 12", "iris"),
        ("birds fine-tuned, random search 2", "birds-fine-tuned"),
        ("iris model", "iris"),
        ("A good model for iris", "iris"),
        ("iris search", "iris"),
        ("Iris v3", "iris-v3"),
        ("iris 3", "iris-3"),
    ],
)
def test_a_model_of_an_experiment_with_a_proposed_name_is_named_after_its_data(
    people: People, name: str, model: str
) -> None:
    experiment = factories.make_experiment(name, project=people.project, by=people.owner)
    job = factories.make_job(experiment=experiment, by=people.owner, kind="train", state="completed")
    assert job.revision is not None
    job.revision.spec_json["data"] = {"dataset": "iris"}
    assert registry.model_name_for(job) == model
    assert registry.free_name(job) == model
