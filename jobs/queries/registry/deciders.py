"""Checks who may decide a promotion request, and names the members who could.

Other people's sessions are not known here. A person is taken to log in as the last time: with a password,
whose issuers are stored, or with the login link that was used last.
"""

from collections.abc import Collection, Iterator
from itertools import islice

from django.db.models import Q

from jobs import access, program
from jobs.access import Action
from jobs.errors import Forbidden
from jobs.models import LoginLink, Membership, PromotionRequest, User
from jobs.queries.registry import authors as authorship

MAX_NAMES = 5
MAX_CHECKED = 30
"""People who are checked for a message: each takes some queries."""
NO_DECIDER = (
    "No member of {project} could decide it now. Add an independent person with the role approver in the "
    "settings of the project. Who logs in by a link from the page People cannot decide requests of the "
    "administrator who made that link. The operator can make a link without this limit: "
    "{command}."
)


def require_independent(promotion: PromotionRequest, user: User) -> None:
    """Require that `user` may decide: a current approver who neither requested nor made the version.

    Raises:
        NotFound: `user` may not see the request.
        Forbidden: `user` is not an approver, or not independent; the message names members who could decide.
    """
    try:
        _require_decider(promotion, user, authorship.author_ids(promotion.version))
    except Forbidden as refusal:
        if refusal.code == access.SECOND_FACTOR:
            raise
        raise Forbidden(f"{refusal.message} {describe_deciders(promotion)}", code=refusal.code) from refusal


def _require_decider(promotion: PromotionRequest, user: User, authors: set[int]) -> None:
    """Check it with a message about `user` alone; see `require_independent`."""
    project = promotion.model.project
    access.require(user, project, Action.APPROVE)
    if user.is_service:
        raise Forbidden("A service account cannot decide a promotion.")
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
    """Name the other people who made login links for both `user` and the requester."""
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


def describe_deciders(promotion: PromotionRequest) -> str:
    """Return who could decide a request, or the next step if there is no such person."""
    names = [user.username for user in islice(_possible_deciders(promotion), MAX_NAMES + 1)]
    if not names:
        command = program.command_line("adduser")
        return NO_DECIDER.format(project=promotion.model.project.slug, command=command)
    visible_names = names if len(names) <= MAX_NAMES else [*names[: MAX_NAMES - 1], "others"]
    alternatives = " or ".join(filter(None, [", ".join(visible_names[:-1]), visible_names[-1]]))
    return f"{alternatives} could decide it."


def _possible_deciders(promotion: PromotionRequest) -> Iterator[User]:
    """Yield the approvers and administrators who could decide a request in their usual sessions, by name."""
    project, authors = promotion.model.project, authorship.author_ids(promotion.version)
    approvers = Membership.objects.filter(project=project, role__in=access.roles_allowing(Action.APPROVE))
    people = User.objects.filter(Q(pk__in=approvers.values("user")) | Q(is_superuser=True))
    people = people.filter(is_active=True, is_service=False)
    if not promotion.single_person:
        people = people.exclude(pk__in=authors | {promotion.requested_by_id})
    for user in people.order_by("username")[:MAX_CHECKED]:
        user.login_issuers = usual_issuers(user)
        try:
            _require_decider(promotion, user, authors)
        except Forbidden:
            continue
        yield user


def usual_issuers(user: User) -> frozenset[int]:
    """Return the issuers that a person's sessions have after the usual login."""
    if user.has_usable_password():
        return frozenset(user.password_issuers.values_list("pk", flat=True))
    link = LoginLink.objects.filter(user=user).exclude(used=None).order_by("-used").first()
    return frozenset(link.issuers if link is not None else ())
