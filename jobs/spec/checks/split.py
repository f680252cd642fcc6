"""Checks how a spec splits a table's rows into parts and folds."""

from collections.abc import Iterator

from jobs.spec.data import windows
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import MIN_GROUPS, few_groups, resolved
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.sections.data import Split


def check_split(spec: ExperimentSpec, profile: Profile) -> Iterator[Problem]:
    """Check that the split's column has a value in each row and enough groups; see `_check_folds`."""
    split_faults = list(split_problems(spec.required_data.split, profile))
    yield from (Problem(f"/data/split{problem.pointer}", problem.message) for problem in split_faults)
    split = resolved(spec.required_data.split, profile)
    groups = _groups_of(split, profile)
    if split.group is None or groups is None or groups >= MIN_GROUPS:
        yield from _check_folds(spec, profile, split, groups)


def problems_of_split(split: Split, profile: Profile) -> list[Problem]:
    """Return why the rows cannot be split in this way, with pointers into the split."""
    names = [column.name for column in profile.columns if not column.shape and column.type != "image"]
    chosen = {field: getattr(split, field) for field in ("group", "column", "time")}
    unknown = [
        Problem(f"/{field}", f"no column {name!r}; the columns are {', '.join(names[:20])}")
        for field, name in chosen.items()
        if name is not None and name not in names
    ]
    return unknown or list(split_problems(split, profile))


def split_problems(split: Split, profile: Profile) -> Iterator[Problem]:
    """Yield why rows cannot be split along a column, with pointers into the split.

    A column that does not exist is no problem here.
    """
    resolved_split = resolved(split, profile)
    missing = {column.name: column.missing for column in profile.columns}
    for field in ("group", "column", "time"):
        name = getattr(resolved_split, field)
        if name is not None and (rows := missing.get(name)):
            yield Problem(
                f"/{field}", f"column {name!r} has no value in {rows:,} rows; a split needs one in each row"
            )
    groups = _groups_of(resolved_split, profile)
    if resolved_split.group is not None and groups is not None and groups < MIN_GROUPS:
        by_role = (
            "" if split.group is not None else "; to split without it, set data.split.use_roles to false"
        )
        yield Problem("/group", few_groups(resolved_split.group, groups) + by_role)


def _groups_of(split: Split, profile: Profile) -> int | None:
    """Count a split's groups. None if it has none, or if the profile does not know them."""
    return next((column.distinct for column in profile.columns if column.name == split.group), None)


def _check_folds(
    spec: ExperimentSpec, profile: Profile, split: Split, groups: int | None
) -> Iterator[Problem]:
    """Check that folds do not mix a resolved split's times, and that each can have a group."""
    evaluation = spec.search.evaluation if spec.search is not None else None
    if evaluation is None or evaluation.kind != "k_fold":
        return
    if split.group is not None and groups is not None and groups <= evaluation.folds:
        yield Problem(
            "/search/evaluation/folds",
            f"column {split.group!r} has {groups} different values; {evaluation.folds} folds and the test "
            f"part need at least {evaluation.folds + 1}",
        )
    if (reason := windows.folds_refusal(spec.required_data, profile)) is not None:
        yield Problem("/search/evaluation/kind", reason)
    # A spec that names the column itself is refused before its data are known.
    if split.time is not None and spec.required_data.split.time is None:
        yield Problem(
            "/search/evaluation/kind",
            f"k_fold would train on rows after the validation rows: column {split.time!r} has the role time. "
            "Use holdout, or set data.split.use_roles to false",
        )
