"""Builds the template variables for each tab on a version's page but the overview."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.urls import reverse

from jobs import access
from jobs.access import Action
from jobs.messages.reports.base import ModelReport
from jobs.models import Endpoint, Job, JobArtifact, ModelVersion
from jobs.queries.registry import registry as queries
from jobs.queries.registry import versions
from jobs.queries.runs import model_reports
from jobs.spec.signature import Signature
from webapp import prediction
from webapp.forms.registry.registry import CardForm
from webapp.pages.registry import tryout, use_examples
from webapp.pages.registry.version_overview import address_of_link, overview_contexts
from webapp.pages.shortcuts import (
    Request,
)
from webapp.report_figures.architecture import architecture_contexts
from webapp.template_context import Context

# Stages whose versions the prediction server keeps loaded: the previous one for an instant rollback.
LOADED = ("production", "staging", "previous")


def _report_tab(_request: Request, row: ModelVersion, _endpoint: Endpoint) -> tuple[Context, ...]:
    return (_newest_report(row, "report"),)


def _evaluation_tab(_request: Request, row: ModelVersion, _endpoint: Endpoint) -> tuple[Context, ...]:
    return (_newest_report(row, "evaluation"),)


@dataclass(frozen=True)
class ReportTab(Context):
    """The newest report of one role."""

    report: ModelReport | None = None
    members: Mapping[str, Job] = field(default_factory=dict)
    by_code: bool = False


def _newest_report(row: ModelVersion, role: str) -> ReportTab:
    for stored in model_reports.reports_of_version(row, (role,)):
        return ReportTab(
            report=model_reports.read_report(stored),
            members=model_reports.members_of_report(stored),
            by_code=versions.measured_by_code(stored.job),
        )
    return ReportTab()


@dataclass(frozen=True)
class LayersTab(Context):
    """The address that has a worker read a version's layers again."""

    describe_url: str
    remedy: str


def _model_tab(request: Request, row: ModelVersion, _endpoint: Endpoint) -> tuple[Context, ...]:
    summary = _newest_report(row, "summary").report
    needed = Action.WRITE if row.code_id is None else Action.RUN_CODE
    may_describe = row.state == ModelVersion.State.CANDIDATE and access.can(
        request.user, row.model.project, needed
    )
    layers = LayersTab(
        describe_url=reverse("version_describe", args=[row.model.name, row.number]) if may_describe else "",
        remedy="A worker can read them from the file." if may_describe else "",
    )
    return (layers, *architecture_contexts(summary, request.GET))


@dataclass(frozen=True)
class TryTab(Context):
    """Whether the prediction server has loaded the version."""

    loaded: bool


def _try_tab(_request: Request, row: ModelVersion, endpoint: Endpoint) -> tuple[Context, ...]:
    return TryTab(is_loaded(row, endpoint)), tryout.form_context(row)


def is_loaded(row: ModelVersion, endpoint: Endpoint) -> bool:
    """Return whether the prediction server keeps a version loaded."""
    return queries.stage_of(row, endpoint) in LOADED


@dataclass(frozen=True)
class UseTab(Context):
    """How to call a version's endpoint."""

    address: str
    example: str
    curl: str
    image_file: str | None
    image_column: str
    example_python: str
    signature: Signature | None
    further: Sequence[use_examples.Example]
    meaning: str
    answer: use_examples.AnswerExample | None


def _use_tab(_request: Request, row: ModelVersion, _endpoint: Endpoint) -> tuple[Context, ...]:
    example = tryout.example_body(row)
    signature = Signature.model_validate(row.signature) if row.signature else None
    columns = signature.columns if signature is not None else ()
    image = next((column.name for column in columns if column.type == "image"), None)
    name = row.model.name
    curl = prediction.curl_line(name, example) if image is None else prediction.curl_image(name, image)
    use = UseTab(
        address=prediction.address(),
        example=example,
        curl=curl,
        image_file=None if image is None else prediction.IMAGE_FILE,
        image_column=repr(image),
        # Python writes None, True and False where JSON has null, true and false.
        example_python=repr(json.loads(example)) if example else "",
        signature=signature,
        further=() if signature is None else use_examples.further_examples(row, signature, example),
        meaning="" if signature is None else use_examples.meaning_of_output(row, signature),
        answer=None if signature is None else use_examples.answer_example(row, signature),
    )
    return use, tryout.positions_context(row)


@dataclass(frozen=True)
class CardTab(Context):
    """A version's card, and the version that it was trained further from."""

    card_form: CardForm
    base: versions.Link | None
    base_url: str
    stale: bool


def card_context(
    request: Request, row: ModelVersion, refused_form: CardForm | None = None, *, stale: bool = False
) -> CardTab:
    """Return the variables for the card tab. A refused form is shown again with its text."""
    base = next((link for link in versions.lineage_chain(row) if link.kind == "fine-tuned from"), None)
    return CardTab(
        card_form=refused_form or CardForm(initial={"card": row.card, "seen": row.card_digest}),
        base=base,
        base_url="" if base is None else address_of_link(base, row, request.user),
        stale=stale,
    )


def _card_tab(request: Request, row: ModelVersion, _endpoint: Endpoint) -> tuple[Context, ...]:
    return (card_context(request, row),)


@dataclass(frozen=True)
class FilesTab(Context):
    """A version's files."""

    files: list[JobArtifact]


def _files_tab(_request: Request, row: ModelVersion, _endpoint: Endpoint) -> tuple[Context, ...]:
    return (FilesTab(versions.source_artifacts(row)),)


_CONTEXTS: dict[str, Callable[[Request, ModelVersion, Endpoint], tuple[Context, ...]]] = {
    "overview": overview_contexts,
    "report": _report_tab,
    "evaluation": _evaluation_tab,
    "model": _model_tab,
    "try": _try_tab,
    "use": _use_tab,
    "card": _card_tab,
    "files": _files_tab,
}


def tab_contexts(request: Request, row: ModelVersion, endpoint: Endpoint, tab: str) -> tuple[Context, ...]:
    """Return the variables for the template of `tab`."""
    return _CONTEXTS[tab](request, row, endpoint)
