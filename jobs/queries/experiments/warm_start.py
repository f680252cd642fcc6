"""Checks whether a search can be warm-started from an earlier one, and reads the earlier trials."""

from typing import Any

from jobs.models import Job, Project
from jobs.queries.search import outcomes
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.problems import Problem
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.search_space import check_values

POINTER = "/search/warm_start"
MAX_TRIALS = 2000
"""How many of the newest trials are used; no algorithm models more."""


def warm_start_problems(project: Project, search: SearchSpec | None) -> list[Problem]:
    """Return the problems with the warm start in a search's spec."""
    if search is None or search.warm_start is None:
        return []
    if not search.info.learns_from_earlier:
        able = " or ".join(sorted(info.name for info in ALGORITHMS.values() if info.learns_from_earlier))
        sentence = f"{search.algorithm} cannot use the trials of another search"
        return [Problem(POINTER, f"{sentence}; use {able}, or leave it out")]
    job = Job.objects.with_trials().filter(pk=search.warm_start, project=project).first()
    if job is None or job.revision is None:
        return [Problem(POINTER, f"there is no search {search.warm_start} in {project.slug}")]
    theirs = outcomes.search_of(job).ranked_by()
    if theirs != search.ranked_by():
        objectives = ", ".join(f"{objective.metric} ({objective.direction})" for objective in theirs)
        message = (
            f"job {job.pk} has the objective {objectives}; scores of different objectives cannot be compared"
        )
        return [Problem(POINTER, message)]
    return []


def warm_start_trials(root: Job, search: SearchSpec) -> list[dict[str, Any]]:
    """Return the earlier search's completed trials that fit the space, for a suggestion request."""
    if search.warm_start is None or not search.info.learns_from_earlier:
        return []
    earlier = Job.objects.with_trials().filter(pk=search.warm_start, project=root.project).first()
    if earlier is None:
        return []  # it has been deleted; the search runs without a warm start
    rows = earlier.trials.scored().order_by("-number")[:MAX_TRIALS]
    scores = outcomes.scores_of(rows, search.objectives) if search.objectives is not None else {}
    # Both searches may have found hyperparameters after these trials.
    theirs, ours = earlier.payload, root.payload
    return [
        {
            "number": trial.number,
            "state": trial.state,
            "values": values,
            "score": trial.score,
            "scores": scores.get(trial.pk),
            "source": "earlier",
        }
        for trial in rows
        if _fits_space(search, values := ours.whole_values(theirs.whole_values(trial.values)))
    ]


def _fits_space(search: SearchSpec, values: dict[str, Any]) -> bool:
    try:
        check_values(search.space, values)
    except ValueError:
        return False
    return True
