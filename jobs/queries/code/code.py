"""Reads code versions and their files."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Count, QuerySet

from jobs import access
from jobs.answers.code.code import (
    CodeFileOut,
    CodeFilesOut,
    CodeSummaryOut,
    CodeTextOut,
    CodeVersionOut,
)
from jobs.errors import Conflict, NotFound
from jobs.messages.code import MAX_SHOWN_BYTES, CodeSearch
from jobs.models import CodeFile, CodeVersion, Project, Revision, User
from jobs.store import store

MOST_OFFERED = 100
"""Versions that a form offers."""


def versions_with_file_counts(
    user: User, project: Project | None = None, *, name: str = ""
) -> QuerySet[CodeVersion]:
    """Return the versions that `user` may see, with their file counts.

    Args:
        user: the reader.
        project: only its versions.
        name: only those with this name.
    """
    rows = access.visible_code(user).select_related("project", "created_by").defer("found_json")
    if project is not None:
        rows = rows.filter(project=project)
    if name:
        rows = rows.filter(name=name)
    return rows.annotate(file_count=Count("files"))


def newest_versions(project: Project, limit: int) -> QuerySet[CodeVersion]:
    """Return a project's newest versions with their findings."""
    return CodeVersion.objects.filter(project=project).order_by("-pk")[:limit]


def versions_of_same_name(version: CodeVersion) -> QuerySet[CodeVersion]:
    """Return a version's namesakes in its project, newest first, itself included."""
    rows = CodeVersion.objects.filter(project=version.project, name=version.name)
    return rows.select_related("created_by").defer("found_json").order_by("-pk")


def other_versions(version: CodeVersion) -> QuerySet[CodeVersion]:
    """Return the project's other versions, newest first."""
    rows = CodeVersion.objects.filter(project=version.project).exclude(pk=version.pk)
    return rows.select_related("project", "created_by").defer("found_json").order_by("-pk")


def files_of(version: CodeVersion) -> list[CodeFile]:
    """Return a version's files, sorted by path as Python sorts, which databases do not."""
    return sorted(version.files.select_related("artifact"), key=lambda file: file.path)


def choose_file(version: CodeVersion, files: Sequence[CodeFile], named: str | None) -> CodeFile:
    """Return a file by its path. Without one, choose the first entry's file, else the first Python file.

    Raises:
        NotFound: the version has no such file.
    """
    by_path = {file.path: file for file in files}
    if named is not None:
        if named not in by_path:
            raise NotFound(f"{version} has no file {named[:100]!r}.")
        return by_path[named]
    paths = [entry.path for entry in version.findings.entries]
    # Every version has a Python file.
    paths += [path for path in by_path if path.endswith(".py")]
    return next(by_path[path] for path in paths if path in by_path)


def default_comparison(version: CodeVersion) -> CodeVersion:
    """Return the version to compare with: the previous one with its name, else the previous, else the newest.

    Raises:
        Conflict: the project has no other version.
    """
    rows = other_versions(version)
    before = rows.filter(pk__lt=version.pk)
    other = before.filter(name=version.name).first() or before.first() or rows.first()
    if other is None:
        raise Conflict(f"{version.project.slug} has no other version of code to compare with.")
    return other


def version_of_draft(project: Project, digest: object) -> CodeVersion:
    """Return the version that an experiment's draft names, else the newest one.

    Raises:
        NotFound: the project has no code any more.
    """
    rows = CodeVersion.objects.filter(project=project).order_by("-pk")
    version = rows.filter(digest=str(digest)).first() or rows.first()
    if version is None:
        raise NotFound(f"{project.slug} has no code any more: upload it first.")
    return version


def last_dataset(project: Project, digest: str) -> str:
    """Return the data set of the newest experiment with a version of code or a namesake; empty for none."""
    names = project.code.filter(digest=digest).values("name") if digest else ()
    namesakes = list(project.code.filter(name__in=names).values_list("digest", flat=True))
    rows = Revision.objects.filter(
        experiment__project=project, spec_json__model__kind="code", spec_json__model__digest__in=namesakes
    )
    newest = rows.order_by("-pk").values_list("spec_json__data__dataset", flat=True).first()
    return str(newest or "")


