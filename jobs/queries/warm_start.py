"""The search that another one is warm-started from: may it be, and what it found."""

from typing import Any

from jobs.contracts.algorithms import ALGORITHMS
from jobs.contracts.problems import Problem
from jobs.contracts.search import SearchSpec
from jobs.contracts.search_space import check_values
from jobs.models import Job, Project
from jobs.queries import outcomes

POINTER = "/search/warm_start"
NEWEST = 2000
"""So many of its trials are handed on: no model looks at more."""


def problems(project: Project, search: SearchSpec | None) -> list[Problem]:
    """List what keeps a search of `project` from being warm-started as it asks."""
    if search is None or search.warm_start is None:
        return []
    if not search.info.learns_from_earlier:
        able = " or ".join(sorted(info.name for info in ALGORITHMS.values() if info.learns_from_earlier))
        sentence = f"{search.algorithm} learns nothing from the trials of another search: use {able}"
        return [Problem(POINTER, f"{sentence}, or leave it out")]
    job = Job.objects.with_trials().filter(pk=search.warm_start, project=project).first()
    if job is None or job.revision is None:
        return [Problem(POINTER, f"there is no search {search.warm_start} in {project.slug}")]
    theirs = outcomes.search_of(job).ranked_by()
    if theirs != search.ranked_by():
        told = ", ".join(f"{objective.metric} ({objective.direction})" for objective in theirs)
        return [
            Problem(POINTER, f"job {job.pk} searched for {told}: scores of two objectives do not compare")
        ]
    return []


def trials(root: Job, search: SearchSpec) -> list[dict[str, Any]]:
    """List what the earlier search completed, as rows of a request, if it fits the space."""
    if search.warm_start is None or not search.info.learns_from_earlier:
        return []
    done = Job.objects.with_trials().filter(pk=search.warm_start, project=root.project).first()
    if done is None:
        return []  # it was deleted since: nothing to learn, no reason to fail
    rows = done.trials.scored().order_by("-number")[:NEWEST]
    scores = outcomes.scores_of(rows, search.objectives) if search.objectives is not None else {}
    return [
        {
            "number": trial.number,
            "state": trial.state,
            "values": trial.values,
            "score": trial.score,
            "scores": scores.get(trial.pk),
            "source": "earlier",
        }
        for trial in rows
        if _fits(search, trial.values)
    ]


def _fits(search: SearchSpec, values: dict[str, Any]) -> bool:
    try:
        check_values(search.space, values)
    except ValueError:
        return False
    return True
