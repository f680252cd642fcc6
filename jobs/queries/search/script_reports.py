"""Reads the values that external scripts have reported for their trials, and computes scores from them."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from jobs.errors import NotFound
from jobs.models import Job, MetricChunk, Trial
from jobs.queries.runs.codec import unpack_columns
from jobs.queries.search import outcomes
from jobs.spec.external_search import ExternalSearch

Reported = Mapping[str, Mapping[int, Sequence[float]]]
"""Metric → step → the values reported at this step. Steps count from 0, as in KerasTuner."""


class TrialName(NamedTuple):
    """A trial's name in a script. The attempt number is the fencing token in every call."""

    trial: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.trial}-{self.attempt}"


def parse_name(text: str) -> TrialName:
    """Parse a trial's name.

    Raises:
        NotFound: the text is not a trial's name.
    """
    trial, _, attempt = text.partition("-")
    # Numbers of at most nine digits fit into the columns.
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in (trial, attempt)):
        raise NotFound(f"there is no trial {text[:50]!r} here")
    return TrialName(int(trial), int(attempt))


def find_trial(job_id: int, name: TrialName) -> Trial:
    """Return a trial by number.

    Raises:
        NotFound: the search has no trial with this number.
    """
    trial = Trial.objects.filter(job_id=job_id, number=name.trial).first()
    if trial is None:
        raise NotFound(f"search {job_id} has no trial {name.trial}")
    return trial


def reported_values(job_id: int, name: TrialName) -> Reported:
    """Return the values that were reported for a trial by the attempt in its name."""
    rows = MetricChunk.objects.filter(
        series__job_id=job_id, series__trial__number=name.trial, series__attempt=name.attempt
    )
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for metric, data in rows.order_by("pk").values_list("series__name", "data"):
        columns = unpack_columns(data)
        for x, number in zip(columns[0].tolist(), columns[1].tolist(), strict=True):
            # Series count steps from 1, KerasTuner from 0.
            values[metric][int(x) - 1].append(number)
    return values


class Best(NamedTuple):
    """A trial's best step, counted from 0, and the objective's value at this step."""

    score: float
    step: int


def best_score(observed: Reported, search: ExternalSearch) -> Best | None:
    """Return the score as KerasTuner computes it: the mean at the best step; None without finite values."""
    sign = -1 if search.direction == "max" else 1
    means = {step: fmean(values) for step, values in observed.get(search.metric, {}).items()}
    finite = [(sign * mean, step) for step, mean in means.items() if math.isfinite(mean)]
    if not finite:
        return None
    cost, step = min(finite)
    return Best(sign * cost, step)


def best_reported_trials(job_id: int, count: int) -> list[Trial]:
    """Return a search's best trials, best first."""
    root = Job.objects.get(pk=job_id)
    # The count comes from a script, so it is bounded.
    return list(outcomes.best_trials(root, limit=max(0, min(count, 1000))))
