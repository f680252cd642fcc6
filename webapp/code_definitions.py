"""Makes a version of code that only defines, from one whose files also load data and train."""

from jobs import access
from jobs.actions.code import code as actions
from jobs.actions.code.code import Created
from jobs.errors import Conflict
from jobs.models import CodeVersion, User
from jobs.queries.code.code import files_of
from jobs.store import store
from webapp import code_reader


def keep_definitions(version: CodeVersion, *, by: User) -> Created:
    """Store a version with the definitions of this one. It keeps the searches that the other lines describe.

    Raises:
        Forbidden: `by` may not write in the project.
        Conflict: the version has no other lines.
        QuotaReached: the files do not fit into the project's disk quota.
    """
    access.require(by, version.project, access.Action.WRITE)
    if not version.findings.runs:
        raise Conflict(f"{version} has definitions only.", code="definitions_only")
    received = [(store().path(file.artifact_id), file.path) for file in files_of(version)]
    with code_reader.check_files(received, "file", definitions_only=True) as (files, contents):
        described = {"search": version.findings.search, "searches": version.findings.searches}
        found = contents.model_copy(update=described)
        stored = actions.store_files(version.project, files, found)
    return actions.create(version.project, name=version.name, code=stored, by=by)
