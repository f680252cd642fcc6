"""Shows the audit log with filters, verifies its hash chain, and exports it as CSV."""

import csv
import json
from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

from jobs import access
from jobs.actions import audit as chain
from jobs.models import AuditEvent
from jobs.queries import audit as query
from jobs.queries import paging
from webapp.pages.shortcuts import Request, page, render

FILTERS = ("actor", "action", "target")
COLUMNS = ("id", "time", "actor", "action", "target", "project", "detail", "previous_hash", "hash")
# A spreadsheet evaluates a cell that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@page
def audit(request: Request) -> HttpResponse:
    """List the audit events, newest first."""
    wanted = {name: request.GET.get(name, "").strip() for name in FILTERS}
    rows = query.filtered(query.visible_events(request.user), **wanted)
    context = {"page": paging.page_of(rows, cursor=request.GET.get("cursor")), "wanted": wanted}
    return render(request, "audit/list.html", context)


@page
def audit_verify(request: Request) -> HttpResponse:
    """Verify the whole hash chain."""
    access.require_admin(request.user)
    context = {"broken": chain.verify(), "count": query.count()}
    return render(request, "audit/verify.html", context)


@page
def audit_export(request: Request) -> HttpResponse:
    """Send the filtered log as CSV, row by row."""
    wanted = {name: request.GET.get(name, "").strip() for name in FILTERS}
    rows = query.filtered(query.visible_events(request.user), **wanted).order_by("pk")
    response = StreamingHttpResponse(_lines(rows.iterator(chunk_size=2000)), content_type="text/csv")
    response["Content-Disposition"] = 'attachment; filename="audit.csv"'
    return response  # type: ignore[return-value] # the decorator returns any response unchanged


def _lines(events: Iterator[AuditEvent]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    for event in events:
        actor = event.actor.username if event.actor else ""
        project = event.detail.get("project", "")
        detail = json.dumps(event.detail, sort_keys=True)
        row: tuple[Any, ...] = (event.pk, event.time.isoformat(), actor, event.action, event.target, project)
        row += (detail, event.previous_hash, event.hash)
        # An apostrophe makes a spreadsheet show the cell as text.
        yield writer.writerow(
            [
                f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
                for cell in row
            ]
        )


class _Echo:
    """A file whose `write` returns the line, so that a long log is streamed and never held in memory."""

    def write(self, line: str) -> str:
        return line


urls = [
    path("audit", audit, name="audit"),
    path("audit/verify", audit_verify, name="audit_verify"),
    path("audit/export.csv", audit_export, name="audit_export"),
]
