"""The form for a script's experiment, and the spec that it makes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import forms

from jobs.models import CodeVersion, Dataset
from jobs.queries.data.datasets import READY
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.problems import Problem
from jobs.spec.sections.pruning import PRUNERS
from jobs.spec.sections.script_model import MAX_TEXT
from webapp.forms.reading import ReadForm

NO_DATA = ""
PLACES = {
    "/spec/model/entry": "entry",
    "/spec/model/digest": "code",
    "/spec/model/env": "variables",
    "/spec/data": "dataset",
    "/spec/search/objective": "metric",
    "/spec/search/objective/direction": "direction",
    "/spec/search/algorithm": "algorithm",
    "/spec/search/max_trials": "max_trials",
    "/spec/search/executions_per_trial": "executions",
    "/spec/search/parallel_trials": "parallel",
    "/spec/search/pruner": "pruner",
    "/spec/fit/epochs": "steps",
    "/spec/fit/seed": "seed",
    "/spec/after/register": "register",
    "/spec/resources/pool": "pool",
    "/spec/resources/slots": "slots",
    "/name": "name",
}
"""The fields of parts of a spec."""
Json = dict[str, Any]


class ScriptForm(ReadForm):
    """The fields beside the arguments, which have separate rows."""

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
        label="Better is", required=False, choices=[("", "choose"), ("max", "higher"), ("min", "lower")]
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
        help_text="A model of which the file model.keras in the folder of outputs becomes a version.",
    )
    pool = forms.CharField(label="Pool", max_length=63, initial="default")
    slots = forms.IntegerField(label="Slots of a run", min_value=1, max_value=1024, initial=1)
    seen = forms.CharField(required=False, max_length=10, widget=forms.HiddenInput)
    tags = forms.CharField(required=False, widget=forms.HiddenInput)
    notes = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    def __init__(
        self, codes: Iterable[CodeVersion], datasets: Iterable[Dataset], *args: Any, **named: Any
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
        _offer_choices(self, code=offered, dataset=choices, algorithm=algorithms, pruner=pruners)

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
        """Add an action's problems at the nearest field; arguments are named in the message."""
        problems = getattr(error, "problems", ())
        for problem in problems:
            self.add_error(*_field_of_problem(problem))
        if not problems:
            self.add_error(None, error.message)


def _offer_choices(form: ScriptForm, **choices: list[tuple[str, str]]) -> None:
    for name, offered in choices.items():
        form.fields[name].choices = offered  # type: ignore[attr-defined]


def _field_of_problem(problem: Problem) -> tuple[str | None, str]:
    pointer = problem.pointer
    for prefix in sorted(PLACES, key=len, reverse=True):
        if pointer == prefix or pointer.startswith(f"{prefix}/"):
            return PLACES[prefix], problem.message
    where = pointer.removeprefix("/spec")
    return None, f"{where}: {problem.message}" if where else problem.message


def spec_from(base: Json, values: Mapping[str, Any], args: Json, space: list[Json]) -> Json:
    """Return the spec that the form describes, and keep the fields in `base` that it does not show.

    Args:
        base: the spec that is revised; empty for a new one.
        values: the cleaned fields.
        args: the script's arguments.
        space: the search space; empty without a search.
    """
    model: Json = {
        "kind": "script",
        "digest": values["code"],
        "entry": values["entry"].strip(),
        "args": args,
    }
    if values["variables"]:
        model["env"] = values["variables"]
    after: Json = {}
    if values["register"].strip():
        after["register"] = {"model": values["register"].strip()}
    spec: Json = {
        "version": 1,
        "model": model,
        "fit": {"epochs": values["steps"], "seed": values["seed"]},
        "after": after,
        "resources": {
            **spec_part(base, "resources"),
            "pool": values["pool"].strip(),
            "slots": values["slots"],
        },
    }
    if (data := _data_spec(spec_part(base, "data"), values["dataset"])) is not None:
        spec["data"] = data
    if space:
        spec["search"] = _search_spec(spec_part(base, "search"), values, space)
    return spec


