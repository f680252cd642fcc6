"""Operations on the reports about models: for a job, and for a version."""

from django.http import HttpRequest
from ninja import Query, Router, Schema

from jobs import access
from jobs.answers.runs.model_reports import ModelReportOut, ReportRole
from jobs.queries.runs import model_reports as queries
from webapp.api.auth import actor
from webapp.api.paging import Page
from webapp.api.shapes import Id, Number

router = Router()


class ReportFilter(Schema):
    """The lists' filters."""

    role: ReportRole | None = None

    def roles(self) -> tuple[ReportRole, ...]:
        """Return the roles to list."""
        return queries.ROLES if self.role is None else (self.role,)


@router.get("/jobs/{int:job_id}/reports", response=Page[ModelReportOut])
def list_job_reports(request: HttpRequest, job_id: Id, filters: Query[ReportFilter]) -> Page[ModelReportOut]:
    """List the reports on the models from a job and its children, ordered by step."""
    reports = queries.reports_of_job(access.get_job(actor(request), job_id), filters.roles())
    return Page[ModelReportOut](items=queries.model_reports_out(reports), next=None)


@router.get("/models/{name}/versions/{number}/reports", response=Page[ModelReportOut])
def list_version_reports(
    request: HttpRequest, name: str, number: Number, filters: Query[ReportFilter]
) -> Page[ModelReportOut]:
    """List the reports on a version: how it was pooled or quantized, its evaluation and its layers."""
    version = access.get_version(actor(request), name, number)
    reports = queries.reports_of_version(version, filters.roles())
    return Page[ModelReportOut](items=queries.model_reports_out(reports), next=None)
