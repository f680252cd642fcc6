"""Reads experiments: lists with states and best scores, revisions and their differences."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, F, Max, Min, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from jobs import access
from jobs.access import Action
from jobs.answers.experiments.experiments import BestOut, ExperimentOut, RevisionOut
from jobs.models import AuditEvent, Experiment, Job, Project, Revision, Trial, User
from jobs.queries.search.outcomes import objective_of

NEWEST_NAMES = 1000
"""How many names a proposed name must differ from."""
SORTS = {"name": "name", "created": "created", "updated": "updated", "state": "last_state", "id": "pk"}


def experiments_with_state(
    user: User,
    *,
    project: Project | None = None,
    archived: bool | None = False,
    text: str = "",
    tag: str = "",
    state: str = "",
    author: str = "",
) -> QuerySet[Experiment]:
    """Return the experiments that `user` may see, with last job state and revision number.

    Args:
        user: the reader.
        project: only this project's experiments.
        archived: True for archived ones only, False for the others, None for all.
        text: text in the name or the notes.
        tag: a whole tag.
        state: the last job's state; `none` if there is no job.
        author: its creator's user name.
    """
    roots = Job.objects.roots().filter(experiment=OuterRef("pk")).order_by("-pk")
    rows = access.visible_experiments(user).select_related("project", "created_by")
    rows = rows.annotate(
        last_job=Subquery(roots.values("pk")[:1]),
        # Pages of a list are ordered by columns that are never null.
        last_state=Coalesce(Subquery(roots.values("state")[:1]), Value("")),
        revision_number=Coalesce(Max("revisions__number"), 0),
    )
    if project is not None:
        rows = rows.filter(project=project)
    if archived is not None:
        rows = rows.filter(archived=archived)
    if text:
        rows = rows.filter(name__icontains=text) | rows.filter(notes__icontains=text)
    if tag:
        # SQLite cannot query for an item of a JSON list.
        tagged = [pk for pk, tags in rows.values_list("pk", "tags") if tag in tags]
        rows = rows.filter(pk__in=tagged)
    if state:
        rows = rows.filter(last_state="" if state == "none" else state)
    if author:
        rows = rows.filter(created_by__username=author)
    return rows


def best_scores(experiments: Iterable[Experiment]) -> dict[int, BestOut]:
    """Return the best score in each experiment's newest search that has one, in two queries."""
    scored = (
        Trial.objects.scored()
        .filter(job__experiment__in=[experiment.pk for experiment in experiments])
        .values("job")
        .annotate(lowest=Min("score"), highest=Max("score"))
    )
    scores = {row["job"]: row for row in scored}
    best: dict[int, BestOut] = {}
    # In ascending order, so that a newer search replaces an older one of the same experiment.
    for job in Job.objects.filter(pk__in=scores).select_related("revision").order_by("pk"):
        objective = objective_of(job)
        score = scores[job.pk]["highest" if objective.direction == "max" else "lowest"]
        if job.experiment_id is not None:
            best[job.experiment_id] = BestOut(
                job=job.pk, metric=objective.metric, direction=objective.direction, score=score
            )
    return best


def experiments_out(experiments: Sequence[Experiment]) -> list[ExperimentOut]:
    """Return the experiments' API representation, with one query for each kind of related row."""
    newer = Revision.objects.filter(experiment=OuterRef("experiment"), number__gt=OuterRef("number"))
    newest = Revision.objects.filter(~Exists(newer), experiment__in=experiments)
    revision_of = {revision.experiment_id: revision for revision in newest}
    # In ascending order, so that the newest job of each experiment remains.
    roots = Job.objects.roots().filter(experiment__in=experiments).only("experiment", "state").order_by("pk")
    job_of = {job.experiment_id: job for job in roots}
    best = best_scores(experiments)
    return [
        _experiment_out(
            experiment, revision_of.get(experiment.pk), job_of.get(experiment.pk), best.get(experiment.pk)
        )
        for experiment in experiments
    ]


def experiment_out(experiment: Experiment) -> ExperimentOut:
    """Return an experiment's API representation."""
    return experiments_out([experiment])[0]


def _experiment_out(
    experiment: Experiment, newest: Revision | None, job: Job | None, best: BestOut | None
) -> ExperimentOut:
    return ExperimentOut(
        id=experiment.pk,
        project=experiment.project.slug,
        name=experiment.name,
        tags=experiment.tags,
        notes=experiment.notes,
        archived=experiment.archived,
        version=experiment.version,
        revision=newest.number if newest is not None else None,
        digest=newest.digest if newest is not None else None,
        spec=newest.spec_json if newest is not None else None,
        draft=experiment.draft,
        last_job=job.pk if job is not None else None,
        state=job.state if job is not None else None,
        best=best,
        created_by=experiment.created_by.username,
        created=experiment.created,
        updated=experiment.updated,
    )


