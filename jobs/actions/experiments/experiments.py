"""Creates, changes and submits experiments, their drafts and their frozen revisions."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F
from pydantic import ValidationError

from jobs import access, clock
from jobs.actions.audit import audit
from jobs.actions.runs import submit as submitting
from jobs.actions.storage import deletions
from jobs.errors import BadInput, BadSpec, Conflict, StaleState
from jobs.models import Experiment, Job, Project, Revision, User
from jobs.queries.experiments import plan
from jobs.spec.checks import sizes as spec_sizes
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem

MAX_TAGS, MAX_TAG_LENGTH = 20, 50
WRITE = access.Action.WRITE


def create(
    project: Project,
    *,
    name: str,
    by: User,
    spec: Any = None,
    draft: Any = None,
    tags: Sequence[str] = (),
    notes: str = "",
) -> Experiment:
    """Create an experiment from a complete `spec`, or from a `draft`, which is stored unchecked.

    Raises:
        Forbidden: `by` may not write in the project.
        BadSpec: `spec` is invalid; has a problem for each invalid field.
    """
    access.require(by, project, WRITE)
    _check_draft(draft)
    frozen = plan.require_valid_spec(project, spec, by=by) if draft is None else None
    with transaction.atomic():
        deletions.require_present(project)
        experiment = Experiment.objects.create(
            project=project,
            name=_checked_name(name),
            tags=_checked_tags(tags),
            notes=notes,
            draft=draft,
            created_by=by,
        )
        if frozen is not None:
            freeze(experiment, frozen, by=by)
        audit.record("experiment.create", experiment, by=by, project=project, name=name)
    return experiment


def change(
    experiment: Experiment,
    *,
    by: User,
    seen: int | None = None,
    spec: Any = None,
    draft: Any = None,
    name: str | None = None,
    tags: Sequence[str] | None = None,
    notes: str | None = None,
) -> Experiment:
    """Change the given fields. A `spec` becomes a revision if it differs from the last one.

    Args:
        experiment: any instance of the row; it is refreshed.
        by: the acting user.
        seen: the version that the caller read; None accepts any.
        spec: a complete spec. It replaces the draft.
        draft: an unfinished spec, which is stored unchecked.
        name: up to 200 characters.
        tags: all tags of the experiment.
        notes: free text.

    Raises:
        Forbidden: `by` may not write in the project.
        BadSpec: `spec` is invalid; has a problem for each invalid field.
        StaleState: another user has changed the experiment since `seen`. Nothing was changed.
    """
    access.require(by, experiment.project, WRITE)
    _check_draft(draft)
    frozen = plan.require_valid_spec(experiment.project, spec, by=by) if spec is not None else None
    fields = _checked_fields(name, tags, notes)
    if spec is not None or draft is not None:
        # A draft that equals the newest revision is not kept: pages would mark the experiment as a draft.
        fields["draft"] = None if _is_newest(experiment, draft) else draft
    with transaction.atomic():
        _update_row(experiment, seen=seen, **fields)
        revision = freeze(experiment, frozen, by=by) if frozen is not None else None
        audit.record(
            "experiment.change",
            experiment,
            by=by,
            project=experiment.project,
            fields=sorted(fields),
            revision=revision.number if revision is not None else None,
        )
    return experiment


def _check_draft(draft: Any) -> None:
    """Refuse a draft that is longer than any spec may be: pages show it as a whole."""
    if draft is not None and (too_long := spec_sizes.text_problem(draft)) is not None:
        raise BadSpec(too_long.message, [Problem(plan.PREFIX, too_long.message)])


def _checked_fields(name: str | None, tags: Sequence[str] | None, notes: str | None) -> dict[str, Any]:
    """Return the fields that are not None, checked."""
    fields: dict[str, Any] = {}
    if name is not None:
        fields["name"] = _checked_name(name)
    if tags is not None:
        fields["tags"] = _checked_tags(tags)
    if notes is not None:
        fields["notes"] = notes
    return fields


def _is_newest(experiment: Experiment, draft: Any) -> bool:
    """Return whether a draft equals the newest revision."""
    newest = experiment.revisions.order_by("-number").first()
    if newest is None or draft is None:
        return False
    try:
        return _is_same(newest, ExperimentSpec.model_validate(draft))
    except ValidationError:
        return False


def _is_same(revision: Revision, spec: ExperimentSpec) -> bool:
    """Return whether a spec has a revision's values.

    Digests alone do not decide: a browser writes 0.0 as 0.
    """
    return revision.digest == spec.digest() or revision.spec.to_json() == spec.to_json()


def _update_row(experiment: Experiment, *, seen: int | None, **fields: Any) -> None:
    """Update the row by compare-and-set on its version, so that concurrent changes are refused."""
    rows = Experiment.objects.filter(pk=experiment.pk)
    if seen is not None:
        rows = rows.filter(version=seen)
    if not rows.update(version=F("version") + 1, updated=clock.now(), **fields):
        raise StaleState(f"{experiment.name} was changed by another user in the meantime: reload it")
    experiment.refresh_from_db()


def freeze(experiment: Experiment, spec: ExperimentSpec, *, by: User, reason: str = "") -> Revision:
    """Return the revision with `spec`: the newest one if it is the same, else a new one."""
    # Locked, so that revisions are numbered one at a time.
    Experiment.objects.select_for_update(no_key=True).get(pk=experiment.pk)
    newest = experiment.revisions.order_by("-number").first()
    if newest is not None and _is_same(newest, spec):
        return newest
    return Revision.objects.create(
        experiment=experiment,
        number=newest.number + 1 if newest is not None else 1,
        spec_json=spec.to_json(),
        digest=spec.digest(),
        reason=reason,
        created_by=by,
    )


def submit(experiment: Experiment, *, by: User, registers: bool = True) -> Job:
    """Queue the experiment: its draft, frozen, if it has one, else its newest revision.

    Args:
        experiment: the experiment.
        by: the acting user.
        registers: whether the versions that the spec names are registered.

    Raises:
        BadSpec: the draft is invalid, or the data are not ready.
        Conflict: the experiment is archived.
    """
    access.require(by, experiment.project, WRITE)
    if experiment.archived:
        raise Conflict(f"{experiment.name} is archived: unarchive it first")
    with transaction.atomic():
        # Locked here, since the change writes to the audit log, which is locked last.
        deletions.require_present(experiment.project)
        if experiment.draft is not None:
            change(experiment, spec=experiment.draft, by=by)
        newest = experiment.revisions.order_by("-number").select_related("experiment__project").first()
        if newest is None:
            raise BadInput(f"{experiment.name} has no spec yet", [Problem("/spec", "nothing to submit")])
        # A revision that older rules accepted may be invalid now, and its data may have changed.
        plan.require_valid_spec(experiment.project, newest.spec_json, by=by)
        return submitting.submit(newest, by=by, registers=registers)


def submit_spec(
    project: Project,
    experiment: Experiment | None,
    *,
    name: str,
    spec: Any,
    tags: Sequence[str],
    notes: str,
    by: User,
    seen: int | None = None,
    registers: bool = True,
) -> Job:
    """Save a spec in a new experiment or as the next revision, and queue it, in one transaction.

    See `create`, `change` and `submit`.

    Raises:
        BadSpec: the spec is invalid, or the data are not ready. Nothing was saved.
        StaleState: another user has changed the experiment since `seen`.
    """
    with transaction.atomic():
        # As in `submit`.
        deletions.require_present(project)
        if experiment is None:
            experiment = create(project, name=name, spec=spec, tags=tags, notes=notes, by=by)
        else:
            change(experiment, name=name, spec=spec, tags=tags, notes=notes, by=by, seen=seen)
        return submit(experiment, by=by, registers=registers)


def clone(experiment: Experiment, *, by: User, name: str = "", project: Project | None = None) -> Experiment:
    """Copy an experiment with its draft and newest spec, but without jobs."""
    access.require(by, experiment.project, access.Action.VIEW)
    home = project or experiment.project
    access.require(by, home, WRITE)
    newest = experiment.revisions.order_by("-number").first()
    with transaction.atomic():
        deletions.require_present(home)
        copy = Experiment.objects.create(
            project=home,
            name=_checked_name(name or f"{experiment.name[:190]} (copy)"),
            tags=experiment.tags,
            notes=experiment.notes,
            draft=experiment.draft,
            created_by=by,
        )
        if newest is not None:
            freeze(copy, newest.spec, by=by)
        audit.record("experiment.clone", copy, by=by, project=home, source=experiment.pk)
    return copy


def change_all(
    experiment: Experiment, *, by: User, seen: int | None, archived: bool | None, **changes: Any
) -> Experiment:
    """Change an experiment and archive or unarchive it, all or nothing. See `change` and `archive`."""
    with transaction.atomic():
        if any(value is not None for value in changes.values()):
            change(experiment, by=by, seen=seen, **changes)
            seen = None  # the change has another version
        if archived is not None:
            archive(experiment, by=by, seen=seen, archived=archived)
    return experiment


def archive(
    experiment: Experiment, *, by: User, seen: int | None = None, archived: bool = True
) -> Experiment:
    """Archive an experiment, which hides it from lists, or unarchive it."""
    access.require(by, experiment.project, WRITE)
    with transaction.atomic():
        _update_row(experiment, seen=seen, archived=archived)
        verb = "archive" if archived else "unarchive"
        audit.record(f"experiment.{verb}", experiment, by=by, project=experiment.project)
    return experiment


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= 200:
        raise BadInput("a name has 1 to 200 characters", [Problem("/name", "give 1 to 200 characters")])
    return name


def _checked_tags(tags: Sequence[str]) -> list[str]:
    clean = list(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
    if len(clean) > MAX_TAGS or any(len(tag) > MAX_TAG_LENGTH or "," in tag for tag in clean):
        message = f"at most {MAX_TAGS} tags of up to {MAX_TAG_LENGTH} characters, without commas"
        raise BadInput(message, [Problem("/tags", message)])
    return clean
