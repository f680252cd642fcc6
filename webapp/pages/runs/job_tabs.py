"""Builds the template context of each tab of a job's page."""

from typing import Any

from django.templatetags.static import static

from jobs.errors import NotFound
from jobs.messages.reports.model_summary import ModelSummary
from jobs.models import Job
from jobs.queries.registry import versions
from jobs.queries.runs import jobs as shown
from jobs.queries.runs import model_reports
from jobs.queries.search import outcomes, trials
from jobs.spec.space.search_space import Parameter
from jobs.states import TrialState
from webapp.forms.search.trials import TrialForm
from webapp.pages.runs import job_overview
from webapp.pages.shortcuts import Request
from webapp.report_figures import architecture
from webapp.templatetags.states import look

# The modules of a search's page. Preloading them saves a round trip for each level of imports.
MODULES = (
    "js/shared/connection/live",
    "js/shared/dom",
    "js/shared/words",
    *("js/shared/charts/" + name for name in ("axes", "chart", "chart-parts", "colours", "legend")),
    *("js/shared/charts/" + name for name in ("marks", "settings", "tip")),
    *("js/runs/" + name for name in ("curve-lines", "curve-looks", "curve-points", "curves", "log")),
    "js/runs/training-time",
    *("js/search/" + name for name in ("bar", "chips", "columns", "filters", "history", "history-paths")),
    *("js/search/" + name for name in ("store", "table", "view")),
    "vendor/uplot-1.6.32/uPlot.esm",
)

REPORT_TABS = {"report": "report", "evaluation": "evaluation", "layers": "summary"}
"""The tabs that show reports about models, and the roles of the reports."""

BY_SECONDS = "by seconds since the start of the attempt"
WAITING = "percent of the time of an epoch's steps in which they wait for rows to be read"
SYSTEM_TITLES = {
    "system/cpu_percent": ("CPU", f"runner and its children; 100 % is one core; {BY_SECONDS}"),
    "system/memory_mib": ("Memory", f"MiB; runner and its children; {BY_SECONDS}"),
    "system/data_wait_percent": ("Waiting for data", f"{WAITING}; by epochs"),
    "system/retrain_data_wait_percent": ("Waiting for data in the final training", f"{WAITING}; by epochs"),
}
"""The title and the hint of each chart of the tab System, by the name of its metric."""


def names(row: Job) -> list[str]:
    """Return the names of a job's tabs."""
    roles = {each.role for each in model_reports.reports_of_job(row)}
    hidden = {tab for tab, role in REPORT_TABS.items() if role not in roles}
    if row.revision is None:
        hidden.add("spec")
    if not (row.facts.has_trials or row.facts.trains or _metric_names(row)):
        hidden.add("charts")
    return [tab for tab in row.facts.tabs if tab not in hidden]


def context(request: Request, row: Job, tab: str) -> dict[str, Any]:
    """Return the additional context of the template of `tab`."""
    build = _CONTEXTS.get(tab)
    return build(request, row) if build is not None else {}


def preloaded() -> list[str]:
    """Return the URLs of the modules that a search's page preloads."""
    return [static(f"{name}.js") for name in MODULES]


def trial_looks() -> dict[str, Any]:
    """Return the icon, colour and label of each trial state, for tables and charts drawn in the browser."""
    return {str(s): look(s)._asdict() for s in TrialState}


def space_of(row: Job) -> tuple[Parameter, ...]:
    """Return the search space of a search; empty for other jobs."""
    return outcomes.search_of(row).space if row.facts.has_trials else ()


def _trials_tab(_request: Request, row: Job) -> dict[str, Any]:
    return {"trial_form": TrialForm(space_of(row)), "is_open": trials.accepts_trials(row)}


def _charts_tab(_request: Request, row: Job) -> dict[str, Any]:
    if row.facts.has_trials:
        return {}
    return {
        "metric_pairs": pair_metrics(_metric_names(row)),
        "objective_name": outcomes.objective_of(row).metric,
    }


def _metric_names(row: Job) -> list[str]:
    return [name for name in shown.metric_names(row) if not name.startswith("system/")]


def pair_metrics(names: list[str]) -> list[list[str]]:
    """Pair each metric with its validation metric; each pair is drawn in one chart."""
    plain = [name for name in names if not name.startswith("val_")]
    pairs = [[name, f"val_{name}"] if f"val_{name}" in names else [name] for name in plain]
    unpaired = [
        [name] for name in names if name.startswith("val_") and name.removeprefix("val_") not in plain
    ]
    return sorted(pairs + unpaired, key=lambda pair: (len(pair) == 1, pair[0] != "loss", pair[0]))


def _system_tab(_request: Request, row: Job) -> dict[str, Any]:
    names = [name for name in shown.metric_names(row) if name.startswith("system/")]
    return {"system_metrics": [(name, *SYSTEM_TITLES.get(name, (name, ""))) for name in names]}


def _report_tab(request: Request, row: Job) -> dict[str, Any]:
    return _chosen_report(request, row, "report")


def _evaluation_tab(request: Request, row: Job) -> dict[str, Any]:
    return _chosen_report(request, row, "evaluation")


def _layers_tab(request: Request, row: Job) -> dict[str, Any]:
    found = _chosen_report(request, row, "summary")
    summary = found["report"]
    shown = architecture.context(summary, request.GET) if isinstance(summary, ModelSummary) else {}
    return found | {"remedy": "Register the model: a version's page can read them from the file."} | shown


def _chosen_report(request: Request, row: Job, role: str) -> dict[str, Any]:
    """Return the reports of a role of a job and its steps, and the one of the job `?of=`."""
    found = model_reports.reports_of_job(row, (role,))
    which = request.GET.get("of")
    current = next((each for each in found if str(each.job.pk) == which), found[0] if found else None)
    if current is None:
        raise NotFound(f"This job has no {role} yet.")
    return {
        "reports": found,
        "current": current,
        "report": model_reports.read_report(current),
        "members": model_reports.members_of_report(current),
        "by_code": versions.measured_by_code(current.job),
    }


def _artifacts_tab(request: Request, row: Job) -> dict[str, Any]:
    made = [shown.artifact_out(each) for each in shown.newest_artifacts([row, *row.children.all()])]
    became = versions.versions_by_artifact(request.user, [each["digest"] for each in made])
    return {"artifacts": [(each, became.get(each["digest"], [])) for each in made]}


def _attempts_tab(_request: Request, row: Job) -> dict[str, Any]:
    return {"attempts": list(shown.attempts_with_trials(row).order_by("-number")[:100])}


def _spec_tab(_request: Request, row: Job) -> dict[str, Any]:
    return {"spec": row.revision.spec_json if row.revision is not None else None}


_CONTEXTS = {
    "overview": job_overview.context,
    "trials": _trials_tab,
    "charts": _charts_tab,
    "system": _system_tab,
    "report": _report_tab,
    "evaluation": _evaluation_tab,
    "layers": _layers_tab,
    "artifacts": _artifacts_tab,
    "attempts": _attempts_tab,
    "spec": _spec_tab,
}