def spec_part(spec: Json, name: str) -> Json:
    """Return a spec part; an empty one where a draft has something else in its place."""
    value = spec.get(name)
    return value if isinstance(value, dict) else {}


def _data_spec(base: Json, chosen: str) -> Json | None:
    if chosen == NO_DATA:
        return None
    slug, _, number = chosen.rpartition(":")
    # Another data set has other columns.
    unchanged = dict(base) if base.get("dataset") == slug else {}
    unchanged.pop("dataset_version", None)
    return {**unchanged, "dataset": slug, **({"dataset_version": int(number)} if number else {})}


def _search_spec(base: Json, values: Mapping[str, Any], space: list[Json]) -> Json:
    rows = base.get("space")
    earlier_rows = (
        {str(row.get("name")): row for row in rows if isinstance(row, dict)} if isinstance(rows, list) else {}
    )
    # A condition names an earlier row.
    places = {name: place for place, name in enumerate(earlier_rows)}
    space = sorted(space, key=lambda row: places.get(row["name"], len(places)))
    objective = {"metric": values["metric"].strip(), "direction": values["direction"]}
    # Several objectives, of which the form shows the first.
    shown_fields = ("pruner", "parallel_trials", "objectives")
    hidden = {name: value for name, value in base.items() if name not in shown_fields}
    search: Json = {
        **hidden,
        "algorithm": values["algorithm"] or "random",
        "objective": objective,
        "max_trials": values["max_trials"] or 12,
        "executions_per_trial": values["executions"] or 1,
        # A row that was not changed keeps its conditions.
        "space": [_merge_row(earlier_rows.get(row["name"]), row) for row in space],
    }
    if search["algorithm"] != base.get("algorithm"):
        search.pop("options", None)
    if values["parallel"]:
        search["parallel_trials"] = values["parallel"]
    if values["pruner"]:
        before = spec_part(base, "pruner")
        search["pruner"] = before if before.get("kind") == values["pruner"] else {"kind": values["pruner"]}
    return search


def _merge_row(before: Json | None, row: Json) -> Json:

    if before is None or any(before.get(name) != value for name, value in row.items()):
        return row
    return before


def initial_values(spec: Json) -> Iterator[tuple[str, Any]]:
    """Yield the field values that show a spec."""
    model, data, search = spec_part(spec, "model"), spec_part(spec, "data"), spec_part(spec, "search")
    objective = spec_part(search, "objective")
    yield "entry", model.get("entry", "")
    yield "variables", "\n".join(f"{name}={value}" for name, value in spec_part(model, "env").items())
    slug, number = data.get("dataset"), data.get("dataset_version") or ""
    yield "code", model.get("digest", "")
    yield "dataset", f"{slug}:{number}" if slug else NO_DATA
    yield "steps", spec_part(spec, "fit").get("epochs", 100)
    yield "seed", spec_part(spec, "fit").get("seed", 0)
    yield "metric", objective.get("metric", "")
    yield "direction", objective.get("direction", "")
    yield "algorithm", search.get("algorithm", "random")
    yield "max_trials", search.get("max_trials", 12)
    yield "executions", search.get("executions_per_trial", 1)
    yield "parallel", search.get("parallel_trials", "")
    yield "pruner", spec_part(search, "pruner").get("kind", "")
    yield "register", spec_part(spec_part(spec, "after"), "register").get("model", "")
    yield "pool", spec_part(spec, "resources").get("pool", "default")
    yield "slots", spec_part(spec, "resources").get("slots", 1)


def is_script(spec: Any) -> bool:
    """Return whether a spec, or its draft, runs a script, so that this form shows it."""
    model = spec.get("model") if isinstance(spec, dict) else None
    return isinstance(model, dict) and model.get("kind") == "script"
