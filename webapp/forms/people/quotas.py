"""The form for a project's quotas, and the rows in their table."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms

from jobs.actions.people import quota_changes
from jobs.answers.people.quotas import QuotaOut, QuotasOut
from jobs.models import Project, User
from jobs.queries.people.quotas import HIGHEST, default_quotas, own_quotas, quotas_revision
from webapp.forms.reading import ReadForm

GB = 10**9
LABELS = {
    "slots": "Slots",
    "bytes": "Disk",
    "jobs": "Unfinished jobs",
    "uploads": "Uploads in progress",
    "events": "Events a second",
}


@dataclass(frozen=True)
class QuotaRow:
    """A row in the table: the quota, its label, and its unit."""

    label: str
    quota: QuotaOut
    unit: str

    @property
    def is_nearly_full(self) -> bool:
        """Return whether nine tenths of the quota are used."""
        return self.quota.limit is not None and self.quota.used >= 0.9 * self.quota.limit


def _whole(name: str) -> forms.IntegerField:
    return forms.IntegerField(min_value=1, max_value=HIGHEST[name], required=False, label=LABELS[name])


def _gigabytes(count: int) -> str:
    return format((Decimal(count) / GB).normalize(), "f")


class QuotasForm(ReadForm):
    slots = _whole("slots")
    bytes = forms.DecimalField(
        min_value=1 / Decimal(GB),
        max_value=HIGHEST["bytes"] // GB,
        decimal_places=9,
        required=False,
        label="Disk in GB",
    )
    jobs = _whole("jobs")
    uploads = _whole("uploads")
    events = _whole("events")
    revision = forms.CharField(max_length=200, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in HIGHEST:
            default = getattr(default_quotas(), name)
            hint = _gigabytes(default) if name == "bytes" else f"{default:,}" if default else "no quota"
            self.fields[name].help_text = f"Empty: the default, {hint}."

    @classmethod
    def of(cls, project: Project) -> "QuotasForm":
        """Return the form with a project's quotas."""
        values: dict[str, Any] = {**own_quotas(project)}
        if (size := project.max_bytes) is not None:
            values["bytes"] = _gigabytes(size)
        return cls(initial={**values, "revision": quotas_revision(project)})

    @staticmethod
    def rows(quotas: QuotasOut) -> list[QuotaRow]:
        """Return the table's rows."""
        return [
            QuotaRow(label, getattr(quotas, name), "bytes" if name == "bytes" else "")
            for name, label in LABELS.items()
        ]

    def save(self, project: Project, values: Mapping[str, Any], *, by: User) -> Project:
        """Set a project's quotas to the cleaned values.

        Raises:
            StaleState: they were changed since the form was shown.
        """
        quotas = {name: values[name] for name in HIGHEST}
        if quotas["bytes"] is not None:
            quotas["bytes"] = int(quotas["bytes"] * GB)
        return quota_changes.change_quotas(project, quotas, seen=values["revision"], by=by)
