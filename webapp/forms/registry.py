"""Forms of models, versions, promotions and endpoints."""

from collections.abc import Iterable
from typing import Any

from django import forms

from jobs.models import ModelVersion, Project


class ModelForm(forms.Form):
    """A new model."""

    project: "forms.ModelChoiceField[Project]" = forms.ModelChoiceField(
        queryset=None, to_field_name="slug", empty_label=None
    )
    name = forms.CharField(
        max_length=63, help_text="Small letters, digits and hyphens; it stands in the prediction address."
    )
    description = forms.CharField(required=False, max_length=10_000, help_text="What the model is for.")

    def __init__(self, *args: Any, projects: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = projects  # type: ignore[attr-defined]


class UploadForm(forms.Form):
    """A version from a file."""

    file = forms.FileField(label="Model file", help_text="A .keras archive; it is validated by a worker.")


class RegisterForm(forms.Form):
    """The model that a job's artifact becomes a version of: one that there is, or a new one."""

    model = forms.ChoiceField(required=False, help_text="Whose newest version it becomes.")
    name = forms.CharField(
        label="Name of the new model",
        required=False,
        max_length=63,
        help_text="If it is new: small letters, digits and hyphens; it stands in the prediction address.",
    )

    def __init__(self, *args: Any, models: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "a new model"), *((name, name) for name in models)]
        self.fields["model"].choices = choices  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Want a name where the model is new."""
        given = self.cleaned_data
        if not (self.errors or given["model"] or given["name"]):
            self.add_error("name", "Give the new model a name.")
        return given


class AliasForm(forms.Form):
    """An alias and where it points."""

    alias = forms.CharField(max_length=63)
    version = forms.TypedChoiceField(coerce=int)

    def __init__(self, *args: Any, versions: Iterable[ModelVersion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(version.number, f"v{version.number}") for version in versions]
        self.fields["version"].choices = choices  # type: ignore[attr-defined]


class CardForm(forms.Form):
    """The text of a version's card."""

    card = forms.CharField(
        required=False, max_length=100_000, widget=forms.Textarea(attrs={"rows": 14}), label="Model card"
    )


class PromotionForm(forms.Form):
    """A wish to promote."""

    stage = forms.ChoiceField(choices=[("production", "production"), ("staging", "staging")])
    comment = forms.CharField(
        required=False, max_length=10_000, widget=forms.Textarea(attrs={"rows": 2}), label="Why"
    )


class DecisionForm(forms.Form):
    """What one has to say about a request, and the open gates one answers for."""

    comment = forms.CharField(
        required=False, max_length=10_000, widget=forms.Textarea(attrs={"rows": 3}), label="Comment"
    )
    accept = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, open_gates: Iterable[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["accept"].choices = [(name, name) for name in open_gates]  # type: ignore[attr-defined]


class RollbackForm(forms.Form):
    """Why."""

    reason = forms.CharField(
        max_length=2000, label="Reason", help_text="Stands in the history and the audit."
    )
