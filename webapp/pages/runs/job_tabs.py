"""Builds the template variables for each tab on a job's page."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.templatetags.static import static

from jobs.answers.runs.results import ArtifactOut
from jobs.errors import NotFound
from jobs.messages.reports.base import ModelReport
from jobs.models import Attempt, Job, ModelVersion
from jobs.queries.registry import versions
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs import model_reports
from jobs.queries.runs.model_reports import StoredReport
from jobs.queries.search import outcomes, trials
from jobs.spec.space.search_space import Parameter
from jobs.states import TrialState
from webapp.forms.search.trials import TrialForm
from webapp.pages.runs import job_overview, job_spec
from webapp.pages.shortcuts import Request
from webapp.report_figures.architecture import architecture_contexts
from webapp.template_context import Context
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
SPEED = "on the mesh, without compilation and validation; by epochs"
SYSTEM_TITLES = {
    "system/cpu_percent": ("CPU", f"runner and its children; 100 % is one core; {BY_SECONDS}"),
    "system/memory_mib": ("Memory", f"MiB; runner and its children; {BY_SECONDS}"),
    "system/data_wait_percent": ("Waiting for data", f"{WAITING}; by epochs"),
    "system/retrain_data_wait_percent": ("Waiting for data in the final training", f"{WAITING}; by epochs"),
    "system/steps_per_second": ("Steps per second", SPEED),
    "system/rows_per_second": ("Rows per second", SPEED),
    "system/retrain_steps_per_second": ("Steps per second in the final training", SPEED),
    "system/retrain_rows_per_second": ("Rows per second in the final training", SPEED),
}
"""The title and the hint of each chart of the tab System, by the name of its metric."""

GPU_TITLES = {
    "memory_gib": ("Memory of GPU {}", "GiB in use, by anyone"),
    "load_percent": ("Load of GPU {}", "percent, by anyone"),
    "temperature_celsius": ("Temperature of GPU {}", "degrees Celsius"),
}
"""The same for the GPUs that a run holds; their metrics have names such as `system/gpu0_memory_gib`."""
GPU_METRIC = re.compile(rf"system/gpu(?P<number>\d+(\.\d+)?)_(?P<figure>{'|'.join(GPU_TITLES)})")


def tab_names(row: Job) -> list[str]:
    """Return the names of a job's tabs."""
    roles = {report.role for report in model_reports.reports_of_job(row)}
    hidden = {tab for tab, role in REPORT_TABS.items() if role not in roles}
    if row.revision is None:
        hidden.add("spec")
    if not (row.facts.has_trials or row.facts.trains or _metric_names(row)):
        hidden.add("charts")
    return [tab for tab in row.facts.tabs if tab not in hidden]


def tab_contexts(
    request: Request, row: Job, tab: str, trial_form: TrialForm | None = None
) -> tuple[Context, ...]:
    """Return the variables for the template of `tab`; `trial_form` is a refused one."""
    if tab == "trials":
        return (TrialsTab(trial_form or TrialForm(space_of(row)), trials.accepts_trials(row)),)
    build = _CONTEXTS.get(tab)
    return build(request, row) if build is not None else ()


def preloaded_modules() -> list[str]:
    """Return the module URLs that a search's page preloads."""
    return [static(f"{name}.js") for name in MODULES]


def trial_looks() -> dict[str, Any]:
    """Return icon, colour and label for each trial state, for tables and charts drawn in the browser."""
    return {str(s): look(s)._asdict() for s in TrialState}


def space_of(row: Job) -> tuple[Parameter, ...]:
    """Return the search space; empty for jobs that are no search."""
    return outcomes.search_of(row).space if row.facts.has_trials else ()


@dataclass(frozen=True)
class TrialsTab(Context):
    """The form that queues a trial by hand."""

    trial_form: TrialForm
    is_open: bool


@dataclass(frozen=True)
class ChartsTab(Context):
    """The metrics for a job that is not a search."""

    metric_pairs: list[list[str]]


def _charts_tab(_request: Request, row: Job) -> tuple[Context, ...]:
    if row.facts.has_trials:
        return ()
    return (ChartsTab(pair_metrics(_metric_names(row))),)


def _metric_names(row: Job) -> list[str]:
    return [name for name in job_queries.metric_names(row) if not name.startswith("system/")]


