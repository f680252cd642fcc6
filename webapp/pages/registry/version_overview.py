"""Builds the overview tab on a version's page: metrics, lineage and promotion requests."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import QuerySet
from django.urls import NoReverseMatch, reverse

from jobs import access
from jobs.access import Action
from jobs.models import Endpoint, Job, ModelVersion, PromotionRequest, User
from jobs.public_path import beside_public_path
from jobs.queries.data import datasets
from jobs.queries.experiments import base_versions
from jobs.queries.registry import origins, versions
from jobs.queries.registry import registry as queries
from jobs.queries.registry.smaller_versions import smaller_version_jobs, smaller_version_refusal
from jobs.queries.runs import model_reports
from jobs.queries.runs.model_reports import StoredReport
from jobs.spec.exports import QUANTIZATIONS, ExportFormat
from webapp.forms.registry.registry import PromotionForm
from webapp.pages.registry import tryout
from webapp.pages.shortcuts import (
    Request,
    url,
)
from webapp.template_context import Context

MAX_FINE_TUNED = 20
"""How many versions that were trained further a page lists."""


@dataclass(frozen=True)
class OverviewTab(Context):
    """A version's metrics, lineage and promotion requests."""

    test: dict[str, float | None]
    by_code: bool
    validation: dict[str, float | None]
    weighted_by: str
    links: list[tuple[versions.Link, str]]
    requests: QuerySet[PromotionRequest]
    promotion_form: PromotionForm | None
    may_run: bool
    about_variant: str
    checked: versions.ValidationResult | None
    findings: list[tuple[StoredReport, str]]
    fine_tuned: QuerySet[ModelVersion]


@dataclass(frozen=True)
class SmallerVersions(Context):
    """The formats to which a version can be quantized or cast.

    Attributes:
        smaller_formats: empty if the version was not validated.
        smaller_refusal: why no smaller version can be made; empty if one can.
        smaller_needs_trainer: whether the job would execute code, which the reader may not have executed.
        smaller_jobs: the unfinished jobs that make one.
    """

    smaller_formats: Collection[ExportFormat]
    smaller_refusal: str
    smaller_needs_trainer: bool
    smaller_jobs: QuerySet[Job]


def overview_contexts(
    request: Request, row: ModelVersion, endpoint: Endpoint, promotion_form: PromotionForm | None = None
) -> tuple[Context, ...]:
    """Return the variables for the overview tab; `promotion_form` is a refused one."""
    stage = queries.stage_of(row, endpoint)
    has_request = row.promotions.filter(state__in=PromotionRequest.OPEN, stage="production").exists()
    is_candidate = row.state == ModelVersion.State.CANDIDATE
    may_request = is_candidate and not has_request and endpoint.production_id != row.pk
    stages = [stage] if stage else []
    may_run = not row.needs_code or access.can(request.user, row.model.project, Action.RUN_CODE)
    overview = OverviewTab(
        test=versions.metric_values(row),
        by_code=versions.measured_by_code(row.source_job),
        validation=versions.validation_metric_values(row),
        weighted_by=datasets.weight_column(row.source_job) if row.source_job is not None else "",
        links=_origin_links(request.user, row, stages),
        requests=row.promotions.select_related("requested_by").order_by("-pk")[:10],
        promotion_form=promotion_form or (PromotionForm() if may_request and may_run else None),
        may_run=may_run,
        about_variant=versions.describe_variant(row),
        checked=versions.validation_result(row),
        findings=model_reports.report_findings(
            model_reports.reports_of_version(row, ("report", "evaluation"))
        ),
        fine_tuned=base_versions.versions_trained_from(row, request.user)[:MAX_FINE_TUNED],
    )
    return overview, _smaller_versions(request.user, row), tryout.positions_context(row)


def _smaller_versions(user: User, row: ModelVersion) -> SmallerVersions:
    is_candidate = row.state == ModelVersion.State.CANDIDATE
    return SmallerVersions(
        smaller_formats=QUANTIZATIONS.values() if is_candidate else (),
        smaller_refusal=smaller_version_refusal(row) if is_candidate else "",
        # The action asks for this right also where the file has built-in layers only.
        smaller_needs_trainer=row.code_id is not None
        and not access.can(user, row.model.project, Action.RUN_CODE),
        smaller_jobs=smaller_version_jobs(row),
    )


def _origin_links(user: User, row: ModelVersion, stages: list[str]) -> list[tuple[versions.Link, str]]:
    """Return the chain from data set to endpoint with addresses, behind the models that it was made of."""
    made_of = [
        (versions.Link(origin.kind, origin.title, origin.detail), _address_of_origin(origin))
        for origin in origins.origins_of(row, user)
    ]
    chain = [(link, address_of_link(link, row, user)) for link in versions.lineage_chain(row, stages)]
    return [*made_of, *chain]


def _address_of_origin(origin: origins.Origin) -> str:
    if origin.version is None:
        return reverse("job", args=[origin.job.pk])
    return reverse("version", args=[origin.version.model.name, origin.version.number])


def address_of_link(link: versions.Link, row: ModelVersion, user: User) -> str:
    """Return the address for a lineage link; empty if it has no page, or none for `user`."""
    project = row.source_job.project if row.source_job else None
    try:
        if link.kind == "experiment" and project is not None:
            return reverse("experiment", args=[project.slug, link.key])
        if link.kind == "fine-tuned from":
            name, number = link.key
            seen = access.visible_versions(user).filter(model__name=name, number=number)
            return reverse("version", args=link.key) if seen.exists() else ""
        if link.kind == "dataset":
            return reverse("dataset_version", args=link.key)
        if link.kind == "code":
            # A version that names its code has it in its own project; a script's is in that of its job.
            home = row.model.project if row.code_id is not None or project is None else project
            return url("code_version", link.key, project=home.slug)
        if link.kind in ("job", "endpoint"):
            return reverse(link.kind, args=[link.key])
    except NoReverseMatch:
        return ""
    return beside_public_path(f"/api/v1/artifacts/{link.key}") if link.kind == "artifact" else ""
