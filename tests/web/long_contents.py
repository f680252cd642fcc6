"""A project whose pages all have long contents: names without a space, many metrics, every kind of job."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from jobs import models
from jobs.actions.audit import audit
from jobs.actions.people import tokens
from jobs.actions.storage import deletions
from jobs.kinds import KINDS
from jobs.queries.audit.audit_verification import SEAL
from jobs.spec.data.profile import Profile
from jobs.states import JobState
from tests import factories
from tests.datasets.making import SHOP
from tests.people import People, make_people
from tests.reports import evaluation_report, store_report
from webapp.templatetags.audit_words import ACTION_WORDS

SLUG = "orders-of-all-branches-in-europe-from-2019-to-2026-with-returns"[:60]
MODEL = "predicts_returns_of_orders_of_all_branches_in_europe_2019_to_2026"[:60]
METRICS = ("accuracy", "log_loss", "f1_macro", "roc_auc", "ece", "sparse_categorical_accuracy_at_top_three")
PERSON = "christina-alexandra.papadopoulou-schmidt"
ERROR = {"code": "trials_keep_failing", "message": "The last 3 trials failed: the loss was NaN in epoch 1."}


@dataclass(frozen=True)
class LongContents:
    """The people, and the addresses of pages that hold the rows."""

    people: People
    paths: tuple[str, ...]


def make_long_contents() -> LongContents:
    people = make_people()
    member, project = people.member, people.project
    models.User.objects.filter(pk=member.pk).update(username=PERSON)
    member.refresh_from_db()
    models.Project.objects.filter(pk=project.pk).update(name="Returns of orders, all branches in Europe")
    shop = _make_data(people)
    experiment = factories.make_experiment(
        f"Search for {MODEL} with all templates, 24 trials",
        project=project,
        by=member,
        spec={**factories.SEARCH, "data": {"dataset": SLUG, "dataset_version": 1}},
    )
    jobs = [
        _make_job(people, experiment, kind, state, shop)
        for kind in KINDS
        for state in (JobState.RUNNING, JobState.FAILED, JobState.QUEUED)
    ]
    search = next(job for job in jobs if job.kind == "search")
    factories.make_trials(search, 6)
    _make_model(people, jobs)
    code = factories.make_code(f"{MODEL}.py", project=project, by=member)
    tokens.create(people.owner, by=people.owner, scopes=["read", "write", "approve", "predict"], name=MODEL)
    gone = factories.make_job(by=member, project=project, state="completed", title=f"Old search for {MODEL}")
    deletions.delete(gone, by=member)
    hour, now = timedelta(hours=1), timezone.now()
    models.Reservation.objects.create(
        pool="default", project=project, begins=now, ends=now + hour, note=MODEL, created_by=people.owner
    )
    with transaction.atomic():
        for action in ACTION_WORDS.keys() - {SEAL}:
            audit.record(
                action,
                f"model:{MODEL}",
                by=member,
                project=project,
                single_person=True,
                sandbox_level="process",
            )
    return LongContents(
        people,
        (
            *(f"/jobs/{job.pk}?tab={tab}" for job in jobs for tab in job.facts.tabs if job.state != "queued"),
            f"/jobs/{search.pk}/trials/1",
            f"/jobs?kind=split_overview&project={project.slug}",
            f"/p/{project.slug}/experiments/{experiment.pk}",
            f"/p/{project.slug}/experiments",
            f"/p/{project.slug}/settings",
            f"/models/{MODEL}",
            *(f"/models/{MODEL}/versions/1?tab={tab}" for tab in ("overview", "evaluation", "files")),
            f"/models/{MODEL}/gates",
            f"/endpoints/{MODEL}",
            *(f"/approvals/{row.pk}" for row in models.PromotionRequest.objects.all()),
            "/approvals?view=all",
            f"/datasets/{SLUG}?project={project.slug}",
            f"/datasets/{SLUG}/versions/1?project={project.slug}",
            f"/code/{code.digest}?project={project.slug}",
            *(f"/workers/{worker.pk}" for worker in models.Worker.objects.all()[:1]),
            f"/delete/job/{search.pk}",
        ),
    )


def _make_data(people: People) -> models.DatasetVersion:
    version = factories.make_dataset(SLUG, project=people.project, by=people.member).versions.get()
    column: dict[str, Any] = {"role": "feature", "type": "number", "dtype": "float64", "distinct": 1234567}
    more = [
        {**column, "name": f"{MODEL}_{number}", "missing": 98765, "min": 0.0, "max": 9.5}
        for number in range(12)
    ]
    profile = {**SHOP, "columns": [*SHOP["columns"], *more]}
    version.profile_json = Profile.model_validate(profile).model_dump(mode="json")
    version.upload, version.request = factories.make_artifact(), {"source": "csv", "file": f"{SLUG}.csv"}
    version.rows = 12_345_678
    version.save()
    return version


def _make_job(
    people: People, experiment: models.Experiment, kind: str, state: JobState, shop: models.DatasetVersion
) -> models.Job:
    metrics = dict.fromkeys(METRICS, 0.123456)
    job = factories.make_job(
        by=people.member,
        experiment=experiment,
        kind=kind,
        state=state,
        title="" if state is JobState.RUNNING else experiment.name,
        payload={**factories.PAYLOADS.get(kind, {}), "dataset_version": shop.pk},
        error=ERROR if state is JobState.FAILED else None,
        why_waiting="It needs 4 slots in the pool default; 3 of 8 are free, and 2 jobs are before it."
        if state is JobState.QUEUED
        else "",
    )
    if kind == "train" and state is JobState.FAILED:
        models.Job.objects.filter(pk=job.pk).update(
            state="completed",
            results_json={"metrics": {"test": metrics, "validation": metrics}, "score": 0.12},
        )
        store_report(job, evaluation_report(), role="evaluation", name="evaluation.json")
        factories.make_job_artifact(job, name=f"{MODEL}.keras")
        job.refresh_from_db()
    if state is JobState.RUNNING:
        name = f"{kind.replace('_', '-')}.gpu-machines.rack-17.datacentre.example.com"
        attempt = factories.make_attempt(job, factories.make_worker(name))
        attempt.record = {"packages": {"jax": "0.12.0"}, "data_digest": "a" * 64, "matmul_precision": "high"}
        attempt.sandbox_json = {"level": "bubblewrap", "own_user": True, "limits": {"memory_bytes": 2**30}}
        attempt.save()
    return job


def _make_model(people: People, jobs: list[models.Job]) -> None:
    model = factories.make_model(MODEL, project=people.project, by=people.member, versions=4)
    training = next(job for job in jobs if job.kind == "train" and job.state == "completed")
    metrics = {part: dict.fromkeys(METRICS, 0.123456) for part in ("test", "validation")}
    model.versions.update(metrics=metrics, source_job=training, what="quantized")
    first = model.versions.get(number=1)
    models.Endpoint.objects.filter(model=model).update(production=first, generation=12)
    models.Alias.objects.create(model=model, version=first, name="best-of-all-that-were-trained-this-year")
    gates = [
        {"name": name, "state": state}
        for name, state in (
            ("loads", "passed"),
            ("better_than_baseline", "failed"),
            ("batch_invariance", "not_evaluated"),
            ("metric", "overridden"),
            (f"floor:{METRICS[-1]}", "skipped"),
        )
    ]
    for version in model.versions.filter(number__lte=3):
        factories.make_promotion(version, by=people.member)
    models.PromotionRequest.objects.update(gates=gates)
