"""Lists promotion requests, and shows one with its gates, comments and decision buttons."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.access import Action
from jobs.actions.registry import promotions
from jobs.answers.registry.promotions import CutOffOut
from jobs.errors import BadInput, Conflict, Forbidden, TrainyardError
from jobs.models import Decision, Endpoint, GateRevision, ModelVersion, PromotionRequest
from jobs.queries import home, paging
from jobs.queries.code import package_sets
from jobs.queries.code.package_sets import PackageChange
from jobs.queries.paging import Page
from jobs.queries.registry import deciders, endpoints, gate_rules, gates, versions
from jobs.queries.registry import promotions as queries
from jobs.queries.registry.gates import Gate, GateState
from jobs.spec.sections import measures
from webapp.forms.registry.registry import DecisionForm
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    Tabs,
    crumbs,
    form_page,
    notify,
    page,
    redirect,
    render_page,
    url,
    valid_choice,
)
from webapp.template_context import Context

VIEWS = {"inbox": "To decide", "open": "Open", "all": "All"}


@dataclass(frozen=True)
class ApprovalsPage(Context):
    """The promotion requests in a view."""

    page: Page[PromotionRequest]
    rows: list[tuple[PromotionRequest, dict[GateState, int]]]
    view: str
    tabs: Tabs


@page
def approvals(request: Request) -> HttpResponse:
    """List the promotion requests: those that the user may decide, the open ones, or all."""
    view = valid_choice(request.GET.get("view"), list(VIEWS), "inbox")
    rows = queries.promotions_for_lists(request.user)
    if view == "inbox":
        rows = rows.filter(pk__in=home.approvals_to_decide(request.user).values("pk"))
    elif view == "open":
        rows = rows.filter(state__in=PromotionRequest.OPEN)
    listed = paging.page_of(rows, cursor=request.GET.get("cursor"))
    context = ApprovalsPage(
        page=listed,
        # dict: a template looks up `tally.items` as a key first, which in a Counter is 0.
        rows=[(row, dict(Counter(gate.state for gate in gates.read_gates(row)))) for row in listed.items],
        view=view,
        tabs=[
            (key, text, url("approvals", view="" if key == "inbox" else key)) for key, text in VIEWS.items()
        ],
    )
    return render_page(request, "registry/promotions/list.html", context, partial="requests")


@page
def approval(request: Request, promotion_id: int) -> HttpResponse:
    """Show one request.

    Three parts are reloaded live: `?part=gates` and `?part=decide` once the state is no longer `was`, and
    `?part=thread` once the number of its entries has changed.
    """
    row = access.get_promotion(request.user, promotion_id)
    part = valid_choice(request.GET.get("part"), ("gates", "decide", "thread"), "")
    was = request.GET.get("was")
    now = str(row.decisions.count()) if part == "thread" else row.state
    # htmx then leaves the part as it is, with a comment that the user is typing.
    if part and was == now:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    if part == "decide" and was is not None:
        notify(request, f"This request is now {row.get_state_display().lower()}.", level="info")
    return render_page(
        request, "registry/promotions/promotion.html", _promotion_context(request, row), partial=part
    )


class Figure(NamedTuple):
    """A test metric of the version beside that of the champion.

    Attributes:
        name: the metric.
        mine, theirs: the version's value, and the champion's.
        difference: the version's value minus the champion's; None if one is missing.
        verdict: `better`, `worse` or `the same`; empty for a metric whose better direction is unknown.
    """

    name: str
    mine: float | None
    theirs: float | None
    difference: float | None
    verdict: str


@dataclass(frozen=True)
class PromotionPage(Context):
    """A promotion request: its gates, figures, comments and decision form."""

    promotion: PromotionRequest
    endpoint: Endpoint
    champion: ModelVersion | None
    cut_off: list[CutOffOut]
    gates: list[tuple[Gate, str]]
    gate_rules: GateRevision | None
    newer_gates: int | None
    open_gates: list[str]
    figures: list[Figure]
    computed_by: str
    champion_is_measured: bool
    evaluation_job: int | None
    package_changes: list[PackageChange]
    packages_are_known: bool
    thread: QuerySet[Decision]
    is_open: bool
    is_live: bool
    is_pending: bool
    why_not: str | None
    may_withdraw: bool
    form: DecisionForm
    crumbs: Crumbs
    refused: str = ""
    accepted: Sequence[str] = ()
    typed: str = ""


def _promotion_context(request: Request, row: PromotionRequest) -> PromotionPage:
    user = request.user
    endpoint = endpoints.endpoint_of(row.model)
    promotion_gates = gates.read_gates(row)
    newest = gate_rules.revision_number(gate_rules.current_revision(row.model))
    is_open = row.state in PromotionRequest.OPEN
    now = endpoint.production if row.stage == "production" else endpoint.staging
    champion = now if is_open else queries.replaced_version(row)
    figures, computed_by, champion_is_measured = _compare_metrics(row, champion)
    return PromotionPage(
        promotion=row,
        endpoint=endpoint,
        champion=champion,
        cut_off=queries.cut_off_servers(row),
        gates=[(gate, gates.next_step(gate)) for gate in promotion_gates],
        gate_rules=row.gate_revision,
        newer_gates=newest if newest != gate_rules.revision_number(row.gate_revision) else None,
        open_gates=gates.unevaluated_gates(promotion_gates),
        figures=figures,
        computed_by=computed_by,
        champion_is_measured=champion_is_measured,
        evaluation_job=queries.evaluation_job(row),
        package_changes=package_sets.changes_since(champion, row.version),
        packages_are_known=champion is not None
        and package_sets.has_known_packages(champion)
        and package_sets.has_known_packages(row.version),
        thread=queries.decisions_of(row),
        is_open=is_open,
        is_live=is_open or row.state == PromotionRequest.State.APPROVED,
        is_pending=row.state == PromotionRequest.State.PENDING,
        why_not=deciders.decision_refusal(row, user) if is_open else None,
        may_withdraw=is_open
        and (row.requested_by_id == user.pk or access.can(user, row.model.project, Action.MANAGE)),
        form=DecisionForm(open_gates=gates.unevaluated_gates(promotion_gates)),
        crumbs=crumbs(("Approvals", reverse("approvals")), f"Request {row.pk}"),
    )


def _compare_metrics(row: PromotionRequest, champion: ModelVersion | None) -> tuple[list[Figure], str, bool]:
    """Return the test metrics for the version and the champion.

    If users' code made a version, its metrics were computed beside this code, which could change them.
    So those that the gates have measured take their place.

    Returns:
        Both values for each metric; `gates` or `code` if code made a version; and whether the
        champion's values come from the gates.
    """
    mine, theirs = versions.metric_values(row.version), versions.metric_values(champion) if champion else {}
    computed_by, champion_is_measured = "", False
    if any(version and versions.measured_by_code(version.source_job) for version in (row.version, champion)):
        measured = queries.measured_metrics(row)
        mine = measured.get("challenger", mine)
        if champion is not None and champion.pk == row.baseline_version_id and "champion" in measured:
            theirs, champion_is_measured = measured["champion"], True
        computed_by = "gates" if "challenger" in measured else "code"
    return (
        [_figure(name, value, theirs.get(name)) for name, value in mine.items()],
        computed_by,
        champion_is_measured,
    )


def _figure(name: str, mine: float | None, theirs: float | None) -> Figure:
    if mine is None or theirs is None:
        return Figure(name, mine, theirs, None, "")
    difference = mine - theirs
    direction = measures.known_direction(name)
    if direction is None or not math.isfinite(difference):
        return Figure(name, mine, theirs, difference, "")
    gain = difference if direction == "max" else -difference
    return Figure(
        name, mine, theirs, difference, "better" if gain > 0 else "worse" if gain < 0 else "the same"
    )


def _decision_view(verb: str) -> Callable[..., HttpResponse]:
    """Return the view for one decision button."""

    @form_page
    def decide(request: Request, promotion_id: int) -> HttpResponse:
        row = access.get_promotion(request.user, promotion_id)
        # The page of a refused decision is at this address: it was reloaded.
        if request.method != "POST":
            return redirect("approval", promotion_id)
        form = DecisionForm(request.POST, open_gates=gates.unevaluated_gates(gates.read_gates(row)))
        try:
            if not form.is_valid():
                raise BadInput("The comment is too long, or an accepted gate is not open.")
            notify(request, _VERBS[verb](row, request, form.cleaned_data))
        except (BadInput, Conflict, Forbidden) as error:
            return _show_refusal(request, promotion_id, verb, error)
        return redirect("approval", promotion_id)

    return decide


def _show_refusal(request: Request, promotion_id: int, verb: str, error: TrainyardError) -> HttpResponse:
    """Show the request's present state, with the reason and the person's entries."""
    row = access.get_promotion(request.user, promotion_id)
    context = replace(_promotion_context(request, row), refused=error.message)
    typed = request.POST.get("comment", "")
    if verb != "comment" and context.is_open and context.why_not is None:
        form = DecisionForm(initial={"comment": typed}, open_gates=context.open_gates)
        context = replace(context, form=form, accepted=request.POST.getlist("accept"))
    else:
        context = replace(context, typed=typed)
    return render_page(request, "registry/promotions/promotion.html", context, status=error.status)


def _approve(row: PromotionRequest, request: Request, entries: dict[str, Any]) -> str:
    done = promotions.approve(row, accept=entries["accept"], comment=entries["comment"], by=request.user)
    return f"Approved. {row.version} is being released to {row.stage} as generation {done.generation}."


def _reject(row: PromotionRequest, request: Request, entries: dict[str, Any]) -> str:
    promotions.reject(row, comment=entries["comment"], by=request.user)
    return "Rejected. The endpoint is unchanged."


def _withdraw(row: PromotionRequest, request: Request, entries: dict[str, Any]) -> str:
    promotions.withdraw(row, comment=entries["comment"], by=request.user)
    return "Withdrawn."


def _comment(row: PromotionRequest, request: Request, entries: dict[str, Any]) -> str:
    promotions.comment(row, entries["comment"], by=request.user)
    return "Your comment is added."


_VERBS = {"approve": _approve, "reject": _reject, "withdraw": _withdraw, "comment": _comment}

urls = [
    path("approvals", approvals, name="approvals"),
    path("approvals/<int:promotion_id>", approval, name="approval"),
    *(
        path(f"approvals/<int:promotion_id>/{verb}", _decision_view(verb), name=f"approval_{verb}")
        for verb in _VERBS
    ),
]
