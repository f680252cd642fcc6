"""Builds the comparison of jobs, experiments and versions.

The number of statements does not depend on how many are compared.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from jobs.answers.runs.job_comparison import ComparisonOut, CurveSourceOut, SubjectOut
from jobs.models import Job, User
from jobs.queries.runs.job_comparison.curves import curve_names
from jobs.queries.runs.job_comparison.measured_rows import describe_rows, measured_rows_of, name_groups
from jobs.queries.runs.job_comparison.metrics import Measured, compare_metrics, read_measured
from jobs.queries.runs.job_comparison.requested import Requested
from jobs.queries.runs.job_comparison.scores import Score, scores_of
from jobs.queries.runs.job_comparison.settings import compare_settings
from jobs.queries.runs.job_comparison.sizes import Size, sizes_of
from jobs.queries.runs.job_comparison.subjects import Subject, find_subjects, why_without_test
from jobs.queries.runs.running_time import running_seconds


def comparison_out(user: User, requested: Requested) -> ComparisonOut:
    """Compare the requested things that `user` may see."""
    subjects, missing = find_subjects(user, requested)
    measured, scores, rows = read_measured(subjects), scores_of(subjects), measured_rows_of(subjects)
    tested = [at for at, each in enumerate(measured) if each.test]
    same, sentence = describe_rows([rows[at] for at in tested], [measured[at].test_rows for at in tested])
    counts = [each.test_rows if each.test else None for each in measured]
    groups = name_groups(rows, counts)
    seconds = _running_seconds(subjects)
    columns = [
        _subject_out(*each, seconds)
        for each in zip(subjects, measured, scores, groups, sizes_of(subjects), strict=True)
    ]
    differing, equal = compare_settings(subjects)
    return ComparisonOut(
        subjects=columns,
        missing=missing,
        left_out=requested.left_out,
        differing=differing,
        equal=equal,
        metrics=compare_metrics(measured, scores, groups),
        same_rows=same,
        rows=sentence,
        curves=curve_names([column["curve"] for column in columns]),
    )


def curve_sources(user: User, requested: Requested) -> list[tuple[str, CurveSourceOut | None]]:
    """Return the name of each subject, and whose learning curve represents it."""
    subjects, _ = find_subjects(user, requested)
    scores = scores_of(subjects)
    return [
        (subject.name, _curve_of(subject, score)) for subject, score in zip(subjects, scores, strict=True)
    ]


def _subject_out(
    subject: Subject,
    measured: Measured,
    score: Score | None,
    group: str,
    size: Size,
    seconds: Mapping[int, float],
) -> SubjectOut:
    job, version, model_job = subject.job, subject.version, subject.model_job
    project = version.model.project if version is not None else job.project if job is not None else None
    if project is None and subject.experiment is not None:
        project = subject.experiment.project
    return SubjectOut(
        kind=subject.kind,
        name=subject.name,
        project=project.slug if project is not None else None,
        job=job.pk if job is not None else None,
        job_kind=job.public_kind if job is not None else None,
        experiment=subject.experiment.pk if subject.experiment is not None else None,
        model=version.model.name if version is not None else None,
        version=version.number if version is not None else None,
        state=version.state if version is not None else job.state if job is not None else None,
        objective=score.metric if score is not None else None,
        direction=score.direction if score is not None else None,
        measured=model_job.label if model_job is not None and measured.test else "",
        note="" if measured.test else why_without_test(subject),
        rows_group=group,
        test_rows=measured.test_rows if measured.test else None,
        bytes=size.bytes,
        parameters=size.parameters,
        latency_ms=size.latency_ms,
        hardware=size.hardware,
        seconds=seconds.get(job.pk) if job is not None else None,
        curve=_curve_of(subject, score),
    )


def _running_seconds(subjects: Sequence[Subject]) -> dict[int, float]:
    jobs: dict[int, Job] = {}
    shown_in: dict[int, set[int]] = defaultdict(set)
    for subject in subjects:
        if (job := subject.job) is not None:
            jobs[job.pk] = job
            # A version was made by this job alone.
            steps = () if subject.version is not None else job.children.all()
            for member in (job, *steps):
                shown_in[member.pk].add(job.pk)
    return running_seconds(list(jobs.values()), shown_in)


def _curve_of(subject: Subject, score: Score | None) -> CurveSourceOut | None:
    if subject.training is not None:
        return CurveSourceOut(job=subject.training.pk, trial=None)
    if subject.job is not None and score is not None and score.trial is not None:
        return CurveSourceOut(job=subject.job.pk, trial=score.trial)
    return None
