"""Compares the templates in a search over several: their trials, best scores and times."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from jobs.answers.search.search_results import TemplateResultOut
from jobs.models import Job
from jobs.queries.runs.running_time import breaks_of_trials, seconds_without_break
from jobs.queries.search import outcomes
from jobs.spec.sections.search import Objective
from jobs.spec.space.searchable import TEMPLATE
from jobs.spec.templates import TEMPLATES
from jobs.states import TrialState


class _Tried(NamedTuple):
    number: int
    state: str
    source: str
    score: float | None
    seconds: float


def template_results(search: Job) -> list[TemplateResultOut]:
    """Return the templates that a search tries, best first; an empty list if it tries one."""
    spec = outcomes.search_of(search)
    choice = next((parameter for parameter in spec.space if parameter.name == TEMPLATE), None)
    # A script in an external search may have a hyperparameter with this name, too.
    if choice is None or not TEMPLATES.keys() >= {*choice.grid()}:
        return []
    rows: dict[str, list[_Tried]] = defaultdict(list)
    trials = search.trials.values_list(
        "pk", "values", "number", "state", "source", "score", "started", "finished"
    ).order_by("number")
    breaks = breaks_of_trials(search)
    for pk, values, number, state, source, score, started, finished in trials:
        seconds = seconds_without_break(started, finished, breaks.get(pk, 0.0)) or 0.0
        rows[str(values.get(TEMPLATE))].append(_Tried(number, state, source, score, seconds))
    results = [_template_result(str(name), rows[str(name)], spec.objective) for name in choice.grid()]
    return sorted(results, key=lambda result: _sort_key(result, spec.objective))


def _template_result(name: str, tried: Sequence[_Tried], objective: Objective) -> TemplateResultOut:
    completed = [trial for trial in tried if trial.state == TrialState.COMPLETED and trial.score is not None]
    best = min(completed, key=lambda trial: _cost(trial.score, objective), default=None)
    first = next((trial for trial in tried if trial.source == "start"), None)
    return TemplateResultOut(
        template=name,
        label=TEMPLATES[name].label,
        trials=len(tried),
        completed=len(completed),
        pruned=sum(trial.state == TrialState.PRUNED for trial in tried),
        failed=sum(trial.state == TrialState.FAILED for trial in tried),
        seconds=sum(trial.seconds for trial in tried),
        best_trial=best.number if best is not None else None,
        best=best.score if best is not None else None,
        defaults=first.score if first in completed else None,
        defaults_trial=first.number if first is not None else None,
        defaults_state=first.state if first is not None else None,
    )


def _cost(score: float | None, objective: Objective) -> float:
    return float("inf") if score is None else objective.cost(score)


def _sort_key(result: TemplateResultOut, objective: Objective) -> tuple[float, str]:
    return _cost(result.best, objective), result.template