def pair_metrics(names: list[str]) -> list[list[str]]:
    """Pair each metric with its validation metric; each pair is drawn in one chart."""
    plain = [name for name in names if not name.startswith("val_")]
    pairs = [[name, f"val_{name}"] if f"val_{name}" in names else [name] for name in plain]
    unpaired = [
        [name] for name in names if name.startswith("val_") and name.removeprefix("val_") not in plain
    ]
    return sorted(pairs + unpaired, key=lambda pair: (len(pair) == 1, pair[0] != "loss", pair[0]))


@dataclass(frozen=True)
class SystemTab(Context):
    """The machine's metrics, each with a title and a hint."""

    system_metrics: list[tuple[str, str, str]]


def _system_tab(_request: Request, row: Job) -> tuple[Context, ...]:
    names = [name for name in job_queries.metric_names(row) if name.startswith("system/")]
    return (SystemTab([(name, *_system_title(name)) for name in names]),)


def _system_title(name: str) -> tuple[str, str]:
    """Return a chart's title and hint. Those of devices have the number of their GPU."""
    if (of_gpu := GPU_METRIC.fullmatch(name)) is not None:
        title, hint = GPU_TITLES[of_gpu["figure"]]
        return title.format(of_gpu["number"]), f"{hint}; {BY_SECONDS}"
    return SYSTEM_TITLES.get(name, (name, ""))


def _report_tab(request: Request, row: Job) -> tuple[Context, ...]:
    return (_chosen_report(request, row, "report"),)


def _evaluation_tab(request: Request, row: Job) -> tuple[Context, ...]:
    return (_chosen_report(request, row, "evaluation"),)


@dataclass(frozen=True)
class RemedyNote(Context):
    """What to do about a file whose layers are unknown."""

    remedy: str


def _layers_tab(request: Request, row: Job) -> tuple[Context, ...]:
    chosen = _chosen_report(request, row, "summary")
    layers = architecture_contexts(chosen.report, request.GET)
    return (chosen, RemedyNote("Register the model: a version's page can read them from the file."), *layers)


@dataclass(frozen=True)
class ReportTab(Context):
    """The reports of one role, and the one that is shown."""

    reports: list[StoredReport]
    current: StoredReport
    report: ModelReport | None
    members: dict[str, Job]
    by_code: bool


def _chosen_report(request: Request, row: Job, role: str) -> ReportTab:
    """Return the reports of one role. `?of=` chooses the one that is shown, by its job."""
    reports = model_reports.reports_of_job(row, (role,))
    which = request.GET.get("of")
    current = next(
        (report for report in reports if str(report.job.pk) == which), reports[0] if reports else None
    )
    if current is None:
        raise NotFound(f"This job has no {role} yet.")
    return ReportTab(
        reports=reports,
        current=current,
        report=model_reports.read_report(current),
        members=model_reports.members_of_report(current),
        by_code=versions.measured_by_code(current.job),
    )


@dataclass(frozen=True)
class ArtifactsTab(Context):
    """The artifacts made by a job and its steps, each with the versions made from it."""

    artifacts: list[tuple[ArtifactOut, list[ModelVersion]]]


def _artifacts_tab(request: Request, row: Job) -> tuple[Context, ...]:
    artifacts = [
        job_queries.artifact_out(artifact)
        for artifact in job_queries.newest_artifacts([row, *row.children.all()])
    ]
    by_digest = versions.versions_by_artifact(request.user, [artifact["digest"] for artifact in artifacts])
    return (ArtifactsTab([(artifact, by_digest.get(artifact["digest"], [])) for artifact in artifacts]),)


@dataclass(frozen=True)
class AttemptsTab(Context):
    """A job's newest attempts."""

    attempts: list[Attempt]


def _attempts_tab(_request: Request, row: Job) -> tuple[Context, ...]:
    return (AttemptsTab(list(job_queries.attempts_with_trials(row).order_by("-number")[:100])),)


_CONTEXTS: dict[str, Callable[[Request, Job], tuple[Context, ...]]] = {
    "overview": job_overview.overview_contexts,
    "charts": _charts_tab,
    "system": _system_tab,
    "report": _report_tab,
    "evaluation": _evaluation_tab,
    "layers": _layers_tab,
    "artifacts": _artifacts_tab,
    "attempts": _attempts_tab,
    "spec": job_spec.spec_contexts,
}
