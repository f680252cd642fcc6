"""Reads the rules for a model's gates and their revisions."""

from collections.abc import Sequence

from django.db.models import Max

from jobs.answers.registry.gates import GatesOut
from jobs.models import Decision, GateRevision, PromotionRequest, RegisteredModel
from jobs.queries.registry.authors import accounts_of, author_ids
from jobs.spec.gates import GateRules

NEWEST = 50


def current_revision(model: RegisteredModel) -> GateRevision | None:
    """Return the newest revision; None if the defaults apply."""
    return model.gate_revisions.select_related("created_by").order_by("-number").first()


def rules_of(revision: GateRevision | None) -> GateRules:
    """Return a revision's rules; the defaults for None."""
    return GateRules() if revision is None else revision.rules


def revision_number(revision: GateRevision | None) -> int:
    """Return a revision's number; 0 for the defaults."""
    return 0 if revision is None else revision.number


def gates_history(model: RegisteredModel) -> list[GatesOut]:
    """Return the newest revisions, newest first, each with its differences from the one before."""
    rows = list(model.gate_revisions.select_related("created_by").order_by("-number")[: NEWEST + 1])
    earlier = [*rows[1:], None][: len(rows)]
    return [_revision_out(model, row, before) for row, before in zip(rows, earlier, strict=True)][:NEWEST]


def gates_out(model: RegisteredModel) -> GatesOut:
    """Return the newest revision's API representation."""
    newest = current_revision(model)
    before = model.gate_revisions.filter(number=newest.number - 1).first() if newest is not None else None
    return _revision_out(model, newest, before)


def _revision_out(
    model: RegisteredModel, revision: GateRevision | None, before: GateRevision | None
) -> GatesOut:
    rules = rules_of(revision)
    return GatesOut(
        model=model.name,
        revision=revision_number(revision),
        rules=rules,
        comment=revision.comment if revision is not None else "",
        differences=rules.differences(rules_of(before)),
        changed_by=revision.created_by.username if revision is not None else None,
        changed=revision.created if revision is not None else None,
    )


def unreviewed_revisions(promotion: PromotionRequest) -> Sequence[GateRevision]:
    """Return the revisions by the requester or an author that no other person has judged.

    Issuers of the requester's session count as the requester, and accounts that these people made as they
    themselves. A revision is judged once another person has approved a request under it or a later one.
    """
    if promotion.gate_revision is None:
        return []
    people = {promotion.requested_by_id, *author_ids(promotion.version)}
    people.update(promotion.requested_by_issuers.values_list("pk", flat=True))
    people.update(accounts_of(people).values_list("pk", flat=True))
    approvals = Decision.objects.filter(verdict="approve", promotion__model=promotion.model_id)
    independent = approvals.exclude(user__in=people)
    judged = independent.aggregate(newest=Max("promotion__gate_revision__number"))["newest"]
    return list(
        promotion.model.gate_revisions.select_related("created_by")
        .filter(number__gt=judged or 0, number__lte=promotion.gate_revision.number, created_by__in=people)
        .order_by("number")
    )
