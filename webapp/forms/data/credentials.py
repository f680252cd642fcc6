"""The forms for credentials, one for each kind. A secret is never shown again, not even after an error."""

from typing import Any

from django import forms

from jobs.actions.data import credentials as actions
from jobs.models import Credential, Project, User
from jobs.spec.data.credentials import LABELS
from webapp.forms.reading import ReadForm


class SecretArea(forms.Textarea):
    """A text area that does not show its value again."""

    def format_value(self, value: Any) -> str:  # noqa: ARG002
        return ""


def _secret(label: str, *, required: bool = True) -> forms.CharField:
    # Not stripped: a password may begin or end with a space.
    widget = forms.PasswordInput(attrs={"autocomplete": "off"})
    return forms.CharField(label=label, widget=widget, required=required, strip=False, max_length=8000)


def _host() -> forms.CharField:
    return forms.CharField(
        max_length=300, label="Host", help_text="host or host:port. The secret is sent to no other one."
    )


class CredentialForm(ReadForm):
    """The field that all kinds have.

    Attributes:
        kind: the credential kind that the form makes.
    """

    kind = ""
    name = forms.CharField(
        max_length=63,
        label="Name",
        help_text="Lower-case letters, digits, - and _. Saved again, it is replaced.",
    )

    def save(self, project: Project, values: dict[str, Any], *, by: User) -> Credential:
        """Save the credential.

        Raises:
            BadInput: a field is invalid.
            Conflict: the project has as many credentials as it may have.
        """
        fields = {name: value for name, value in values.items() if name != "name"}
        return actions.save(
            project, values["name"], actions.parse_credential({"kind": self.kind, **fields}), by=by
        )


class S3Form(CredentialForm):
    kind = "s3"
    key_id = forms.CharField(max_length=200, label="Access key id")
    secret = _secret("Secret access key")
    region = forms.CharField(
        max_length=100, required=False, label="Region", help_text="Such as eu-central-1."
    )
    endpoint = forms.CharField(
        max_length=500,
        required=False,
        label="Endpoint",
        help_text="https://host or https://host:port of another server than Amazon's.",
    )


class BearerForm(CredentialForm):
    kind = "bearer"
    host = _host()
    token = _secret("Token")


class BasicForm(CredentialForm):
    kind = "basic"
    host = _host()
    user = forms.CharField(max_length=300, label="User")
    password = _secret("Password", required=False)


class GcsForm(CredentialForm):
    kind = "gcs"
    account = forms.CharField(
        max_length=20_000, widget=SecretArea(attrs={"rows": 6}), label="JSON file of the service account"
    )


FORMS: dict[str, type[CredentialForm]] = {
    form.kind: form for form in (S3Form, BearerForm, BasicForm, GcsForm)
}
KINDS = [(kind, LABELS[kind]) for kind in FORMS]
"""The kinds with their labels, in the order of the tabs."""
