"""Reads how many bytes projects use, by file kind and for events, and how many a collection would free."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from django.db.models import Count, F, Max, Q, QuerySet, Sum

from jobs import access
from jobs.answers.storage.storage import FilesOut, ProjectStorageOut, StorageOut
from jobs.models import (
    Artifact,
    AuditEvent,
    Checkpoint,
    CodeFile,
    DatasetVersion,
    FurtherFile,
    Job,
    JobArtifact,
    ModelVersion,
    Project,
    User,
)
from jobs.queries.storage import references

BUNDLED = "Bundled data"
type ProjectFilter = Callable[[str], Q]
"""Builds the condition that a column names a project that is shown."""


class _Use(NamedTuple):
    """A project's reference to a file."""

    project: int | None
    digest: str
    bytes: int
    deletion: int | None


@dataclass
class _Sizes:
    """One project's files by kind. A file counts for the first kind that refers to it."""

    kinds: dict[str, tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))
    seen: set[str] = field(default_factory=set)
    events: int = 0

    def count(self, kind: str, use: _Use) -> None:
        if use.digest not in self.seen:
            self.seen.add(use.digest)
            self.add(kind, 1, use.bytes)

    def add(self, kind: str, files: int, size: int) -> None:
        before = self.kinds[kind]
        self.kinds[kind] = (before[0] + files, before[1] + size)

    def files_out(self, kind: str) -> FilesOut:
        files, size = self.kinds[kind]
        return FilesOut(files=files, bytes=size)


def storage_of_user(user: User) -> StorageOut:
    """Return how much the projects that `user` may see store. Administrators also get totals."""
    visible = {project.pk: project for project in access.projects_of(user)}
    sizes = _project_sizes(list(visible), bundled=user.is_superuser)
    rows = [_storage_row(visible[key], sizes[key]) for key in visible]
    if not user.is_superuser:
        return StorageOut(projects=_largest_first(rows), stored=None, unreferenced=None, collected=None)
    rows.append(_storage_row(None, sizes[None]))
    return StorageOut(
        projects=_largest_first(rows),
        stored=_files_out(Artifact.objects.all()),
        unreferenced=_files_out(references.unreferenced_artifacts()),
        collected=AuditEvent.objects.filter(action="storage.collect").aggregate(last=Max("time"))["last"],
    )


def _project_sizes(projects: list[int], *, bundled: bool) -> dict[int | None, _Sizes]:
    """Return the projects' files, and those of the bundled data, which have no project."""
    sizes: dict[int | None, _Sizes] = defaultdict(_Sizes)
    in_projects = partial(_in_projects, projects, bundled)
    uses = list(_read_all_uses(in_projects))
    for kind, use in uses:
        if use.deletion is None:
            sizes[use.project].count(kind, use)
    for _, use in uses:
        if use.deletion is not None:
            sizes[use.project].count("deleted", use)
    checkpoints = Checkpoint.objects.kept().filter(in_projects("job__project"))
    rows = checkpoints.order_by().values_list("job__project", "job__deletion")
    for project, deletion, files, size in rows.annotate(Count("pk"), Sum("bytes")):
        sizes[project].add("checkpoints" if deletion is None else "deleted", files, size)
    jobs = Job.everything.filter(in_projects("project")).order_by().values_list("project")
    for project, size in jobs.annotate(total=Sum("event_bytes")):
        sizes[project].events = size
    return sizes


def _in_projects(projects: list[int], bundled: bool, column: str) -> Q:
    """Build the condition that a column has one of the projects, or null for bundled data."""
    is_in = Q(**{f"{column}__in": projects})
    return is_in | Q(**{f"{column}__isnull": True}) if bundled else is_in


def _read_all_uses(in_projects: ProjectFilter) -> Iterator[tuple[str, _Use]]:
    data = DatasetVersion.objects
    for column in ("upload", "table"):
        rows = data.filter(**{f"{column}__isnull": False})
        yield from _read_uses("datasets", rows, in_projects, "dataset__project", column, "dataset__deletion")
    further = FurtherFile.objects.all()
    project, deletion = "version__dataset__project", "version__dataset__deletion"
    yield from _read_uses("datasets", further, in_projects, project, "artifact", deletion)
    code = CodeFile.objects.all()
    yield from _read_uses("code", code, in_projects, "version__project", "artifact", "version__deletion")
    versions = ModelVersion.everything.all()
    yield from _read_uses("versions", versions, in_projects, "model__project", "artifact", "deletion")
    yield from _read_uses(
        "outputs", JobArtifact.objects.all(), in_projects, "job__project", "artifact", "job__deletion"
    )


def _read_uses(
    kind: str,
    rows: QuerySet[DatasetVersion]
    | QuerySet[FurtherFile]
    | QuerySet[CodeFile]
    | QuerySet[ModelVersion]
    | QuerySet[JobArtifact],
    in_projects: ProjectFilter,
    project: str,
    artifact: str,
    deletion: str,
) -> Iterator[tuple[str, _Use]]:
    columns = (F(project), F(artifact), F(f"{artifact}__bytes"), F(deletion))
    uses = rows.filter(in_projects(project)).order_by().values_list(*columns).distinct()
    for values in uses.iterator(chunk_size=2000):
        yield kind, _Use(*values)


def _storage_row(project: Project | None, sizes: _Sizes) -> ProjectStorageOut:
    return ProjectStorageOut(
        project=project.slug if project else None,
        name=project.name if project else BUNDLED,
        datasets=sizes.files_out("datasets"),
        code=sizes.files_out("code"),
        versions=sizes.files_out("versions"),
        outputs=sizes.files_out("outputs"),
        checkpoints=sizes.files_out("checkpoints"),
        deleted=sizes.files_out("deleted"),
        events=sizes.events,
        bytes=sum(size for _, size in sizes.kinds.values()) + sizes.events,
    )


def _largest_first(rows: list[ProjectStorageOut]) -> list[ProjectStorageOut]:
    return sorted(rows, key=lambda row: (-row.bytes, row.name))


def _files_out(rows: QuerySet[Artifact]) -> FilesOut:
    sums = rows.aggregate(files=Count("pk"), bytes=Sum("bytes"))
    return FilesOut(files=sums["files"], bytes=sums["bytes"] or 0)
