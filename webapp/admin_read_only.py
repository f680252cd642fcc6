"""A read-only model admin: all changes are made by `jobs.actions`."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Field, JSONField, Model, TextField
from django.http import HttpRequest

from jobs import models

# Hashes of secrets, and encrypted ones, are not shown.
HIDDEN = ("password", "digest", "session_key", "session_data", "sealed", "sealed_url")
SECRET_MODELS = (models.ApiToken, models.LoginLink)
WIDE_FIELDS = (JSONField, TextField)


# Generic for the type checker alone: Django's class cannot be subscripted at run time.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Model]
else:
    ModelAdmin = admin.ModelAdmin


class ReadOnlyAdmin(ModelAdmin):
    """Lists and shows rows, but does not add, change or delete them."""

    list_per_page = 50
    # A count of all rows on each page is slow on large tables.
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def get_list_display(self, request: HttpRequest) -> Any:  # noqa: ARG002
        """Return the first columns, as many as fit on a line."""
        return ["__str__", *(field.name for field in _plain_fields(self.model))][:8]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuse filters by the fields that are not shown, which would reveal them character by character."""
        hidden = self.get_exclude(request)
        return lookup.partition("__")[0] not in hidden and super().lookup_allowed(lookup, value, request)

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> list[str]:  # noqa: ARG002
        """Leave out secrets' hashes."""
        has_secret = self.model in SECRET_MODELS
        return [name for name in HIDDEN if name != "digest" or has_secret]


class ReadOnlySite(admin.AdminSite):
    """A site that registers read-only pages alone.

    Libraries register pages of their own, on which an administrator could change the second factors of other
    people, without a row of the audit log.
    """

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register `admin_class` if it is read-only; leave out every other."""
        if admin_class is not None and issubclass(admin_class, ReadOnlyAdmin):
            super().register(model_or_iterable, admin_class, **options)


def _plain_fields(model: type[Model]) -> list["Field[Any, Any]"]:
    return [
        field
        for field in model._meta.fields
        if not isinstance(field, WIDE_FIELDS)
        and field.name not in HIDDEN
        and not field.is_relation
        and field.get_internal_type() != "BinaryField"
    ]
