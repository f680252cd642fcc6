"""Operations on promotion requests and decisions."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.registry import promotions
from jobs.answers.registry.promotions import PromotionOut
from jobs.models import PromotionRequest
from jobs.queries.registry import promotions as queries
from jobs.spec.sections.data import Slug as ModelName
from webapp.api.auth import actor, needs
from webapp.api.idempotency import idempotent
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import Id, In, Number, OneOf, Text

router = Router()


class PromotionIn(In):
    """A new promotion request."""

    model: ModelName = Field(examples=["digits"])
    version: Number = Field(examples=[1])
    stage: str = Field(
        "production", max_length=20, examples=["production"], description="production or staging."
    )
    comment: Text = ""


class ApproveIn(In):
    """An approval."""

    comment: Text = ""
    accept: list[str] = Field(
        default_factory=list,
        max_length=100,
        examples=[["test_metric"]],
        description="The gates that were not evaluated; each must be named.",
    )


class CommentIn(In):
    """A comment."""

    comment: Text = ""


class PromotionFilter(Schema):
    """The list's filters."""

    state: Annotated[str, OneOf(PromotionRequest.State)] | None = None
    model: str | None = Field(None, max_length=63)


@router.get("/promotions", response=Page[PromotionOut])
def list_promotions(
    request: HttpRequest, paging: Query[Paging], filters: Query[PromotionFilter]
) -> Page[PromotionOut]:
    """List the promotion requests in the caller's projects, newest first."""
    rows = queries.promotions_for_lists(actor(request))
    if filters.state is not None:
        rows = rows.filter(state=filters.state)
    if filters.model is not None:
        rows = rows.filter(model__name=filters.model)
    return paginate(Page[PromotionOut], rows, paging, queries.promotion_out)


@router.post("/promotions", response={201: PromotionOut})
@idempotent
def create_promotion(request: HttpRequest, body: PromotionIn) -> Status[PromotionOut]:
    """Request a version's promotion to a stage. Its gates run at once."""
    version = access.get_version(actor(request), body.model, body.version, Action.WRITE)
    promotion = promotions.request(version, stage=body.stage, comment=body.comment, by=actor(request))
    return Status(201, queries.promotion_out(promotion))


@router.get("/promotions/{promotion_id}", response=PromotionOut)
def get_promotion(request: HttpRequest, promotion_id: Id) -> PromotionOut:
    """Return a promotion request with its gates and decisions."""
    return queries.promotion_out(access.get_promotion(actor(request), promotion_id))


@router.post("/promotions/{promotion_id}/approve", response=PromotionOut, auth=needs("approve"))
def approve_promotion(request: HttpRequest, promotion_id: Id, body: ApproveIn) -> PromotionOut:
    """Approve a promotion request. This releases the version."""
    promotion = access.get_promotion(actor(request), promotion_id)
    decided = promotions.approve(promotion, accept=body.accept, comment=body.comment, by=actor(request))
    return queries.promotion_out(decided)


@router.post("/promotions/{promotion_id}/reject", response=PromotionOut, auth=needs("approve"))
def reject_promotion(request: HttpRequest, promotion_id: Id, body: CommentIn) -> PromotionOut:
    """Reject a promotion request."""
    promotion = access.get_promotion(actor(request), promotion_id)
    return queries.promotion_out(promotions.reject(promotion, comment=body.comment, by=actor(request)))


@router.post("/promotions/{promotion_id}/withdraw", response=PromotionOut)
def withdraw_promotion(request: HttpRequest, promotion_id: Id, body: CommentIn) -> PromotionOut:
    """Withdraw a promotion request."""
    promotion = access.get_promotion(actor(request), promotion_id)
    return queries.promotion_out(promotions.withdraw(promotion, comment=body.comment, by=actor(request)))


@router.post("/promotions/{promotion_id}/comment", response=PromotionOut, auth=needs("write", "approve"))
def comment_promotion(request: HttpRequest, promotion_id: Id, body: CommentIn) -> PromotionOut:
    """Add a comment to a promotion request."""
    promotion = access.get_promotion(actor(request), promotion_id)
    promotions.comment(promotion, body.comment, by=actor(request))
    return queries.promotion_out(promotion)
