"""Starts "Find me a good model": an experiment that searches all templates that take the data."""

from typing import NamedTuple

from django.db import transaction

from jobs.actions.experiments import experiments
from jobs.actions.registry import registry
from jobs.actions.runs import job_warnings
from jobs.errors import BadInput
from jobs.models import DatasetVersion, Experiment, Job, Project, User
from jobs.queries.experiments.experiments import newest_names
from jobs.queries.runs import workers
from jobs.spec.plan import names
from jobs.spec.plan.find_model import Budget, offered_objectives, spec_for, streamed_out
from jobs.spec.problems import Problem
from jobs.spec.sections.data import Task
from jobs.spec.sections.resources import Resources

RESOURCES = Resources()
"""The search runs with the default resources."""


class Found(NamedTuple):
    """The experiment, its search if it was submitted, and why templates are not among those it searches."""

    experiment: Experiment
    job: Job | None
    left_out: tuple[str, ...] = ()


def read_budget(minutes: float | None, trials: int | None) -> Budget:
    """Return these numbers' budget.

    Raises:
        BadInput: none of them is given, or both are.
    """
    if (minutes is None) == (trials is None):
        message = "give max_minutes or max_trials, one of them"
        raise BadInput(message, [Problem("/max_minutes", message)])
    return Budget(minutes=minutes, trials=trials)


def find_model(
    project: Project,
    version: DatasetVersion,
    budget: Budget,
    *,
    by: User,
    name: str = "",
    objective: str = "",
    register_as: str = "",
    submitted: bool = True,
) -> Found:
    """Create the experiment, and submit it.

    Args:
        project: the experiment's project.
        version: the data.
        budget: the search's budget.
        by: the acting user.
        name: the experiment's name; empty: made from the data set's name.
        objective: the metric that ranks the trials, and so whether it is minimized or maximized; empty: the
            default of the data's task.
        register_as: the model that gets the best model and the ensemble as versions; empty: none.
        submitted: False creates only the experiment, to be changed before it is submitted.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        BadInput: the version is not ready, its data do not suit the search, their task does not offer the
            objective, or the name of the registered model is invalid or another project's.
        QuotaReached: the project has too many unfinished jobs.
    """
    profile, slug = version.profile, version.dataset.slug
    if profile is None:
        message = f"{slug} v{version.number} is {version.state}; choose a version that is ready"
        raise BadInput(message, [Problem("/version", message)])
    _check_objective(objective, profile.task)
    if register_as:
        registry.require_usable_name(project, register_as, pointer="/register_as")
    room = workers.row_memory_of_pool(RESOURCES)
    spec = spec_for(slug, version.number, profile, budget, room, objective=objective, model=register_as)
    reasons = streamed_out(profile, room)
    name = name or names.free_name(names.search_of_templates(slug), newest_names(project))
    with transaction.atomic():
        experiment = experiments.create(project, name=name, by=by, spec=spec)
        job = experiments.submit(experiment, by=by) if submitted else None
        if job is not None:
            for reason in reasons:
                job_warnings.add_warning(job.pk, code="template_left_out", message=reason)
            job.refresh_from_db(fields=["warnings"])
    return Found(experiment, job, reasons)


def _check_objective(objective: str, task: Task) -> None:
    offered = offered_objectives(task)
    if objective and objective not in offered:
        message = f"{objective[:80]!r} is no objective for {task} data; choose one of {', '.join(offered)}"
        raise BadInput(message, [Problem("/objective", message)])
