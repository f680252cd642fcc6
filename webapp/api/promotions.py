"""Promotion requests and the decisions about them."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions import promotions
from jobs.models import PromotionRequest
from jobs.queries import promotions as queries
from webapp.api.auth import actor, needs
from webapp.api.idempotency import idempotent
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import Id, In, Json, Number, OneOf, Slug, Text, Time

router = Router()


class PromotionIn(In):
    """What shall go where, and why."""

    model: Slug = Field(examples=["digits"])
    version: Number = Field(examples=[1])
    stage: str = Field("production", max_length=20, examples=["production"])
    comment: Text = ""


class GateOut(Schema):
    """One gate, with the numbers it was judged by."""

    name: str
    state: str
    value: Any = None
    limit: Any = None
    champion: Any = None
    detail: str = ""


class DecisionOut(Schema):
    """One entry of the thread."""

    user: str
    verdict: str
    comment: str
    accept: list[str]
    digest: str
    created: Time


class PromotionOut(Schema):
    """A request; `generation` is that of the release it led to."""

    id: int
    state: str
    model: str
    version: int
    digest: str
    stage: str
    comment: str
    requested_by: str
    baseline: int | None
    gates: list[GateOut]
    gate_job: int | None
    decisions: list[DecisionOut]
    generation: int | None
    expires: Time
    created: Time
    decided: Time | None


class ApproveIn(In):
    """An approval; `accept` names the gates that were not evaluated."""

    comment: Text = ""
    accept: list[str] = Field(default_factory=list, max_length=100, examples=[["test_metric"]])


class SayIn(In):
    """What one has to say."""

    comment: Text = ""


class PromotionFilter(Schema):
    """`?state=&model=`."""

    state: Annotated[str, OneOf(PromotionRequest.State)] | None = None
    model: str | None = Field(None, max_length=63)


@router.get("/promotions", response=Page[PromotionOut])
def list_promotions(
    request: HttpRequest, paging: Query[Paging], wanted: Query[PromotionFilter]
) -> Page[Json]:
    """List the requests that you may see, the newest first."""
    rows = queries.for_lists(actor(request))
    if wanted.state is not None:
        rows = rows.filter(state=wanted.state)
    if wanted.model is not None:
        rows = rows.filter(model__name=wanted.model)
    return cut(rows, paging, queries.shown)


@router.post("/promotions", response={201: PromotionOut})
@idempotent
def create_promotion(request: HttpRequest, body: PromotionIn) -> Status[Any]:
    """Ask for a version to go onto a stage; its gates run at once."""
    version = access.get_version(actor(request), body.model, body.version, Action.WRITE)
    made = promotions.request(version, stage=body.stage, comment=body.comment, by=actor(request))
    return Status(201, queries.shown(made))


@router.get("/promotions/{promotion_id}", response=PromotionOut)
def get_promotion(request: HttpRequest, promotion_id: Id) -> Json:
    """Return one request with its gates and its thread."""
    return queries.shown(access.get_promotion(actor(request), promotion_id))


@router.post("/promotions/{promotion_id}/approve", response=PromotionOut, auth=needs("approve"))
def approve(request: HttpRequest, promotion_id: Id, body: ApproveIn) -> Json:
    """Approve a request, which releases its version."""
    promotion = access.get_promotion(actor(request), promotion_id)
    decided = promotions.approve(promotion, accept=body.accept, comment=body.comment, by=actor(request))
    return queries.shown(decided)


@router.post("/promotions/{promotion_id}/reject", response=PromotionOut, auth=needs("approve"))
def reject(request: HttpRequest, promotion_id: Id, body: SayIn) -> Json:
    """Turn a request down."""
    promotion = access.get_promotion(actor(request), promotion_id)
    return queries.shown(promotions.reject(promotion, comment=body.comment, by=actor(request)))


@router.post("/promotions/{promotion_id}/withdraw", response=PromotionOut)
def withdraw(request: HttpRequest, promotion_id: Id, body: SayIn) -> Json:
    """Take a request back."""
    promotion = access.get_promotion(actor(request), promotion_id)
    return queries.shown(promotions.withdraw(promotion, comment=body.comment, by=actor(request)))


@router.post("/promotions/{promotion_id}/comment", response=PromotionOut, auth=needs("write", "approve"))
def comment(request: HttpRequest, promotion_id: Id, body: SayIn) -> Json:
    """Add to a request's thread."""
    promotion = access.get_promotion(actor(request), promotion_id)
    promotions.comment(promotion, body.comment, by=actor(request))
    return queries.shown(promotion)
