"""Searches over several templates: values, first trials, time limit, and the comparison of templates."""

from typing import Any

import pytest
from pydantic import ValidationError

from jobs.actions.experiments.find_model import RESOURCES, find_model
from jobs.actions.runs import control, pipeline
from jobs.actions.search import suggest
from jobs.errors import BadInput
from jobs.models import DatasetVersion, Job, Worker
from jobs.queries.experiments import plan
from jobs.queries.runs import jobs, progress, workers
from jobs.spec.plan.find_model import ROW_MEMORY, Budget, spec_for
from jobs.spec.sections.model import TemplateModel
from jobs.spec.space.values import apply_values
from jobs.spec.templates import TEMPLATES
from tests.jobs.yard import PretendWorker, Yard, spec
from tests.markup import text_of
from tests.people import browser_of
from tests.present import present

BUDGET = Budget(minutes=10)
SPACE: list[dict[str, Any]] = [
    {"name": "template", "kind": "choice", "values": ["mlp", "linear"]},
    {
        "name": "mlp/units",
        "kind": "int",
        "min": 8,
        "max": 64,
        "when": {"name": "template", "in": ["mlp"]},
    },
]


def searched(**more: Any) -> dict[str, Any]:
    return {
        "algorithm": "random",
        "objective": {"metric": "val_accuracy", "direction": "max"},
        "space": SPACE,
    } | more


def find_model_job(installation: Yard) -> Job:
    job = find_model(installation.project, installation.dataset, BUDGET, by=installation.owner).job
    assert job is not None
    return job


def test_a_value_chooses_the_template_and_its_arguments() -> None:
    template_spec = spec(
        model={"kind": "template", "template": "mlp", "args": {"units": 32}}, search=searched()
    )
    assert apply_values(template_spec, {"template": "mlp", "mlp/units": 8}).model.args == {"units": 8}
    linear = apply_values(template_spec, {"template": "linear"}).model
    assert isinstance(linear, TemplateModel)
    assert (linear.template, linear.args) == ("linear", {})


@pytest.mark.parametrize(
    "values", [{"template": "linear", "mlp/units": 8}, {"template": "linear", "units": 8}]
)
def test_an_argument_of_another_template_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is no argument of the template linear"):
        apply_values(spec(), values)


def test_a_space_that_gives_an_argument_to_other_templates_is_refused_with_its_place(
    installation: Yard,
) -> None:
    always = [SPACE[0], {key: value for key, value in SPACE[1].items() if key != "when"}]
    checked = plan.validate_spec(installation.project, spec(search=searched(space=always)).to_json())
    (problem,) = checked.problems
    assert (problem.pointer, "make it depend on template" in problem.message) == (
        "/spec/search/space/1",
        True,
    )


def test_a_template_that_does_not_take_the_data_is_refused(installation: Yard) -> None:
    names = {"name": "template", "kind": "choice", "values": ["mlp", "cnn"]}
    checked = plan.validate_spec(installation.project, spec(search=searched(space=[names])).to_json())
    (problem,) = checked.problems
    assert problem.pointer == "/spec/search/space/0"
    assert problem.message.startswith("cnn needs images, but the data are vectors")


