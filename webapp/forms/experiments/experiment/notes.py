"""The form for notes and tags on an experiment's page."""

from typing import Any

from django import forms

from jobs.models import Experiment
from webapp.forms.reading import SharedTextForm


class NotesForm(SharedTextForm):
    notes = forms.CharField(required=False, strip=False, widget=forms.Textarea(attrs={"rows": 5}))
    tags = forms.CharField(required=False, help_text="Separated by commas.")

    @staticmethod
    def initial_of(experiment: Experiment) -> dict[str, Any]:
        """Return the form's initial values."""
        tags = ", ".join(experiment.tags)
        return {"notes": experiment.notes, "tags": tags, "seen": experiment.notes_digest}
