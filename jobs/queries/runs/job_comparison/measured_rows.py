"""Identifies the rows on which subjects were measured."""

import hashlib
import string
from collections.abc import Sequence
from typing import NamedTuple

from jobs.messages.overview import key_of
from jobs.models import DatasetVersion
from jobs.queries.runs.job_comparison.subjects import Subject
from jobs.spec.data.split_roles import canonical


class MeasuredRows(NamedTuple):
    """The rows on which a subject was measured, for validation and for test.

    Attributes:
        digest: of the data, the split and the target; equal digests mean equal rows.
        data: names the data set version.
    """

    digest: str
    data: str


def measured_rows_of(subjects: Sequence[Subject]) -> list[MeasuredRows | None]:
    """Return each subject's test rows; None if unknown: of an upload, a script, or deleted data."""
    keys = [_dataset_version(subject) for subject in subjects]
    rows = DatasetVersion.objects.filter(pk__in={key for key in keys if key is not None})
    known = {row.pk: row for row in rows.select_related("dataset")}
    return [_test_rows(subject, known.get(key or 0)) for subject, key in zip(subjects, keys, strict=True)]


def _dataset_version(subject: Subject) -> int | None:
    return subject.job.payload.dataset_version if subject.job is not None else None


def _test_rows(subject: Subject, version: DatasetVersion | None) -> MeasuredRows | None:
    spec = subject.revision.spec if subject.revision is not None else None
    # A script chooses its test rows itself.
    if spec is None or spec.data is None or version is None or spec.model.info.trains_itself:
        return None
    profile = version.profile
    split = canonical(spec.data.split, profile) if profile is not None else spec.data.split
    target = spec.data.target or (profile.target if profile is not None else "")
    window = spec.data.window.model_dump_json() if spec.data.window is not None else ""
    text = "\0".join([version.digest, key_of(split), str(target), window])
    return MeasuredRows(
        hashlib.sha256(text.encode()).hexdigest(), f"{version.dataset.slug} v{version.number}"
    )


def name_groups(rows: Sequence[MeasuredRows | None], counts: Sequence[int | None]) -> list[str]:
    """Return a letter for each subject that those with equal test rows share; empty if they are unknown.

    Args:
        rows: of the subjects.
        counts: on how many test rows each was measured; None without test metrics. The same data may have
            other numbers of them, such as where an earlier release left rows out.
    """
    known: dict[str, int] = {}
    for row, count in zip(rows, counts, strict=True):
        if row is not None and count is not None:
            known.setdefault(row.digest, count)
    keys = [
        None if row is None else (row.digest, known.get(row.digest) if count is None else count)
        for row, count in zip(rows, counts, strict=True)
    ]
    letters = {key: _letter(at) for at, key in enumerate(dict.fromkeys(key for key in keys if key))}
    return ["" if key is None else letters[key] for key in keys]


def _letter(at: int) -> str:
    letters = string.ascii_uppercase
    return letters[at] if at < len(letters) else letters[at // len(letters) - 1] + letters[at % len(letters)]


def describe_rows(rows: Sequence[MeasuredRows | None], counts: Sequence[int | None]) -> tuple[bool, str]:
    """Return whether all measured subjects share their test rows, and a sentence about it.

    Args:
        rows: of the subjects with test metrics.
        counts: on how many rows each was measured.
    """
    if not rows:
        return False, ""
    known = [row for row in rows if row is not None]
    digests = {row.digest for row in known}
    if len(known) == len(rows) and len(digests) == 1 and len(set(counts)) == 1:
        number = f"{counts[0]:,} test rows" if counts[0] is not None else "test rows"
        if len(rows) == 1:
            return True, f"One of them was measured on test rows: the {number} of {known[0].data}."
        return (
            True,
            f"All {len(rows)} with test metrics were measured on the same {number} of {known[0].data}.",
        )
    if not known:
        return (
            False,
            "On which rows they were measured is unknown, so the test metrics may not be comparable.",
        )
    parts = [f"{len(digests)} different sets of test rows"] if len(digests) > 1 else []
    if len(known) < len(rows):
        parts.append(f"{len(rows) - len(known)} on rows that are unknown")
    if not parts:
        parts = ["different numbers of rows"]
    return False, (
        f"They were not measured on the same rows: {', '.join(parts)}. "
        "Compare test metrics only within one letter of the row “Rows”."
    )
