"""What the home page shows, and the counts in the navigation."""

from django.db.models import Q, QuerySet

from jobs import access
from jobs.models import Project, PromotionRequest, Role, User


def approvals_to_decide(user: User) -> QuerySet[PromotionRequest]:
    """Return the pending requests that `user` may decide: an approver's, and not one's own."""
    pending = access.visible_promotions(user).filter(state=PromotionRequest.State.PENDING)
    others = pending.filter(
        Q(model__project__single_person=True) | ~(Q(requested_by=user) | Q(version__created_by=user))
    )
    if user.is_superuser:
        return others
    roles = [role for role in Role if access.Action.APPROVE in access.ALLOWED[role]]
    return others.filter(
        model__project__in=Project.objects.filter(memberships__user=user, memberships__role__in=roles)
    )


def approvals_waiting(user: User) -> int:
    """Return how many requests wait for a decision of `user`."""
    return approvals_to_decide(user).count()
