"""Forms for models, versions, promotions and endpoints."""

from collections.abc import Iterable
from typing import Any

from django import forms

from jobs.models import CodeVersion, ModelVersion, Project
from jobs.spec.exports import STORED
from webapp.forms.reading import ReadForm, SharedTextForm


class ModelForm(forms.Form):
    project: "forms.ModelChoiceField[Project]" = forms.ModelChoiceField(
        queryset=None, to_field_name="slug", empty_label=None
    )
    name = forms.CharField(
        max_length=63, help_text="Lowercase letters, digits, - and _; part of the prediction address."
    )
    description = forms.CharField(required=False, max_length=10_000, help_text="The purpose of the model.")

    def __init__(self, *args: Any, projects: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = projects  # type: ignore[attr-defined]


class UploadForm(forms.Form):
    """A model file. Its code can be chosen only by users who may have it executed."""

    file = forms.FileField(
        label="Model file", help_text=f"A {STORED.suffix} archive; it is validated by a worker."
    )
    sample = forms.FileField(
        required=False,
        label="Sample rows",
        help_text="A few rows that the model takes, as NPZ with one array for each input or as JSON "
        '{"instances": [row, …]}. Without them its validation makes up rows.',
    )
    code = forms.ChoiceField(
        required=False,
        help_text="For a file with layers or other objects of your own. It runs in a sandbox only.",
    )

    def __init__(self, *args: Any, code: Iterable[CodeVersion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(version.digest, str(version)) for version in code]
        if choices:
            self.fields["code"].choices = [("", "none: built-in layers only"), *choices]  # type: ignore[attr-defined]
        else:
            del self.fields["code"]


class RegisterForm(forms.Form):
    """Chooses the model to which a job's artifact is added: an existing one or a new one."""

    model = forms.ChoiceField(required=False, help_text="The artifact becomes its newest version.")
    name = forms.CharField(
        label="Name of the new model",
        required=False,
        max_length=63,
        help_text="For a new model: lowercase letters, digits, - and _; part of the prediction address.",
    )

    def __init__(self, *args: Any, models: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "a new model"), *((name, name) for name in models)]
        self.fields["model"].choices = choices  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Require a name for a new model."""
        values = self.cleaned_data
        if not (self.errors or values["model"] or values["name"]):
            self.add_error("name", "Enter a name for the new model.")
        return values


class AliasForm(ReadForm):
    alias = forms.CharField(max_length=63)
    version = forms.TypedChoiceField(coerce=int)

    def __init__(self, *args: Any, versions: Iterable[ModelVersion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(version.number, f"v{version.number}") for version in versions]
        self.fields["version"].choices = choices  # type: ignore[attr-defined]


class CardForm(SharedTextForm):
    card = forms.CharField(
        required=False, max_length=100_000, widget=forms.Textarea(attrs={"rows": 14}), label="Model card"
    )


class PromotionForm(ReadForm):
    stage = forms.ChoiceField(choices=[("production", "production"), ("staging", "staging")])
    comment = forms.CharField(
        required=False, max_length=10_000, widget=forms.Textarea(attrs={"rows": 2}), label="Reason"
    )


class DecisionForm(forms.Form):
    """A decision on a promotion request: a comment, and the open gates that the approver accepts."""

    comment = forms.CharField(
        required=False,
        max_length=10_000,
        # If another person decides meanwhile, the text becomes a comment to send under Thread.
        widget=forms.Textarea(attrs={"rows": 3, "data-moves-to": "at/comment"}),
        label="Comment",
    )
    accept = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, open_gates: Iterable[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["accept"].choices = [(name, name) for name in open_gates]  # type: ignore[attr-defined]


class RollbackForm(ReadForm):
    reason = forms.CharField(
        max_length=2000, label="Reason", help_text="Shown in the history and the audit log."
    )


class DownForm(RollbackForm):
    """The reason for taking an endpoint down."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Its page has the field of the rollback form, too.
        super().__init__(*args, **{"auto_id": "down_%s", **kwargs})
