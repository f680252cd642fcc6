"""Describes how a search's trials are ranked: the metric, its direction and the rows."""

from typing import NamedTuple

from jobs.models import DatasetVersion, Job
from jobs.queries.search import outcomes
from jobs.spec.sections.data import Split


class Scoring(NamedTuple):
    """The meaning of "best" in a search.

    Attributes:
        metric: the objective's metric.
        direction: `min` or `max`.
        rows: the rows on which it is measured, with their number where it is known.
        trainings: how many trainings are averaged for a trial.
    """

    metric: str
    direction: str
    rows: str
    trainings: int

    @property
    def text(self) -> str:
        """Return the description without a verb, such as for a tooltip on the word "best"."""
        superlative = "highest" if self.direction == "max" else "lowest"
        several = f"; mean over {self.trainings} trainings" if self.trainings > 1 else ""
        return f"{superlative} {self.metric} on {self.rows}{several}"


def scoring_of_search(search: Job) -> Scoring:
    """Return how a search's trials are ranked.

    Raises:
        Conflict: the job is not a search.
    """
    objective = outcomes.objective_of(search)
    trainings = outcomes.search_of(search).trainings()
    return Scoring(objective.metric, objective.direction, _scored_rows(search), trainings)


def _scored_rows(search: Job) -> str:
    if search.revision is None:
        return "the rows that the script chooses"
    spec = search.revision.spec
    if spec.data is None or spec.model.info.trains_itself:
        return "the rows that the script chooses"
    total = _total_rows(search)
    split = spec.data.split
    if spec.search is not None and spec.search.evaluation.kind == "k_fold":
        folds = f"{spec.search.evaluation.trainings()} held-out folds of the training and validation rows"
        return (
            folds if total is None else f"{folds}, about {_group_digits(_used_in_folds(total, split))} in all"
        )
    if total is None or not _is_share(split):
        return "the validation rows"
    return f"about {_group_digits(max(round(total * split.validation), 1))} validation rows"


def _total_rows(search: Job) -> int | None:
    version = search.payload.dataset_version
    if version is None:
        return None
    return DatasetVersion.objects.filter(pk=version).values_list("rows", flat=True).first()


def _used_in_folds(total: int, split: Split) -> int:
    return total - round(total * split.test) if _is_share(split) else total


def _is_share(split: Split) -> bool:
    """Return whether the parts are shares of all rows, and not named by a column."""
    return split.column is None


def _group_digits(count: int) -> str:
    return f"{count:,}".replace(",", "\u202f")
