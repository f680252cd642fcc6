"""Defines an evaluation's report: a model's predictions compared with the true values."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from jobs.messages.reports.base import FiniteOrNull, Metrics, ModelReport


class ClassScores(ModelReport):
    """The scores of one class or label; null where a denominator is 0."""

    label: str
    precision: float | None
    recall: float | None
    f1: float | None
    support: int = Field(description="Number of rows whose true class or label it is.")
    roc_auc: float | None = Field(default=None, description="Of a label; null for classes.")


class CalibrationBin(ModelReport):
    """The predictions whose confidence lies between two bounds."""

    low: float
    high: float
    rows: int
    share: float | None = Field(
        default=None, description="Of the weight of all rows; null if each counts once."
    )
    confidence: float = Field(description="Mean probability of the predicted class.")
    accuracy: float = Field(description="Share of correct predictions.")


class Calibration(ModelReport):
    """Confidence compared with accuracy, in the bins that have rows."""

    ece: float | None = Field(description="Expected calibration error: the mean gap, weighted by rows.")
    bins: tuple[CalibrationBin, ...] = ()

    @property
    def bias(self) -> float | None:
        """Return mean confidence minus accuracy, or None without rows.

        It is positive if the model is too confident.
        """
        sizes = [interval.rows if interval.share is None else interval.share for interval in self.bins]
        gaps = (interval.confidence - interval.accuracy for interval in self.bins)
        total = sum(sizes)
        return sum(size * gap for size, gap in zip(sizes, gaps, strict=True)) / total if total else None


class ResidualSummary(ModelReport):
    """The distribution of truth − prediction over the rows with a finite prediction; null without any."""

    mean: FiniteOrNull = None
    std: FiniteOrNull = None
    min: FiniteOrNull = None
    p05: FiniteOrNull = None
    median: FiniteOrNull = None
    p95: FiniteOrNull = None
    max: FiniteOrNull = None


class Histogram(ModelReport):
    """Counts between consecutive edges; there is one more edge than counts."""

    counts: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()


class OutputReport(ModelReport):
    """One target column of a regression."""

    name: str
    rmse: FiniteOrNull
    mae: FiniteOrNull
    r2: FiniteOrNull
    residuals: ResidualSummary = ResidualSummary()
    histogram: Histogram = Histogram()
    pairs: tuple[tuple[float, float], ...] = Field(default=(), description="Some (truth, prediction) pairs.")


class _Evaluation(ModelReport):
    rows: int
    weighted_by: str = Field(
        default="",
        description="The column whose numbers weigh the rows in metrics, scores of classes, calibration and "
        "ROC curve; empty if each row counts once. Confusion, residuals and counts are not weighted.",
    )
    nonfinite_rows: int = Field(default=0, description="Rows whose prediction is NaN or infinite.")
    metrics: Metrics


class ClassEvaluation(_Evaluation):
    """The evaluation of a classifier that predicts one class per row."""

    task: Literal["binary", "multiclass"]
    class_labels: tuple[str, ...]
    per_class: tuple[ClassScores, ...]
    confusion: tuple[tuple[int, ...], ...] = Field(
        description="Counts; one row per true class, one column per predicted class."
    )
    calibration: Calibration
    roc_curve: tuple[tuple[float, float], ...] = Field(
        default=(), description="Of a binary task: (false positive rate, true positive rate) pairs."
    )
    roc_thresholds: tuple[float, ...] = Field(
        default=(), description="The smallest score that counts as positive, for each point but the first."
    )


class LabelEvaluation(_Evaluation):
    """The evaluation of a classifier that predicts any number of labels per row."""

    task: Literal["multilabel"]
    class_labels: tuple[str, ...]
    per_class: tuple[ClassScores, ...]
    confusion_per_label: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = Field(
        description="Of each label: [[true negatives, false positives], [false negatives, true positives]]."
    )
    calibration: Calibration


class RegressionEvaluation(_Evaluation):
    """The evaluation of a regressor with one or several target columns."""

    task: Literal["regression"]
    target_std: FiniteOrNull = Field(
        description="Standard deviation of the target, the mean over columns; weighted like the metrics."
    )
    outputs: tuple[OutputReport, ...]


EvaluationReport = Annotated[
    ClassEvaluation | LabelEvaluation | RegressionEvaluation, Field(discriminator="task")
]
EVALUATION: TypeAdapter[EvaluationReport] = TypeAdapter(EvaluationReport)