def described_search(project: Project, digest: str, entry: str) -> CodeSearch | None:
    """Return the search that a version describes for an entry; None without one."""
    version = CodeVersion.objects.filter(project=project, digest=digest).first()
    return None if version is None else version.findings.search_for(entry.rpartition(":")[2])


def versions_to_choose(version: CodeVersion) -> list[CodeVersion]:
    """Return a form's choices: a project's newest versions and this one."""
    rows = CodeVersion.objects.filter(project=version.project).defer("found_json").order_by("-pk")
    newest = list(rows[:MOST_OFFERED])
    return newest if version in newest else [*newest, version]


class Pair(NamedTuple):
    """A file in two versions; None where it does not exist."""

    path: str
    old: CodeFile | None
    new: CodeFile | None


def different_files(old: CodeVersion, new: CodeVersion) -> tuple[list[Pair], int]:
    """Return the files that differ between two versions, and count the equal ones."""
    before = {file.path: file for file in files_of(old)}
    after = {file.path: file for file in files_of(new)}
    pairs = [Pair(path, before.get(path), after.get(path)) for path in sorted({*before, *after})]
    different = [pair for pair in pairs if _digest(pair.old) != _digest(pair.new)]
    return different, len(pairs) - len(different)


def _digest(file: CodeFile | None) -> str | None:
    return None if file is None else file.artifact_id


def version_summary(version: CodeVersion) -> CodeSummaryOut:
    """Return a version's API representation in lists."""
    return CodeSummaryOut(**_version_fields(version))


def version_out(version: CodeVersion) -> CodeVersionOut:
    """Return a version's API representation."""
    findings = version.findings
    return CodeVersionOut(
        **_version_fields(version),
        python=findings.python,
        found=findings.entries,
        unreadable=findings.problems,
        notices=findings.notices,
        runs=findings.runs,
        search=findings.search,
        searches=findings.searches,
        requirements=findings.packages,
        left_out=findings.left_out,
    )


def _version_fields(version: CodeVersion) -> dict[str, object]:
    # A list counts them with its own query.
    count = getattr(version, "file_count", None)
    return {
        "digest": version.digest,
        "name": version.name,
        "project": version.project.slug,
        "entries": version.entry_names,
        "problems": version.problem_count,
        "packages": version.has_packages,
        "files": version.files.count() if count is None else count,
        "bytes": version.bytes,
        "created_by": version.created_by.username,
        "created": version.created,
    }


def files_out(version: CodeVersion) -> CodeFilesOut:
    """Return the files' API representation."""
    return CodeFilesOut(items=[CodeFileOut(**_file_out(file)) for file in files_of(version)])


def text_out(version: CodeVersion, named: str | None) -> CodeTextOut:
    """Return a file with its text. Without a name, it is the version page's first file.

    Raises:
        NotFound: the version has no such file.
        Conflict: it is not text, or larger than is shown.
    """
    file = choose_file(version, files_of(version), named)
    path = file.path
    if file.lines is None:
        raise Conflict(
            f"{path!r} is not text. Its bytes are the artifact {file.artifact_id}.", code="not_text"
        )
    if file.artifact.bytes > MAX_SHOWN_BYTES:
        message = f"{path!r} has more than {MAX_SHOWN_BYTES:,} bytes: get the artifact {file.artifact_id}."
        raise Conflict(message, code="too_large_to_show")
    text = store().path(file.artifact_id).read_bytes().decode("utf-8-sig")
    return CodeTextOut(**_file_out(file), text=text)


def _file_out(file: CodeFile) -> dict[str, object]:
    return {
        "path": file.path,
        "bytes": file.artifact.bytes,
        "lines": file.lines,
        "digest": file.artifact_id,
    }