def revision_out(revision: Revision) -> RevisionOut:
    """Return a revision's API representation."""
    return RevisionOut(
        number=revision.number,
        digest=revision.digest,
        spec=revision.spec_json,
        reason=revision.reason,
        created_by=revision.created_by.username,
        created=revision.created,
    )


def newest_names(project: Project) -> list[str]:
    """Name a project's newest experiments, with deleted ones, which may be restored."""
    rows = Experiment.everything.filter(project=project).order_by("-pk")
    return list(rows.values_list("name", flat=True)[:NEWEST_NAMES])


def tags_in(user: User, project: Project) -> list[str]:
    """List the tags in use in a project."""
    rows = access.visible_experiments(user).filter(project=project).values_list("tags", flat=True)
    return sorted({tag for tags in rows for tag in tags})


def authors_in(user: User, project: Project) -> list[str]:
    """List the user names that created experiments in a project."""
    rows = access.visible_experiments(user).filter(project=project)
    return sorted(set(rows.values_list("created_by__username", flat=True)))


def root_jobs(experiment: Experiment) -> QuerySet[Job]:
    """Return an experiment's root jobs, newest first, each with its trial count."""
    rows = experiment.jobs.roots().select_related("revision", "created_by")
    return rows.annotate(trial_count=Count("trials")).order_by("-pk")


def best_trials(experiment: Experiment, limit: int = 5) -> list[Trial]:
    """Return the best trials among all jobs with the newest search's metric."""
    newest = next((job for job in root_jobs(experiment) if job.revision and job.revision.spec.search), None)
    if newest is None:
        return []
    objective = objective_of(newest)
    order = F("score").desc() if objective.direction == "max" else F("score").asc()
    rows = Trial.objects.scored().filter(
        job__experiment=experiment,
        job__revision__spec_json__search__objective__metric=objective.metric,
    )
    return list(rows.select_related("job", "job__revision").order_by(order, "pk")[:limit])


@dataclass(frozen=True)
class Difference:
    """A value that differs between two specs; None on the side that lacks it."""

    path: str
    before: Any
    after: Any

    @property
    def kind(self) -> str:
        """Return the kind of change: added, removed or changed."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True)
class RevisionWithChanges:
    """A revision and its differences to the previous one."""

    revision: Revision
    changes: list[Difference]

    @property
    def text(self) -> str:
        """Return the spec as JSON text."""
        return json.dumps(self.revision.spec_json, indent=2)


def last_change(experiment: Experiment) -> AuditEvent | None:
    """Return the audit row for an experiment's newest change."""
    rows = AuditEvent.objects.filter(target=f"experiment:{experiment.pk}", action__startswith="experiment.")
    return rows.select_related("actor").order_by("-pk").first()


def revisions_with_differences(experiment: Experiment) -> list[RevisionWithChanges]:
    """Return all revisions, newest first, each with its differences to the previous one."""
    rows = list(experiment.revisions.select_related("created_by").order_by("number"))
    pairs = zip([None, *rows], rows, strict=False)
    return [
        RevisionWithChanges(
            row, spec_differences(before.spec_json, row.spec_json) if before is not None else []
        )
        for before, row in pairs
    ][::-1]


def spec_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """List two specs' differences by dotted path. Rows in a search space are identified by name."""
    flat_before, flat_after = dict(_flatten_spec(before)), dict(_flatten_spec(after))
    paths = list(dict.fromkeys([*flat_before, *flat_after]))
    return [
        Difference(path, flat_before.get(path), flat_after.get(path))
        for path in paths
        if flat_before.get(path) != flat_after.get(path)
    ]


def _flatten_spec(value: Any, path: str = "") -> Iterable[tuple[str, Any]]:
    """Yield each leaf in a spec: its dotted path and its value."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten_spec(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        for i, item in enumerate(value):
            yield from _flatten_spec(item, f"{path}[{item.get('name', i)}]")
    else:
        yield path, value


def editable_experiments(user: User, names: Sequence[str]) -> QuerySet[Experiment]:
    """Return the experiments that a user may edit and whose names contain all of `names`, newest first."""
    rows = Experiment.objects.filter(project__in=access.projects_of(user, Action.WRITE), archived=False)
    for name in names:
        rows = rows.filter(name__icontains=name)
    return rows.select_related("project").order_by("-pk")
