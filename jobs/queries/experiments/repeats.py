"""Compares a job that would run again with its earlier run: whether the result would be the same."""

from typing import NamedTuple

from jobs.kinds import kinds_that
from jobs.kinds.rows import retraining_trial
from jobs.models import DatasetVersion, Job, Revision, Trial
from jobs.queries.data import datasets
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.experiment import ExperimentSpec
from jobs.states import JobState


class Sameness(NamedTuple):
    """A sentence about the result, and whether it is known already."""

    sentence: str
    is_same: bool


def last_run(revision: Revision) -> Job | None:
    """Return the newest job of a revision, preferably a completed one; None if it never ran."""
    kinds = kinds_that(lambda facts: facts.has_steps and not facts.retrains_chosen)
    jobs = Job.objects.filter(revision=revision, parent=None, kind__in=kinds).order_by("-pk")
    return jobs.filter(state=JobState.COMPLETED).first() or jobs.first()


def compare_rerun(earlier: Job, spec: ExperimentSpec, parallel_trials: int) -> Sameness:
    """Compare a run of a spec with an earlier job of the same spec.

    Args:
        earlier: the earlier job.
        spec: its spec.
        parallel_trials: how many trials may run at once.
    """
    if (newer := _newer_data(earlier, spec)) is not None:
        known = earlier.payload.dataset_version
        before = DatasetVersion.objects.filter(pk=known).first() if known is not None else None
        had = f"; job {earlier.pk} had version {before.number}" if before is not None else ""
        return Sameness(f"Other data: it reads {newer}, the newest version{had}.", is_same=False)
    same = f"Same seeds and data as job {earlier.pk}"
    if spec.model.info.trains_itself:
        return Sameness(
            f"Same values and data as job {earlier.pk}: the script's own seeds decide whether its result is "
            "the same.",
            is_same=False,
        )
    if earlier.state != JobState.COMPLETED:
        return Sameness(f"{same}, which is {earlier.state}.", is_same=False)
    if spec.search is not None and spec.search.time_limit is not None:
        return Sameness(f"{same}, but the time decides how many trials run.", is_same=False)
    if spec.search is not None and parallel_trials > 1 and ALGORITHMS[spec.search.algorithm].needs_results:
        return Sameness(
            f"{same}: expect nearly the same result. Trials that end in another order may lead to other "
            "suggestions.",
            is_same=True,
        )
    return Sameness(f"{same}: the same result.", is_same=True)


def _newer_data(earlier: Job, spec: ExperimentSpec) -> DatasetVersion | None:
    """Return the version that the spec reads now, if it is another one than the earlier job's."""
    before = earlier.payload.dataset_version
    if spec.data is None or earlier.project is None or before is None:
        return None
    now = datasets.find_version(earlier.project, spec.data.dataset, spec.data.dataset_version)
    return now if now is not None and now.pk != before else None


def earlier_retraining(trial: Trial) -> Job | None:
    """Return the newest completed job that retrained a trial's values as an experiment of its own."""
    jobs = Job.objects.filter(project=trial.job.project, state=JobState.COMPLETED, parent=None)
    return jobs.filter(retraining_trial(trial.job_id, trial.number)).order_by("-pk").first()
