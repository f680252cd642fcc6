"""Edits a file of a code version, which makes a new version."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.errors import BadInput, TrainyardError
from jobs.models import CodeFile, CodeVersion
from jobs.queries.code import code as queries
from jobs.spec.problems import Problem
from webapp.code_edits import store_edited, text_of
from webapp.pages.code.code_lookup import version_address, version_of
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    form_page,
    notify,
    problems_of,
    redirect,
    render_page,
    url,
)
from webapp.template_context import Context


@dataclass(frozen=True)
class EditPage(Context):
    """The text of one file, and the number of those that are kept.

    Attributes:
        other_files: the number of files that stay as they are.
        back: the address of the version's page.
        upload: the address of the form for files.
    """

    version: CodeVersion
    file: CodeFile
    text: str
    name: str
    other_files: int
    back: str
    upload: str
    problems: tuple[Problem, ...]
    wrong: dict[str, str]
    crumbs: Crumbs


@form_page
def edit(request: Request, code: str) -> HttpResponse:
    """Show a file's text in an editor; store the returned text as a new version."""
    version = version_of(request, code)
    access.require(request.user, version.project, Action.WRITE)
    files = queries.files_of(version)
    file = queries.choose_file(version, files, request.GET.get("file"))
    if request.method != "POST":
        return _show_form(request, version, file, len(files) - 1)
    try:
        text, name = request.POST.get("text", ""), request.POST.get("name", "").strip()
        if not text.strip():
            raise BadInput("The file has no text.", [Problem("/text", "write the code")])
        stored, is_new = store_edited(version, file, text, name=name, by=request.user)
    except TrainyardError as error:
        return _show_form(request, version, file, len(files) - 1, error)
    if is_new:
        notify(request, f"{stored} is stored.")
    else:
        notify(request, f"These files are already there, as {stored}.", level="info")
    return redirect(version_address(stored, file=file.path))


def _show_form(
    request: Request,
    version: CodeVersion,
    file: CodeFile,
    other_files: int,
    error: TrainyardError | None = None,
) -> HttpResponse:
    back = version_address(version, file=file.path)
    problems = () if error is None else problems_of(error)
    context = EditPage(
        version=version,
        file=file,
        text=text_of(file) if error is None else request.POST.get("text", ""),
        name=version.name if error is None else request.POST.get("name", ""),
        other_files=other_files,
        back=back,
        upload=url("code_new", name=version.name, project=version.project.slug),
        problems=problems,
        wrong={problem.pointer: problem.message for problem in problems},
        crumbs=crumbs(("Code", url("code")), (str(version), back), "New version"),
    )
    return render_page(request, "code/edit.html", context, status=200 if error is None else error.status)


urls = [path("code/<slug:code>/edit", edit, name="code_edit")]
