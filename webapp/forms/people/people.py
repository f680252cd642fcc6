"""Forms for projects, members, users and tokens."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from django import forms

from jobs.actions.people.people import SLUG
from jobs.actions.people.person_limits import HIGHEST
from jobs.actions.people.tokens import ADMIN_SCOPES, OFFERED_SCOPES
from jobs.models import Role
from webapp.forms.reading import ReadForm

LIFETIMES = (("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "no expiry"))
SCOPE_HELP = {
    "read": "read everything that its owner may see",
    "write": "create and change experiments, jobs, data sets and models",
    "approve": "decide promotion requests",
    "predict": "ask the prediction server",
    "admin": "manage users and workers, read the audit log",
    "metrics": "read the metrics of all parts, for a monitor such as Prometheus",
}


def slug_of(name: str) -> str:
    """Convert a name for addresses. The page's script does the same while it is written."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:63].rstrip("-")


class ProjectForm(ReadForm):
    name = forms.CharField(max_length=200, label="Name")
    slug = forms.RegexField(
        rf"^{SLUG.pattern}$",
        required=False,
        max_length=63,
        label="Slug",
        help_text="Part of addresses; it cannot be changed later. Lowercase letters, digits and hyphens; "
        "made from the name if empty.",
        error_messages={"invalid": "Use lowercase letters, digits and, between them, hyphens."},
        widget=forms.TextInput(attrs={"data-slug-of": "id_name"}),
    )

    def clean(self) -> dict[str, Any]:
        """Make the slug from the name, unless there is one."""
        cleaned = super().clean() or self.cleaned_data
        if not cleaned.get("slug") and "slug" not in self.errors and "name" in cleaned:
            cleaned["slug"] = slug_of(cleaned["name"])
            if not cleaned["slug"]:
                self.add_error("slug", "Enter a slug: the name has no letters or digits for it.")
        return cleaned


class ProjectSettingsForm(ReadForm):
    name = forms.CharField(max_length=200, label="Name")
    single_person = forms.BooleanField(
        required=False,
        label="One person may request and approve",
        help_text="For requests made from now on. Those of the administrator who switches it on still need "
        "another person. Shown as a badge from then on, and in the audit log.",
    )

    def __init__(self, *args: object, is_admin: bool, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        # Only administrators of the installation may switch it.
        if not is_admin:
            del self.fields["single_person"]


class MemberForm(ReadForm):
    user = forms.CharField(max_length=150, label="User name")
    role = forms.ChoiceField(choices=[(role, role.label) for role in Role], initial=Role.MEMBER, label="Role")


class PersonForm(ReadForm):
    """Invites a person, into a project if one is chosen."""

    username = forms.CharField(max_length=150, label="User name", help_text="Letters, digits and .@+-_")
    project = forms.ChoiceField(required=False, label="Project", help_text="More can follow later")
    role = forms.ChoiceField(
        choices=[(role, role.label) for role in Role],
        initial=Role.MEMBER,
        required=False,
        label="Role",
    )
    admin = forms.BooleanField(required=False, label="Administrator of the installation")

    def __init__(self, *args: object, projects: Sequence[tuple[str, str]], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["project"].choices = [("", "none yet"), *projects]  # type: ignore[attr-defined]


class SlotsForm(ReadForm):
    """An empty field means no limit."""

    max_slots = forms.IntegerField(min_value=1, max_value=HIGHEST, required=False, label="Slots at once")


class TokenForm(ReadForm):
    name = forms.CharField(max_length=100, label="Purpose")
    scopes = forms.MultipleChoiceField(
        choices=[(scope, f"{scope}: {SCOPE_HELP[scope]}") for scope in OFFERED_SCOPES],
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
        initial=["read"],
        label="Scopes",
    )
    endpoints = forms.CharField(
        max_length=5000,
        required=False,
        label="Endpoints",
        help_text="With the scope predict: names, with commas between. Empty: all of your projects.",
    )
    days = forms.ChoiceField(choices=LIFETIMES, required=False, initial="90", label="Lifetime")

    def clean_endpoints(self) -> list[str] | None:
        """Return the names; None for all."""
        return [name.strip() for name in self.cleaned_data["endpoints"].split(",") if name.strip()] or None

    def __init__(self, *args: object, is_admin: bool = False, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if not is_admin:
            scopes = self.fields["scopes"]
            scopes.choices = [pair for pair in scopes.choices if pair[0] not in ADMIN_SCOPES]  # type: ignore[attr-defined]
