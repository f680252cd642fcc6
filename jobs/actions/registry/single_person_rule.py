"""Switches a project's single-person rule, and decides whether it applies to a new request.

Under the rule, a promotion's requester may decide it. No one may use the rule that they switched on
themselves: otherwise an administrator could release alone what two people must agree on.
"""

from django.db import transaction
from django.db.models import Q

from jobs import access, clock
from jobs.actions.audit import audit
from jobs.errors import Forbidden
from jobs.models import ModelVersion, Project, PromotionRequest, User
from jobs.queries.registry.authors import author_ids, files_of


def switch_rule(project: Project, on: bool, *, by: User | None) -> Project:
    """Switch the rule on or off. Requests that are open keep the rule that they were opened under.

    Args:
        project: the project; its fields are refreshed.
        on: whether the rule applies to requests opened from now on.
        by: an administrator; None is the operator at the terminal.

    Raises:
        Forbidden: `by` is not an administrator of the installation, or switches the rule on and is the
            requester or author of an open request, or logged in by another person's login link.
    """
    with transaction.atomic():
        # Locked, so that a request that is opened at the same time sees the rule before or after, not both.
        current = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if current.single_person == on:
            return project
        if by is not None:
            access.require_admin(by)
            if on:
                _require_own_login(by)
                _require_no_open_request(project, by)
        rule = {"single_person_by": by, "single_person_at": clock.now()} if on else {}
        Project.objects.filter(pk=project.pk).update(single_person=on, **rule)
        project.refresh_from_db()
        audit.record("project.single_person", project, by=by, project=project, on=on)
    return project


def _require_own_login(by: User) -> None:
    # Otherwise who made the link could switch it on as another person, for their own requests.
    if by.login_issuers:
        raise Forbidden(
            "This session came from a login link of another person: log in with your password.",
            code="not_independent",
        )


def _require_no_open_request(project: Project, by: User) -> None:
    open_ones = PromotionRequest.objects.open().filter(model__project=project)
    concerned = Q(requested_by=by) | Q(version__artifact__in=files_of([by.pk]))
    own_request = open_ones.filter(concerned).order_by("pk").first()
    if own_request is not None:
        raise Forbidden(
            f"Request {own_request.pk} of this project is yours and open: another administrator must switch "
            "this on.",
            code="not_independent",
        )


def rule_applies(version: ModelVersion, *, by: User) -> bool:
    """Return whether the rule applies to a request for `version` that `by` opens now.

    Called in the transaction that creates the request: the project is locked until it ends.
    """
    project = Project.objects.select_for_update(no_key=True).get(pk=version.model.project_id)
    switched_by = project.single_person_by_id
    if not project.single_person:
        return False
    return switched_by is None or switched_by not in {by.pk, *by.login_issuers, *author_ids(version)}
