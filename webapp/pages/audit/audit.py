"""Shows the audit log with filters, verifies its hash chain, and exports it as CSV."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.models import AuditEvent
from jobs.queries import paging
from jobs.queries.audit import audit as query
from jobs.queries.audit import audit_verification
from jobs.queries.audit.audit_verification import Verification
from jobs.queries.paging import Page
from jobs.queries.search import exports
from webapp.downloads import stream_download
from webapp.pages.shortcuts import Request, page, render_page
from webapp.template_context import Context
from webapp.templatetags.audit_words import words_by_subject

FILTERS = ("actor", "action", "target")
COLUMNS = ("id", "time", "actor", "action", "target", "project", "detail", "previous_hash", "hash", "number")


@dataclass(frozen=True)
class AuditPage(Context):
    """The audit events, newest first, and the filters of the list.

    Attributes:
        actions: the actions with their words, by subject.
    """

    page: Page[AuditEvent]
    filters: dict[str, str]
    is_filtered: bool
    actions: dict[str, dict[str, str]]


@page
def audit(request: Request) -> HttpResponse:
    """List the audit events, newest first."""
    filters = {name: request.GET.get(name, "").strip() for name in FILTERS}
    rows = query.filter_events(query.visible_events(request.user), **filters)
    context = AuditPage(
        page=paging.page_of(rows, cursor=request.GET.get("cursor")),
        filters=filters,
        is_filtered=any(filters.values()),
        actions=words_by_subject(),
    )
    return render_page(request, "audit/list.html", context)


@dataclass(frozen=True)
class VerificationPage(Context):
    """The verification result for the hash chain."""

    verification: Verification


@page
def audit_verify(request: Request) -> HttpResponse:
    """Verify the whole hash chain."""
    access.require_admin(request.user)
    return render_page(
        request, "audit/verify.html", VerificationPage(verification=audit_verification.verify_chain())
    )


@page
def audit_export(request: Request) -> HttpResponse:
    """Send the filtered log as CSV, in blocks."""
    filters = {name: request.GET.get(name, "").strip() for name in FILTERS}
    rows = query.filter_events(query.visible_events(request.user), **filters).order_by("pk")
    lines = exports.csv_blocks(_csv_rows(rows.iterator(chunk_size=2000)))
    return stream_download(request, lines, name="audit.csv", kind="text/csv")  # type: ignore[return-value] # unchanged


def _csv_rows(events: Iterator[AuditEvent]) -> Iterator[Sequence[Any]]:
    yield COLUMNS
    for event in events:
        actor = event.actor.username if event.actor else ""
        project = event.detail.get("project", "")
        detail = json.dumps(event.detail, sort_keys=True)
        row = (event.pk, event.time.isoformat(), actor, event.action, event.target, project, detail)
        yield (*row, event.previous_hash, event.hash, event.number)


urls = [
    path("audit", audit, name="audit"),
    path("audit/verify", audit_verify, name="audit_verify"),
    path("audit/export.csv", audit_export, name="audit_export"),
]
