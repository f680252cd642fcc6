"""Forms of projects, members, users and tokens."""

from django import forms

from jobs.access import offered_roles
from jobs.actions.people import SLUG
from jobs.actions.tokens import ADMIN_SCOPES, OFFERED_SCOPES
from jobs.models import Role
from webapp.forms.reading import ReadForm

LIFETIMES = (("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "no expiry"))
SCOPE_HELP = {
    "read": "read everything that its owner may see",
    "write": "create and change experiments, jobs, data sets and models",
    "approve": "decide promotion requests",
    "serve": "roll back endpoints, act as a prediction server",
    "admin": "manage users and workers, read the audit log",
}


class ProjectForm(ReadForm):
    name = forms.CharField(max_length=200, label="Name")
    slug = forms.RegexField(
        rf"^{SLUG.pattern}$",
        max_length=63,
        label="Slug",
        help_text="Part of addresses; it cannot be changed later. Lowercase letters, digits and hyphens.",
        error_messages={"invalid": "Use lowercase letters, digits and, between them, hyphens."},
    )
    single_person = forms.BooleanField(
        required=False,
        label="One person may request and approve",
        help_text="For a project of one person. Shown as a badge and in the audit log.",
    )


class ProjectSettingsForm(ReadForm):
    name = forms.CharField(max_length=200, label="Name")
    max_slots = forms.IntegerField(
        min_value=1,
        max_value=100_000,
        required=False,
        label="Slots at once",
        help_text="The most slots that its jobs may hold together. Empty: no quota.",
    )
    single_person = forms.BooleanField(required=False, label="One person may request and approve")


class MemberForm(ReadForm):
    user = forms.CharField(max_length=150, label="User name")
    role = forms.ChoiceField(
        choices=[(role, role.label) for role in offered_roles()], initial=Role.MEMBER, label="Role"
    )


class PersonForm(ReadForm):
    username = forms.CharField(max_length=150, label="User name", help_text="Letters, digits and .@+-_")
    admin = forms.BooleanField(required=False, label="Administrator of the installation")


class TokenForm(ReadForm):
    name = forms.CharField(max_length=100, label="Purpose")
    scopes = forms.MultipleChoiceField(
        choices=[(scope, f"{scope}: {SCOPE_HELP[scope]}") for scope in OFFERED_SCOPES],
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
        initial=["read"],
        label="Scopes",
    )
    days = forms.ChoiceField(choices=LIFETIMES, required=False, initial="90", label="Expires after")

    def __init__(self, *args: object, is_admin: bool = False, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if not is_admin:
            scopes = self.fields["scopes"]
            scopes.choices = [pair for pair in scopes.choices if pair[0] not in ADMIN_SCOPES]  # type: ignore[attr-defined]
