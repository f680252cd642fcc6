"""Reads promotion requests and checks who may decide them."""

from collections.abc import Collection

from django.db.models import QuerySet, prefetch_related_objects

from jobs import access
from jobs.access import Action
from jobs.contracts.answers.promotions import GateOut, PromotionDecisionOut, PromotionOut
from jobs.errors import Forbidden
from jobs.models import Decision, ModelVersion, PromotionRequest, User
from jobs.queries import authors as authorship
from jobs.queries import gates


def for_lists(user: User) -> QuerySet[PromotionRequest]:
    """Return the requests that `user` may see, with the related rows that lists need."""
    related = (
        "model__project",
        "version__created_by",
        "requested_by",
        "baseline_version",
        "gate_revision__created_by",
    )
    return access.visible_promotions(user).select_related(*related).prefetch_related("decisions__user")


def require_independent(promotion: PromotionRequest, user: User) -> None:
    """Require that `user` may decide: a current approver who neither requested nor made the version.

    Raises:
        NotFound: `user` may not see the request.
        Forbidden: `user` is not an approver, or not independent.
    """
    project = promotion.model.project
    access.require(user, project, Action.APPROVE)
    if user.is_service:
        raise Forbidden("A service account cannot decide a promotion.")
    authors = authorship.of_version(promotion.version)
    if shared := _makers_of_both(promotion, user):
        raise _not_independent(
            f"{' and '.join(shared)} made the login links that your session and that of the requester came "
            "from, and could act as both. Let another person decide. Your page Account shows how to end this."
        )
    if _is_linked(promotion, user, authors):
        raise _not_independent(
            "Your session, or that of the requester, came from a login link of the other, or from a "
            "password that was set in such a session. Let another person decide. "
            "Your page Account shows how to end this."
        )
    if promotion.single_person:
        return
    if user.pk == promotion.requested_by_id:
        raise _not_independent("You requested this promotion. Another person must decide.")
    if user.pk in authors:
        raise _not_independent(
            "You created this version, or a job of yours made its file. Another person must decide."
        )
    if authors & _accounts_of({user.pk}):
        raise _not_independent(
            "A person who made this version has a password from a login link of yours. "
            "Another person must decide."
        )


def _makers_of_both(promotion: PromotionRequest, user: User) -> list[str]:
    """Return the names of other people who made login links of `user` and of the requester."""
    makers = promotion.requested_by_issuers.filter(pk__in=user.login_issuers)
    return list(makers.order_by("username").values_list("username", flat=True))


def _is_linked(promotion: PromotionRequest, user: User, authors: set[int]) -> bool:
    """Return whether a login link connects `user` with the requester or, as its maker, with an author."""
    issuers = set(promotion.requested_by_issuers.values_list("pk", flat=True))
    concerned = {promotion.requested_by_id, *issuers} & user.login_issuers
    return bool(concerned or authors & _accounts_of(user.login_issuers)) or user.pk in issuers


def _accounts_of(people: Collection[int]) -> set[int]:
    return set(authorship.accounts_of(people).values_list("pk", flat=True)) if people else set()


def _not_independent(why: str) -> Forbidden:
    return Forbidden(why, code="not_independent")


def decision_refusal(promotion: PromotionRequest, user: User) -> str | None:
    """Return the reason why `user` may not decide, for pages; None if they may."""
    try:
        require_independent(promotion, user)
    except Forbidden as refusal:
        return refusal.message
    return None


def replaced_version(promotion: PromotionRequest) -> ModelVersion | None:
    """Return the version that a request replaced or would replace."""
    release = promotion.releases.select_related("replaced").first()
    return release.replaced if release else promotion.baseline_version


def thread(promotion: PromotionRequest) -> QuerySet[Decision]:
    """Return the decisions and comments on a request, in order."""
    return promotion.decisions.select_related("user").order_by("pk")


def shown(promotion: PromotionRequest) -> PromotionOut:
    """Return the API representation of a request."""
    # This costs no query for a row of a list, which has its decisions already.
    prefetch_related_objects([promotion], "decisions__user")
    revision = promotion.gate_revision
    decisions = sorted(promotion.decisions.all(), key=lambda decision: decision.pk)
    return PromotionOut(
        id=promotion.pk,
        state=promotion.state,
        model=promotion.model.name,
        version=promotion.version.number,
        digest=promotion.version.artifact_id,
        stage=promotion.stage,
        comment=promotion.comment,
        requested_by=promotion.requested_by.username,
        single_person=promotion.single_person,
        baseline=promotion.baseline_version.number if promotion.baseline_version else None,
        gates=[
            GateOut(**gate.model_dump(), next_step=gates.next_step(gate)) for gate in gates.read(promotion)
        ],
        gates_revision=revision.number if revision is not None else 0,
        gates_changed_by=revision.created_by.username if revision is not None else None,
        gates_changed=revision.created if revision is not None else None,
        gate_job=promotion.gate_job_id,
        decisions=[shown_decision(decision) for decision in decisions],
        generation=promotion.generation,
        expires=promotion.expires,
        created=promotion.created,
        decided=promotion.decided,
    )


def shown_decision(decision: Decision) -> PromotionDecisionOut:
    """Return the API representation of a decision or comment."""
    return PromotionDecisionOut(
        user=decision.user.username,
        verdict=decision.verdict,
        comment=decision.comment,
        accept=decision.accept,
        digest=decision.digest,
        created=decision.created,
    )
