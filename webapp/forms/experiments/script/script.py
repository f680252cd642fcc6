"""The form for a script's experiment."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms

from jobs.models import CodeVersion, Dataset
from jobs.queries.data.datasets import READY
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.labels import read_labels
from jobs.spec.problems import Problem
from jobs.spec.sections.pruning import PRUNERS
from jobs.spec.sections.resources import MOST_MINUTES
from jobs.spec.sections.script_model import MAX_TEXT, MODEL_FILE
from webapp.forms.experiments.script.arguments import SHOWN_FIELDS, ArgumentRows
from webapp.forms.experiments.script.devices import CHOICES, EXAMPLE, read_axes
from webapp.forms.experiments.script.spec import NO_DATA
from webapp.forms.reading import ReadForm

PLACES = {
    "/spec/model/entry": "entry",
    "/spec/model/digest": "code",
    "/spec/model/env": "variables",
    "/spec/data": "dataset",
    "/spec/search/objective": "metric",
    "/spec/search/objective/direction": "direction",
    "/spec/search/algorithm": "algorithm",
    "/spec/search/max_trials": "max_trials",
    "/spec/search/max_minutes": "minutes",
    "/spec/search/executions_per_trial": "executions",
    "/spec/search/parallel_trials": "parallel",
    "/spec/search/pruner": "pruner",
    "/spec/fit/epochs": "steps",
    "/spec/fit/seed": "seed",
    "/spec/after/register": "register",
    "/spec/resources/pool": "pool",
    "/spec/resources/labels": "labels",
    "/spec/resources/slots": "slots",
    "/spec/resources/gpu": "gpus",
    "/spec/resources/gpu/name": "gpu_model",
    "/spec/resources/gpu/memory_gb": "gpu_memory",
    "/spec/resources/gpu/count": "gpus",
    "/spec/mesh": "axes",
    "/spec/mesh/devices": "devices",
    "/spec/mesh/simulate": "devices",
    "/spec/resources/max_minutes": "minutes",
    "/name": "name",
}
"""The fields of parts of a spec."""
Json = dict[str, Any]


def _listed(name: str, absent: str, more: Mapping[str, str] | None = None) -> forms.TextInput:
    """Return the input of a text with a list of known values, and the sentence for one that no worker has."""
    return forms.TextInput(attrs={"list": f"known-{name}", "data-absent": absent, **(more or {})})


class ScriptForm(ReadForm):
    """The fields beside the arguments, which have separate rows.

    Attributes:
        arguments: those rows.
        searched: the names of the searched arguments, in the order of the spec.
    """

    arguments: ArgumentRows | None = None
    searched: Sequence[str] = ()

    name = forms.CharField(label="Name", max_length=200)
    code = forms.ChoiceField(label="Version of code")
    entry = forms.CharField(
        label="Script",
        max_length=300,
        help_text="A .py file of the code, or -m and a module.",
        widget=forms.TextInput(attrs={"list": "scripts"}),
    )
    variables = forms.CharField(
        label="Environment variables",
        required=False,
        max_length=50 * MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "MODE=quick"}),
        help_text="NAME=value, one a line. No secrets: everyone who sees the experiment can read them.",
    )
    dataset = forms.ChoiceField(
        label="Data", required=False, help_text="The script finds them at TRAINYARD_DATA, as Parquet or NPZ."
    )
    steps = forms.IntegerField(
        label="Steps of a full run",
        min_value=1,
        max_value=100_000,
        initial=100,
        help_text="How many steps the script reports; for the progress and for pruners.",
    )
    seed = forms.IntegerField(
        label="Seed", min_value=0, max_value=2**32 - 1, initial=0, help_text="The variable TRAINYARD_SEED."
    )
    metric = forms.CharField(
        label="Objective", required=False, max_length=200, help_text="A metric that the script reports."
    )
    direction = forms.ChoiceField(
        label="Direction",
        required=False,
        choices=[("", "choose"), ("max", "higher is better"), ("min", "lower is better")],
    )
    algorithm = forms.ChoiceField(label="Algorithm", required=False)
    max_trials = forms.IntegerField(
        label="Trials, at most", required=False, min_value=1, max_value=100_000, initial=12
    )
    executions = forms.IntegerField(
        label="Runs of each trial", required=False, min_value=1, max_value=100, initial=1,
        help_text="With another seed each; the score is their mean.",
    )  # fmt: skip
    parallel = forms.IntegerField(
        label="Trials at once",
        required=False,
        min_value=1,
        max_value=10_000,
        help_text="Empty: all free slots.",
    )
    pruner = forms.ChoiceField(
        label="Pruner", required=False, help_text="Ends runs that are worse than others at the same step."
    )
    register = forms.CharField(
        label="Register as",
        required=False,
        max_length=63,
        help_text=f"A model of which the file {MODEL_FILE} that the script writes becomes a version.",
        widget=forms.TextInput(attrs={"list": "known-models"}),
    )
    pool = forms.CharField(
        label="Pool",
        max_length=63,
        initial="default",
        widget=_listed("pools", "No worker is running in the pool {}, so the run will wait."),
    )
    labels = forms.CharField(
        label="Labels",
        required=False,
        max_length=2_000,
        help_text="Only workers with all of them run it, such as gpu=h200, site=berlin.",
        widget=_listed(
            "labels", "No running worker has {}, so the run will wait.", {"data-listed-words": ""}
        ),
    )
    slots = forms.IntegerField(label="Slots of a run", min_value=1, max_value=1024, initial=1)
    gpu_model = forms.CharField(
        label="Model of the GPUs",
        required=False,
        max_length=100,
        help_text="Words of the model, such as H200, or one device, such as gpu:1. Empty: any.",
        widget=_listed(
            "gpus", "No running worker has the GPU {}, so the run will wait.", {"data-known": "words"}
        ),
    )
    gpu_memory = forms.FloatField(
        label="Memory of each (GB)", required=False, min_value=0, help_text="At least. Empty: any."
    )
    gpus = forms.IntegerField(
        label="GPUs of a run",
        required=False,
        min_value=1,
        max_value=1024,
        help_text="Each needs a slot. Empty: one of that kind; or without a kind, whatever its slots give.",
    )
    devices = forms.ChoiceField(
        label="Devices",
        required=False,
        choices=CHOICES,
        help_text="The script places its own arrays on them.",
    )
    axes = forms.CharField(
        label="Axes of the devices",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": EXAMPLE}),
        help_text="Names and numbers, which the script finds in TRAINYARD_MESH; 8 alone is one axis.",
    )
    minutes = forms.FloatField(
        label="Minutes, at most",
        required=False,
        min_value=0,
        max_value=MOST_MINUTES,
        help_text="A single run that takes longer is stopped; waiting does not count. A search ends after so "
        "many minutes from its start, with the trials that it has.",
    )
    seen = forms.CharField(required=False, max_length=10, widget=forms.HiddenInput)
    tags = forms.CharField(required=False, widget=forms.HiddenInput)
    notes = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    def __init__(
        self,
        codes: Iterable[CodeVersion],
        datasets: Iterable[Dataset],
        *args: Any,
        offers_tpu: bool = False,
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        versions = [
            f"{dataset.slug}:{version.number}"
            for dataset in datasets
            for version in dataset.versions.all()
            if version.state == READY
        ]
        newest = dict.fromkeys(key.rpartition(":")[0] for key in versions)
        choices = [
            (NO_DATA, "no data"),
            *((f"{slug}:", f"{slug}, newest version") for slug in newest),
            *((key, key.replace(":", " v")) for key in versions),
        ]
        algorithms = [(info.name, info.label) for info in ALGORITHMS.values() if not info.has_rungs]
        pruners = [("", "none"), *((name, name) for name in PRUNERS)]
        offered = [(version.digest, str(version)) for version in codes]
        # One in the spec is shown, and the plan refuses it.
        with_tpu = offers_tpu or self["devices"].value() == "tpu"
        devices = [choice for choice in CHOICES if with_tpu or choice[0] != "tpu"]
        _offer_choices(
            self, devices=devices, code=offered, dataset=choices, algorithm=algorithms, pruner=pruners
        )

    def clean_variables(self) -> dict[str, str]:
        """Return the environment variables by name."""
        variables: dict[str, str] = {}
        for line in self.cleaned_data["variables"].splitlines():
            name, equals, value = line.strip().partition("=")
            if line.strip() and not equals:
                raise forms.ValidationError(f"{line.strip()[:50]!r} has no =; write NAME=value.")
            if line.strip():
                variables[name.strip()] = value.strip()
        return variables

    def clean_axes(self) -> dict[str, int]:
        """Return the size of each axis by its name."""
        try:
            axes = read_axes(self.cleaned_data["axes"])
        except ValueError as error:
            raise forms.ValidationError(f"{error}.") from error
        devices = self.cleaned_data.get("devices")
        if devices and not axes:
            raise forms.ValidationError(f"Enter how many devices it gets, such as {EXAMPLE}.")
        if axes and not devices:
            raise forms.ValidationError("Choose the devices, or leave the axes empty.")
        return axes

    def clean_labels(self) -> dict[str, str]:
        """Return the labels by name."""
        try:
            return read_labels(self.cleaned_data["labels"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def has_objective(self, values: Mapping[str, Any]) -> bool:
        """Return whether a search's objective is complete; if not, its fields have errors."""
        missing = {
            "metric": "" if values["metric"].strip() else "Enter the metric that ranks the trials.",
            "direction": "" if values["direction"] else "Choose whether higher or lower values are better.",
        }
        for name, message in missing.items():
            if message:
                self.add_error(name, message)
        return not any(missing.values())

    def add_problems(self, error: Any) -> None:
        """Add an action's problems at the nearest field; those of arguments in their rows."""
        problems = getattr(error, "problems", ())
        for problem in problems:
            if not self._add_to_row(problem):
                self.add_error(*_field_of_problem(problem))
        if not problems:
            self.add_error(None, error.message)

    def _add_to_row(self, problem: Problem) -> bool:
        """Add a problem of an argument in its row, and return whether it has one."""
        place = problem.pointer.removeprefix("/spec").strip("/").split("/")
        name = None
        if place[:2] == ["model", "args"] and len(place) > 2:
            # A JSON pointer escapes slash and tilde.
            name = place[2].replace("~1", "/").replace("~0", "~")
        elif place[:2] == ["search", "space"] and len(place) > 2 and int(place[2]) < len(self.searched):
            name = self.searched[int(place[2])]
        row = self.arguments.row_of(name) if self.arguments is not None and name else None
        if row is None:
            return False
        row.add_error(SHOWN_FIELDS.get(row["use"].value()), problem.message)
        return True

    def error_lines(self) -> list[tuple[str, str, str]]:
        """Return (field id, label, error) for each error, also those of the arguments."""
        lines = [
            (bound.id_for_label, str(bound.label), str(error)) for bound in self for error in bound.errors
        ]
        lines += [("", "", str(error)) for error in self.non_field_errors()]
        return lines + (self.arguments.error_lines() if self.arguments is not None else [])


def _offer_choices(form: ScriptForm, **choices: list[tuple[str, str]]) -> None:
    for name, offered in choices.items():
        form.fields[name].choices = offered  # type: ignore[attr-defined]


def _field_of_problem(problem: Problem) -> tuple[str | None, str]:
    pointer = problem.pointer
    for prefix in sorted(PLACES, key=len, reverse=True):
        if pointer == prefix or pointer.startswith(f"{prefix}/"):
            return PLACES[prefix], problem.message
    return None, problem.message
