"""The form for a model's gate rules: fields for all test rows, and rows for floors and slices."""

from typing import Any

from django import forms
from django.http import QueryDict
from pydantic import ValidationError

from jobs.spec.gates import Floor, GateRules, Slice
from jobs.spec.problems import Problem, problems

OBJECTIVE = "the objective of the version's search"
MAX_ROWS = 50


class RulesForm(forms.Form):
    metric = forms.ChoiceField(
        required=False,
        help_text="Compares a version with the champion and with a constant prediction, on test rows.",
    )
    tolerance = forms.FloatField(
        min_value=0,
        max_value=1,
        help_text="How much worse than the champion: 0.01 is one point of accuracy, or 1 % of the champion's "
        "value if lower values are better.",
    )
    latency_p95_ms = forms.FloatField(
        label="Latency ceiling",
        required=False,
        help_text="In ms, for the 95th percentile of the time for one row. Empty: no ceiling.",
    )
    comment = forms.CharField(
        label="Reason",
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Shown in the history and the audit log.",
    )
    revision = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, metrics: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["metric"].choices = [("", OBJECTIVE), *((name, name) for name in metrics)]  # type: ignore[attr-defined]


class RowForm(forms.Form):
    """One floor or slice. A row whose fields are all empty is left out."""

    def __init__(self, *args: Any, metrics: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["metric"].choices = [("", self.no_metric), *((name, name) for name in metrics)]  # type: ignore[attr-defined]
        # The rules check the values, so that both ways to change them give the same messages.
        for field in self.fields.values():
            field.required = False

    no_metric = ""

    def body(self) -> dict[str, Any]:
        """Return the fields that are filled in, as the rules take them."""
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}


class FloorForm(RowForm):
    no_metric = "–"
    metric = forms.ChoiceField()
    limit = forms.FloatField()


class SliceForm(RowForm):
    no_metric = "that of the gates"
    column = forms.CharField(max_length=200)
    value = forms.CharField(max_length=200)
    metric = forms.ChoiceField()
    limit = forms.FloatField()
    min_rows = forms.IntegerField(label="Minimum rows")


class GatesForm:
    """The whole form. `rules` are the rules that it holds, if it is valid.

    Attributes:
        main: the fields for all test rows.
        floors: one form for each floor, and an empty one.
        slices: one form for each slice, and an empty one.
        unplaced: the problems that belong to no field.
    """

    def __init__(
        self, *, rules: GateRules, revision: int, metrics: list[str], data: QueryDict | None = None
    ) -> None:
        more = {"metrics": metrics}
        initial = {**rules.model_dump(exclude={"floors", "slices"}), "revision": revision}
        self.main = RulesForm(data, initial=initial, **more)
        self.floors = _rows(FloorForm, "floors", rules.floors, data, more)
        self.slices = _rows(SliceForm, "slices", rules.slices, data, more)
        self.unplaced: list[Problem] = []
        self.rules: GateRules | None = None
        self._filled: dict[str, list[tuple[RowForm, dict[str, Any]]]] = {}

    def is_valid(self) -> bool:
        """Parse the form into `rules`; if that fails, show the problems at their fields."""
        # `errors` checks a form; each must be checked, for its messages.
        if any([part.errors for part in (self.main, *self.floors, *self.slices)]):  # noqa: C419
            return False
        values = self.main.cleaned_data
        filled: dict[str, list[tuple[RowForm, dict[str, Any]]]] = {
            "floors": [(row, body) for row in self.floors if (body := row.body())],
            "slices": [(row, body) for row in self.slices if (body := row.body())],
        }
        sent = {
            "metric": values["metric"] or None,
            "tolerance": values["tolerance"],
            "latency_p95_ms": values["latency_p95_ms"],
            **{kind: [body for _, body in rows] for kind, rows in filled.items()},
        }
        self._filled = filled
        try:
            self.rules = GateRules.model_validate(sent)
        except ValidationError as error:
            for problem in problems(error, sent):
                self.add(problem)
        return self.rules is not None

    def add(self, problem: Problem) -> None:
        """Show a problem with the rules at its field, or above the form if it has none."""
        kind, _, rest = problem.pointer.removeprefix("/rules").lstrip("/").partition("/")
        number, _, name = rest.partition("/")
        if kind in self._filled and number.isdigit():
            row = self._filled[kind][int(number)][0]
            row.add_error(name if name in row.fields else None, problem.message)
        elif kind in self.main.fields:
            self.main.add_error(kind, problem.message)
        else:
            self.unplaced.append(problem)

    def error_lines(self) -> list[tuple[str, str, str]]:
        """Return id, label and message for each problem, for the summary above the form."""
        named: list[tuple[str, forms.Form]]
        lines = [("", "", problem.message) for problem in self.unplaced]
        named = [("", self.main), *(("Floor", form) for form in self.floors)]
        named += [("Slice", form) for form in self.slices]
        for kind, form in named:
            lines += [("", kind, str(error)) for error in form.non_field_errors()]
            lines += [(f.id_for_label, f"{kind} {f.label}".strip(), str(e)) for f in form for e in f.errors]
        return lines


def _rows[Row: RowForm](
    form: type[Row],
    prefix: str,
    initial: tuple[Floor, ...] | tuple[Slice, ...],
    data: QueryDict | None,
    more: dict[str, Any],
) -> list[Row]:
    """Return a form for each row. A POST request has the number of its rows in `<prefix>-rows`."""
    if data is None:
        filled = [
            form(prefix=f"{prefix}-{i}", initial=one.model_dump(), **more) for i, one in enumerate(initial)
        ]
        return [*filled, form(prefix=f"{prefix}-{len(filled)}", **more)]
    count = min(row_count(data, prefix), MAX_ROWS)
    return [form(data, prefix=f"{prefix}-{i}", **more) for i in range(count)]


def row_count(data: QueryDict, prefix: str) -> int:
    """Return how many rows a POST request has; 0 unless that is a number of up to three digits."""
    sent = data.get(f"{prefix}-rows", "")
    return int(sent) if sent.isdecimal() and len(sent) <= 3 else 0
