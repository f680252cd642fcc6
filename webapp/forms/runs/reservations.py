"""The form for a reservation of slots or GPUs."""

from collections.abc import Mapping
from typing import Any

from django import forms

from jobs.actions.runs.reservations import WantedReservation, create_reservation
from jobs.models import Reservation, User
from jobs.spec.sections.resources import POOL
from webapp.forms.reading import ReadForm

MOST_SLOTS = 100_000


def _time(label: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(
        label=label, widget=widget, input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
    )


class ReservationForm(ReadForm):
    pool = forms.RegexField(POOL, label="Pool", initial="default")
    worker = forms.CharField(
        max_length=200, required=False, label="Worker", help_text="Its name. Empty: the workers of the pool."
    )
    slots = forms.IntegerField(
        min_value=1, max_value=MOST_SLOTS, required=False, label="Slots", help_text="Empty: all."
    )
    gpus = forms.CharField(
        max_length=1000,
        required=False,
        label="GPUs",
        help_text="Instead of slots: their names on the worker, such as gpu:1, gpu:2.",
    )
    begins = _time("Begin (UTC)")
    ends = _time("End (UTC)")
    user = forms.CharField(max_length=150, required=False, label="Person", help_text="Their user name.")
    project = forms.CharField(
        max_length=63, required=False, label="Project", help_text="Instead of a person: its slug."
    )
    note = forms.CharField(max_length=200, required=False, label="Note")

    def clean_gpus(self) -> list[str]:
        """Split the names at commas and spaces."""
        return str(self.cleaned_data["gpus"]).replace(",", " ").split()

    def save(self, values: Mapping[str, Any], *, by: User) -> Reservation:
        """Create the reservation with the cleaned values."""
        return create_reservation(WantedReservation(**values), by=by)
