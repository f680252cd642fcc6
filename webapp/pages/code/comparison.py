"""Compares two code versions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.errors import Conflict, TrainyardError
from jobs.messages.code import (
    FileDifference,
)
from jobs.models import CodeVersion
from jobs.queries.code import code as queries
from webapp import code_reader
from webapp.http_errors import Unavailable
from webapp.pages.code.code_lookup import version_address, version_of
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    crumbs,
    page,
    render_page,
    url,
)
from webapp.template_context import Context

MOST_OTHERS = 100
"""Versions that the comparison offers."""


@dataclass(frozen=True)
class ComparisonPage(Context):
    """The differences between two code versions."""

    new: CodeVersion
    old: CodeVersion | None
    offered: list[CodeVersion]
    back: str
    crumbs: Crumbs
    equal: int = 0
    files: Sequence[FileDifference] = ()
    too_different: str = ""


@page
def compare(request: Request, code: str) -> HttpResponse:
    """Show the differences between a version and an earlier one, `?old=`, by default the one before it."""
    new_version = version_of(request, code)
    old_version = _version_before(request, new_version)
    context = ComparisonPage(
        new=new_version,
        old=old_version,
        offered=_offer_versions(new_version, old_version),
        back=version_address(new_version),
        crumbs=crumbs(("Code", url("code")), (str(new_version), version_address(new_version)), "Compare"),
    )
    if old_version is not None:
        context = _with_differences(context, old_version)
    return render_page(request, "code/compare.html", context)


def _with_differences(context: ComparisonPage, old: CodeVersion) -> ComparisonPage:
    pairs, equal = queries.different_files(old, context.new)
    try:
        comparison = code_reader.compare_files(pairs, f"{old.digest}:{context.new.digest}")
    except Unavailable:
        raise
    except TrainyardError as error:
        return replace(context, equal=equal, too_different=error.message)
    return replace(context, equal=equal, files=comparison.files)


def _offer_versions(new_version: CodeVersion, old: CodeVersion | None) -> list[CodeVersion]:
    """Return the versions to compare with. The present one is among them."""

    newest = list(queries.other_versions(new_version)[:MOST_OTHERS])
    return newest if old is None or old in newest else [*newest, old]


def _version_before(request: Request, version: CodeVersion) -> CodeVersion | None:
    if digest := request.GET.get("old"):
        return access.get_code(request.user, digest, version.project)
    try:
        return queries.default_comparison(version)
    except Conflict:
        return None


urls = [path("code/<slug:code>/compare", compare, name="code_compare")]
