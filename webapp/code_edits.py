"""Makes a version of code from another one with a different text in one file."""

from jobs import access
from jobs.actions.code import code as actions
from jobs.actions.code.code import Created
from jobs.errors import Conflict
from jobs.messages.code import MAX_SHOWN_BYTES
from jobs.models import CodeFile, CodeVersion, User
from jobs.queries.code.code import files_of
from jobs.store import store
from webapp import code_reader
from webapp.uploads import text_of_lines, written_code


def is_editable(file: CodeFile) -> bool:
    """Return whether a page can show a file's whole text for editing. A notebook is JSON."""
    return (
        file.lines is not None and file.artifact.bytes <= MAX_SHOWN_BYTES and not file.path.endswith(".ipynb")
    )


def text_of(file: CodeFile) -> str:
    """Return a file's text.

    Raises:
        Conflict: it is no text, too large, or a notebook.
    """
    if not is_editable(file):
        raise Conflict(f"{file.path} cannot be edited here: send it as a file.", code="not_editable")
    return store().path(file.artifact_id).read_bytes().decode("utf-8-sig", "replace")


def store_edited(version: CodeVersion, file: CodeFile, text: str, *, name: str, by: User) -> Created:
    """Store a version with the files of this one, of which one has another text.

    Args:
        version: where the other files come from.
        file: one of its files.
        text: as a form has sent it.
        name: of the new version.
        by: the acting user.

    Raises:
        Forbidden: `by` may not write in the project.
        BadInput: the name is not usable, or a file is refused.
        Conflict: the file cannot be edited.
        QuotaReached: the files do not fit into the project's disk quota.
    """
    access.require(by, version.project, access.Action.WRITE)
    text_of(file)
    others = [(store().path(each.artifact_id), each.path) for each in files_of(version) if each != file]
    with (
        written_code([(file.path, text_of_lines(text))], "text") as sent,
        code_reader.check_files([*others, *sent.files], sent.field) as (files, contents),
    ):
        stored = actions.store_files(version.project, files, contents)
    return actions.create(version.project, name=actions.check_name(name), code=stored, by=by)