@pytest.mark.parametrize("limits", [{}, {"minutes": 5, "trials": 20}, {"minutes": 0}, {"trials": 3}])
def test_a_budget_is_minutes_or_trials(limits: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Budget(**limits)


def test_the_spec_is_valid_for_the_bundled_kinds_of_data(installation: Yard) -> None:
    for task, kind, shape in (
        ("regression", "vector", [2]),
        ("binary", "vector", [2]),
        ("multiclass", "image", [8, 8]),
    ):
        outputs = 3 if task == "multiclass" else 1
        changed = {"task": task, "kind": kind, "input_shape": shape, "outputs": outputs}
        DatasetVersion.objects.update(profile_json=present(installation.dataset.profile_json) | changed)
        version = DatasetVersion.objects.get()
        assert version.profile is not None
        body = spec_for("flowers", 1, version.profile, Budget(trials=30))
        assert plan.validate_spec(installation.project, body).problems == []
        assert body["search"]["max_trials"] + len(body["search"]["start_with"]) == 30


def test_the_search_begins_once_with_the_defaults_of_each_template(
    installation: Yard, worker: PretendWorker
) -> None:
    job = find_model_job(installation)
    for _ in range(2):
        pipeline.advance_all()
    trials = list(job.trials.order_by("number"))
    assert {trial.source for trial in trials} == {"start"}
    chosen = [trial.values["template"] for trial in trials]
    assert chosen == [info.name for info in TEMPLATES.values() if "vector" in info.data_kinds]
    assert trials[0].values["mlp/units"] == 64
    assert suggest.claim_request(job.pk) is None, "the slots are taken"


def test_a_worker_that_reports_no_memory_for_rows_has_the_default(
    installation: Yard, worker: PretendWorker
) -> None:
    Worker.objects.update(info={"row_memory_bytes": 2 * ROW_MEMORY})
    assert workers.row_memory_of_pool(RESOURCES) == 2 * ROW_MEMORY
    earlier = Worker.objects.get()
    earlier.pk, earlier.name, earlier.info = None, "earlier", {}
    earlier.save(force_insert=True)
    assert workers.row_memory_of_pool(RESOURCES) == ROW_MEMORY


def test_trees_are_left_out_of_a_table_that_is_larger_than_the_memory_for_rows(
    installation: Yard, worker: PretendWorker
) -> None:
    table = {"has_pipeline": True, "rows": 1_000_000, "kind": "vector", "input_shape": [100]}
    DatasetVersion.objects.update(profile_json=present(installation.dataset.profile_json) | table)
    installation.dataset.refresh_from_db()
    size = 400_000_000
    for reported, names in (
        ({}, True),
        ({"row_memory_bytes": size}, True),
        ({"row_memory_bytes": size - 1}, False),
    ):
        Worker.objects.update(info=reported)
        request = find_model(installation.project, installation.dataset, BUDGET, by=installation.owner)
        assert request.job is not None
        assert request.job.revision is not None
        search = request.job.revision.spec.search
        assert search is not None
        assert ("trees" in search.space[0].grid()) is names
        warnings = [warning["message"] for warning in jobs.job_out(request.job).results["warnings"]]
        assert warnings == list(request.left_out)
        assert (
            any(message.startswith("trees is not searched: this table has 0.4 GiB") for message in warnings)
            is not names
        )
        control.kill(request.job, by=installation.owner)


def test_a_search_that_time_alone_ends_names_no_number_of_trials(
    installation: Yard, worker: PretendWorker
) -> None:
    job = find_model_job(installation)
    assert progress.progress_of_job(job).max_minutes == BUDGET.minutes
    progress_out = jobs.job_out(job).progress
    assert (progress_out.time_limited, progress_out.max_minutes) == (True, BUDGET.minutes)
    page = browser_of(installation.owner).get(f"/jobs/{job.pk}")
    text = text_of(page)
    assert "10000" not in text.replace(",", "")
    assert "10004" not in text
    assert "limit 10 min" in text
    assert job.experiment is not None
    experiment = text_of(
        browser_of(installation.owner).get(f"/p/{installation.project.slug}/experiments/{job.experiment.pk}")
    )
    assert "10 min long" in experiment
    assert "up to 10000 trials" not in experiment
    checked = plan.validate_spec(installation.project, job.revision.spec.to_json() if job.revision else {})
    assert checked.plan is not None
    assert checked.plan.max_minutes == BUDGET.minutes
    counted = find_model(
        installation.project, installation.dataset, Budget(trials=30), by=installation.owner
    ).job
    assert counted is not None
    assert not jobs.job_out(counted).progress.time_limited


def test_data_that_are_not_ready_are_refused(installation: Yard) -> None:
    installation.dataset.profile_json = None
    with pytest.raises(BadInput, match="choose a version that is ready"):
        find_model(installation.project, installation.dataset, BUDGET, by=installation.owner)
    assert not Job.objects.exists()
