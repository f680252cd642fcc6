"""The form that deactivates an account."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from jobs.actions.people.departures import RIGHTS_DIFFER
from jobs.models import User
from webapp.forms.reading import ReadForm

KEEP, HAND, REVOKE = "keep", "hand", "revoke"
CHOICES = (
    (KEEP, "Keep them: they stop now, and work again if the account is reactivated."),
    (HAND, "Hand them over: applications keep working, with the rights of another person."),
    (REVOKE, "Revoke them for good."),
)


class DepartureForm(ReadForm):
    """Keeps, hands over or revokes tokens.

    `shown_for` is the new owner for whom the page has shown a difference of rights.
    """

    tokens = forms.ChoiceField(
        choices=CHOICES,
        initial=KEEP,
        label="Tokens",
        widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
    )
    to = forms.ChoiceField(required=False, label="New owner")
    accept = forms.BooleanField(required=False, label="Hand over although rights change")
    shown_for = forms.CharField(required=False)

    def __init__(self, *args: Any, user: User, receivers: QuerySet[User], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [(person.username, person.username) for person in receivers]
        self.fields["to"].choices = [("", "choose a person"), *names]  # type: ignore[attr-defined]
        if not user.is_active:
            choices = self.fields["tokens"]
            choices.choices = CHOICES[1:]  # type: ignore[attr-defined]
            choices.initial = HAND

    @property
    def shows_difference(self) -> bool:
        """Whether the form was refused since rights would change, so that the change can be accepted."""
        return self.refusal is not None and self.refusal.code == RIGHTS_DIFFER

    def clean(self) -> dict[str, Any]:
        """Require a new owner if tokens are handed over. A difference is accepted only once it was shown."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("accept") and cleaned.get("shown_for") != cleaned.get("to"):
            cleaned["accept"] = False
            # Nor is the box ticked beside the difference that is shown next.
            self.data = {name: value for name, value in self.data.items() if name != "accept"}
        if cleaned.get("tokens") == HAND and not cleaned.get("to") and "to" not in self.errors:
            self.add_error("to", "Choose who gets the tokens.")
        return cleaned
