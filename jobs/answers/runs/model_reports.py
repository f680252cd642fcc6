"""Declares the answers about the reports on models."""

from typing import Literal

from pydantic import Field

from jobs.answers.base import Answer
from jobs.messages.reports.ensemble import EnsembleReport
from jobs.messages.reports.evaluation import (
    ClassEvaluation,
    LabelEvaluation,
    RegressionEvaluation,
)
from jobs.messages.reports.model_summary import ModelSummary
from jobs.messages.reports.quantization import QuantizationReport

ReportRole = Literal["report", "evaluation", "summary"]


class ModelReportOut(Answer):
    """A report that the engine wrote about a model, and its main finding."""

    job: int = Field(description="The job that made it.")
    label: str = Field(description="The title of that job.")
    role: ReportRole = Field(description="report: of an ensemble or a quantization.")
    digest: str = Field(description="SHA-256 of the JSON file, which is also at /artifacts/{digest}.")
    verdict: str = Field(description="The main finding as one sentence; empty for a summary.")
    report: (
        EnsembleReport
        | QuantizationReport
        | ClassEvaluation
        | LabelEvaluation
        | RegressionEvaluation
        | ModelSummary
    )
