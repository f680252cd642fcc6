"""Template tags that show the reports about models: sentence, tables and charts."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from django import template

from jobs.messages.reports.base import MetricValue, ModelReport
from jobs.messages.reports.ensemble import EnsembleReport
from jobs.messages.reports.evaluation import (
    ClassEvaluation,
    LabelEvaluation,
    RegressionEvaluation,
)
from jobs.messages.reports.quantization import QuantizationReport
from jobs.messages.reports.verdicts import percent, verdict
from jobs.models import Job
from webapp.report_figures import ensemble, evaluation, quantization
from webapp.report_figures.intervals import IntervalMethod, method_of
from webapp.template_context import template_variables

register = template.Library()

METRIC_NAMES = {
    "accuracy": "Accuracy",
    "exact_match": "All labels right",
    "log_loss": "Log loss",
    "f1_macro": "F1, mean over classes",
    "ece": "Calibration error (ECE)",
    "roc_auc": "Area under the ROC curve",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
}
"""Names of metrics for people."""


@register.filter
def metric_name(name: str) -> str:
    """Return a metric's name for people."""
    return METRIC_NAMES.get(name, name)


@register.filter
def share(value: float | None) -> str:
    """Show a share between 0 and 1 as a percentage with one decimal."""
    return "–" if value is None else percent(value)


@register.filter
def interval_method(value: MetricValue) -> IntervalMethod | None:
    """Return the method behind a metric's interval; None if it has no interval."""
    return method_of(value)


@register.inclusion_tag("components/reports/model_report.html")
def model_report(report: ModelReport, members: Mapping[str, Job] | None = None) -> dict[str, Any]:
    """Show a report. `members` are the jobs that trained an ensemble's members, by their names."""
    return {"verdict": verdict(report), "report": report, "members": members or {}, **_context(report)}


@singledispatch
def _context(report: ModelReport) -> dict[str, Any]:
    raise TypeError(f"no page shows a {type(report).__name__}")


@_context.register
def _of_ensemble(report: EnsembleReport) -> dict[str, Any]:
    return {
        "template": "components/reports/ensemble_report.html",
        **template_variables(ensemble.ensemble_context(report)),
    }


@_context.register
def _of_quantization(report: QuantizationReport) -> dict[str, Any]:
    return {
        "template": "components/reports/quantization_report.html",
        **template_variables(quantization.quantization_context(report)),
    }


@_context.register
def _of_classes(report: ClassEvaluation) -> dict[str, Any]:
    return {
        "template": "components/reports/evaluation.html",
        **template_variables(evaluation.classes_context(report)),
    }


@_context.register
def _of_labels(report: LabelEvaluation) -> dict[str, Any]:
    return {
        "template": "components/reports/evaluation.html",
        **template_variables(evaluation.labels_context(report)),
    }


@_context.register
def _of_regression(report: RegressionEvaluation) -> dict[str, Any]:
    return {
        "template": "components/reports/evaluation.html",
        **template_variables(evaluation.regression_context(report)),
    }
