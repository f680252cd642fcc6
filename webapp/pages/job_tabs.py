"""Builds the template context of each tab of a job's page."""

import os
from typing import Any

from django.templatetags.static import static

from jobs.contracts.search_space import Parameter
from jobs.errors import NotFound
from jobs.models import Job
from jobs.queries import evaluations, external_search, outcomes, versions
from jobs.queries import jobs as shown
from jobs.states import TrialState
from webapp.forms.trials import TrialForm
from webapp.pages.shortcuts import Request
from webapp.templatetags.states import look
from webapp.templatetags.trainyard import SPRITE

MODULES = (
    *("live", "chart", "curves", "history", "log"),
    *(
        "../trials/table",
        "../trials/view",
        "../trials/store",
        "../trials/words",
        "../trials/dom",
        "../trials/filters",
        "../trials/bar",
        "../trials/columns",
    ),
    "../../vendor/uplot-1.6.32/uPlot.esm",
)
"""Modules of a search's page. Preloading them saves a round trip for each level of imports."""


def names(row: Job) -> list[str]:
    """Return the names of a job's tabs."""
    hidden = set()
    if row.revision is None:
        hidden.add("spec")
    if not evaluations.of_job(row):
        hidden.add("evaluation")
    return [tab for tab in row.facts.tabs if tab not in hidden]


def context(request: Request, row: Job, tab: str) -> dict[str, Any]:
    """Return the additional context of the template of `tab`."""
    return _CONTEXTS.get(tab, _no_context)(request, row)


def _no_context(request: Request, row: Job) -> dict[str, Any]:
    del request, row
    return {}


def _trials_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    return {"trial_form": TrialForm(space_of(row)), "is_open": shown.accepts_trials(row)}


def preloaded() -> list[str]:
    """Return the URLs of the modules that a search's page preloads."""
    return [static(os.path.normpath(f"js/jobs/{name}.js")) for name in MODULES]


def trial_looks() -> dict[str, Any]:
    """Return the icon, colour and label of each trial state, for tables and charts drawn in the browser."""
    return {"sprite": static(SPRITE), "states": {str(s): look(s)._asdict() for s in TrialState}}


def space_of(row: Job) -> tuple[Parameter, ...]:
    """Return the search space of a search; empty for other jobs."""
    return outcomes.search_of(row).space if row.facts.has_trials else ()


def _overview_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    # A search's own metrics repeat its chosen candidate's; so do those of an ensemble of chosen trials.
    own = [row] if row.facts.evaluates else []
    members = [*own, *row.children.evaluating()]
    candidates = [entry for member in members if (entry := evaluations.summary(member))]
    return {
        "candidates": candidates,
        "outside_lines": external_search.environment_of(row),
        "chosen": row.payload.chosen_trials(),
        "hyperparameters": row.payload.hyperparameters(),
    }


def _charts_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    if row.facts.has_trials:
        return {}
    names = [name for name in shown.metric_names(row) if not name.startswith("system/")]
    return {"metric_pairs": pair_metrics(names), "objective_name": outcomes.objective_of(row).metric}


def pair_metrics(names: list[str]) -> list[list[str]]:
    """Pair each metric with its validation metric; each pair is drawn in one chart."""
    plain = [name for name in names if not name.startswith("val_")]
    pairs = [[name, f"val_{name}"] if f"val_{name}" in names else [name] for name in plain]
    unpaired = [
        [name] for name in names if name.startswith("val_") and name.removeprefix("val_") not in plain
    ]
    return sorted(pairs + unpaired, key=lambda pair: (len(pair) == 1, pair[0] != "loss", pair[0]))


def _system_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    return {"system_names": [name for name in shown.metric_names(row) if name.startswith("system/")]}


def _evaluation_tab(request: Request, row: Job) -> dict[str, Any]:
    found = evaluations.of_job(row)
    which = request.GET.get("of")
    current = next((e for e in found if str(e.job.pk) == which), found[0] if found else None)
    if current is None:
        raise NotFound("This job has no evaluation yet.")
    return {"evaluations": found, "current": current, "report": evaluations.load(current)}


def _artifacts_tab(request: Request, row: Job) -> dict[str, Any]:
    made = [shown.artifact(each) for each in shown.artifacts([row, *row.children.all()])]
    became = versions.by_artifact(request.user, [each["digest"] for each in made])
    return {"artifacts": [(each, became.get(each["digest"], [])) for each in made]}


def _attempts_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    return {"attempts": list(shown.attempts(row).order_by("-number")[:100])}


def _spec_tab(request: Request, row: Job) -> dict[str, Any]:
    del request
    return {"spec": row.revision.spec_json if row.revision is not None else None}


_CONTEXTS = {
    "overview": _overview_tab,
    "trials": _trials_tab,
    "charts": _charts_tab,
    "system": _system_tab,
    "evaluation": _evaluation_tab,
    "artifacts": _artifacts_tab,
    "attempts": _attempts_tab,
    "spec": _spec_tab,
}
