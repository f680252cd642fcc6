"""The form for "Find me a good model": the data, the objective, the limit, and the registration."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from jobs.models import Dataset, DatasetVersion
from jobs.queries.data.datasets import READY, newest_own
from jobs.spec.plan.find_model import (
    FEWEST_TRIALS,
    MOST_MINUTES,
    MOST_TRIALS,
    Budget,
    default_objective,
    offered_objectives,
)
from jobs.spec.sections import measures
from webapp.forms.reading import ReadForm

_VERBS = {"min": "minimize", "max": "maximize"}


class FindModelForm(ReadForm):
    """Reads a data set version, an objective that its task offers, and a budget in minutes or in trials."""

    dataset = forms.ChoiceField(label="Data set", help_text="Versions that are ready to be used.")
    objective = forms.ChoiceField(
        label="Objective", required=False, help_text="Ranks the trials; measured on validation data."
    )
    amount = forms.FloatField(label="Limit", min_value=0.1, max_value=MOST_MINUTES, initial=10)
    unit = forms.ChoiceField(label="Unit", choices=[("minutes", "minutes"), ("trials", "trials")])
    register_as = forms.CharField(
        label="Register as",
        max_length=63,
        required=False,
        widget=forms.TextInput(attrs={"list": "known-models"}),
        help_text="A model that gets the best one and the ensemble as versions. Empty: none.",
    )
    name = forms.CharField(
        label="Name", max_length=200, required=False, help_text="Empty: made from the name of the data set."
    )

    def __init__(self, datasets: QuerySet[Dataset], *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        rows = list(datasets)
        self.versions = {
            f"{dataset.slug}:{version.number}": version
            for dataset in rows
            for version in dataset.versions.all()
            if version.state == READY
        }
        self.fields["dataset"].choices = [(key, _label(key)) for key in self.versions]  # type: ignore[attr-defined]
        own = newest_own(rows)
        if own is not None and self.initial.get("dataset") not in self.versions:
            self.initial["dataset"] = f"{own.dataset.slug}:{own.number}"
        self._offer_objectives()

    def _offer_objectives(self) -> None:
        """Offer the metrics of the chosen data's task; its default is chosen at first."""
        profile = version.profile if (version := self.shown_version()) is not None else None
        if profile is None:
            return
        offered = offered_objectives(profile.task)
        self.fields["objective"].choices = [  # type: ignore[attr-defined]
            (name, f"{_VERBS[measures.direction(name)]} {name}") for name in offered
        ]
        if self.initial.get("objective") not in offered:
            self.initial["objective"] = default_objective(profile.task)

    def clean(self) -> dict[str, Any]:
        """Require a whole number of trials that a search may have."""
        values = super().clean() or self.cleaned_data
        amount = values.get("amount")
        is_whole = amount is not None and amount.is_integer() and FEWEST_TRIALS <= amount <= MOST_TRIALS
        if amount is not None and values.get("unit") == "trials" and not is_whole:
            self.add_error(
                "amount", f"Give a whole number of trials from {FEWEST_TRIALS} to {MOST_TRIALS:,}."
            )
        return values

    def shown_version(self) -> DatasetVersion | None:
        """Return the version that the form shows as chosen; None without any version."""
        first = next(iter(self.versions.values()), None)
        return self.versions.get(str(self["dataset"].value()), first)

    def version(self) -> DatasetVersion:
        """Return the chosen version."""
        return self.versions[self.cleaned_data["dataset"]]

    def budget(self) -> Budget:
        """Return the chosen budget."""
        return Budget(**{self.cleaned_data["unit"]: self.cleaned_data["amount"]})


def _label(key: str) -> str:
    slug, _, number = key.rpartition(":")
    return f"{slug} v{number}"
