"""Approves and rejects promotion requests in Django's admin, by the same actions as the pages."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs.actions.registry import promotions
from jobs.errors import TrainyardError
from jobs.models import PromotionRequest, User
from jobs.queries.registry.gates import read_gates, unevaluated_gates
from webapp.admin_read_only import ReadOnlyAdmin

NOTE = "decided in the admin"


class PromotionRequestAdmin(ReadOnlyAdmin):
    """Shows promotion requests read-only, with actions that approve and reject them."""

    list_filter = ("state", "stage")
    list_select_related = ("version__model", "requested_by")
    search_fields = ("model__name", "requested_by__username")
    ordering = ("-id",)
    actions = ("approve", "reject")

    def get_list_display(self, request: HttpRequest) -> Any:  # noqa: ARG002
        return ["id", "state", "version", "stage", "requested_by", "created", "expires"]

    @admin.action(
        description="Approve (gates that were not evaluated keep a request open)", permissions=["view"]
    )
    def approve(self, request: HttpRequest, rows: QuerySet[PromotionRequest]) -> None:
        """Approve each request as the logged-in user."""
        self._decide(request, rows, promotions.approve, "approved")

    @admin.action(description="Reject", permissions=["view"])
    def reject(self, request: HttpRequest, rows: QuerySet[PromotionRequest]) -> None:
        """Reject each request as the logged-in user."""
        self._decide(request, rows, promotions.reject, "rejected")

    def _decide(
        self,
        request: HttpRequest,
        rows: QuerySet[PromotionRequest],
        act: Callable[..., PromotionRequest],
        word: str,
    ) -> None:
        user = request.user
        if not isinstance(user, User):
            return
        for row in rows.select_related("model__project", "version__artifact"):
            try:
                act(row, comment=NOTE, by=user)
            except TrainyardError as error:
                open_gates = unevaluated_gates(read_gates(row))
                hint = f" Open gates: {', '.join(open_gates)}; accept them on its page." if open_gates else ""
                self.message_user(request, f"Request {row.pk}: {error.message}{hint}", messages.ERROR)
            else:
                self.message_user(request, f"Request {row.pk} is {word}.", messages.SUCCESS)
