"""The rows for a script's arguments: each is left out, has a value, or is searched."""

from typing import Any

from django import forms
from django.forms.formsets import BaseFormSet

from jobs.messages.script_values import NUMBERS
from jobs.spec.sections.script_model import MAX_ARGUMENTS, MAX_TEXT, name_refusal
from webapp.forms.experiments.script.values import lists_of_texts, lists_of_values, read_value, read_values

OMIT, SET, VALUES, RANGE = "omit", "set", "values", "range"
USES = [(OMIT, "leave out"), (SET, "one value"), (VALUES, "search values"), (RANGE, "search a range")]
SHOWN_FIELDS = {SET: "text", VALUES: "values", RANGE: "low"}
"""The first field that each use shows."""
SCALES = [("linear", "linear"), ("log", "logarithmic")]
Json = dict[str, Any]


class ArgumentForm(forms.Form):
    """A script's argument. `value` or `parameter` is its place in the spec once it is valid."""

    name = forms.CharField(required=False, max_length=100, label="Argument")
    use = forms.ChoiceField(choices=USES, label="Use", initial=OMIT)
    text = forms.CharField(required=False, max_length=MAX_TEXT, label="Value")
    values = forms.CharField(required=False, max_length=MAX_TEXT, label="Values")
    low = forms.CharField(required=False, max_length=40, label="From")
    high = forms.CharField(required=False, max_length=40, label="To")
    step = forms.CharField(required=False, max_length=40, label="Step")
    scale = forms.ChoiceField(choices=SCALES, required=False, label="Scale")
    type = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    several = forms.BooleanField(required=False, widget=forms.HiddenInput)

    value: Any = None
    parameter: Json | None = None
    lacks_value = False

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if options := self.initial.get("options"):
            self.fields["text"].widget = forms.Select(choices=[("", "choose"), *options])

    def clean(self) -> Json:
        """Turn the entries into a value or a hyperparameter."""
        cleaned = super().clean() or self.cleaned_data
        name, use = cleaned.get("name", "").strip(), cleaned.get("use")
        if not name:
            if use != OMIT:
                self.add_error("name", "Enter the name of the argument.")
            return cleaned
        if (reason := name_refusal(name)) is not None:
            self.add_error("name", f"{reason}.")
        cleaned["name"] = name
        if use == SET:
            self._read_value(cleaned)
        elif use == VALUES:
            self._read_values(name, cleaned)
        elif use == RANGE:
            self._read_range(name, cleaned)
        return cleaned

    def _read_value(self, entries: Json) -> None:
        text, kind = entries.get("text", ""), entries.get("type", "")
        if entries.get("several"):
            self.value = read_values(text, kind)
        else:
            # A draft may lack it.
            self.lacks_value = not text.strip() and (bool(self.initial.get("options")) or kind in NUMBERS)
            self.value = read_value(text, kind)

    def _read_values(self, name: str, entries: Json) -> None:
        text, several = entries.get("values", ""), entries.get("several")
        kind = entries.get("type", "")
        if several and kind not in NUMBERS:
            texts = lists_of_texts(text)
        else:
            texts = (lists_of_values(text) if several else None) or [part.strip() for part in text.split(",")]
        if "" in texts or len(texts) < 2:
            hint = ", and the parts of one list by blanks, such as 64 32, 128 64" if several else ""
            self.add_error("values", f"Enter two or more values, separated by commas{hint}.")
            return
        # A search chooses between single values; the texts 64 32 and ["a", "b"] become two arguments each.
        values = [read_value(text, "str" if several else kind) for text in texts]
        self.parameter = {"name": name, "kind": "choice", "values": values}

    def _read_range(self, name: str, entries: Json) -> None:
        numbers: dict[str, float] = {}
        for field in ("low", "high", "step"):
            text = entries.get(field, "").strip()
            number = read_value(text, "") if text else None
            if isinstance(number, int | float) and not isinstance(number, bool):
                numbers[field] = number
            elif text or field != "step":
                self.add_error(field, "Enter a number.")
        if not numbers.keys() >= {"low", "high"}:
            return
        is_whole = entries.get("type") != "float" and all(
            isinstance(value, int) for value in numbers.values()
        )
        bounds = {"min": numbers["low"], "max": numbers["high"], "step": numbers.get("step")}
        if not is_whole:
            bounds = {key: None if value is None else float(value) for key, value in bounds.items()}
        self.parameter = {
            "name": name,
            "kind": "int" if is_whole else "float",
            **{key: value for key, value in bounds.items() if value is not None},
            "sampling": entries.get("scale") or "linear",
        }


class ArgumentRows(BaseFormSet):  # type: ignore[type-arg]
    """The rows for all arguments."""

    def clean(self) -> None:
        """Refuse a name that two rows have."""
        if any(self.errors):
            return
        names = [form.cleaned_data["name"] for form in self.forms if form.cleaned_data.get("name")]
        for form in self.forms:
            name = form.cleaned_data.get("name")
            if name and names.count(name) > 1:
                form.add_error("name", f"{name} is in two rows.")

    def have_values(self) -> bool:
        """Return whether no row lacks its value; if not, the others have errors."""
        missing = [form for form in self.forms if form.lacks_value]
        for form in missing:
            form.add_error("text", "Enter a value.")
        return not missing

    def row_of(self, name: str) -> ArgumentForm | None:
        """Return the row for an argument; None if no row has its name."""
        return next((form for form in self.forms if form["name"].value() == name), None)

    def error_lines(self) -> list[tuple[str, str, str]]:
        """Return (field id, label, error) for each error, with labels that name the argument."""
        if not self.is_bound:
            return []
        lines = []
        for number, form in enumerate(self.forms, 1):
            name = form["name"].value() or f"argument {number}"
            for bound in form:
                label = name if bound.name in ("text", "values") else f"{name}, {bound.label.lower()}"
                lines += [(bound.id_for_label, label, str(error)) for error in bound.errors]
            lines += [("", "", f"{name}: {error}") for error in form.non_field_errors()]
        return lines + [("", "", str(error)) for error in self.non_form_errors()]

    def arguments(self) -> Json:
        """Return the arguments with one value."""
        return {
            form.cleaned_data["name"]: form.value
            for form in self.forms
            if form.cleaned_data.get("name") and form.cleaned_data["use"] == SET
        }

    def space(self) -> list[Json]:
        """Return the search space."""
        return [form.parameter for form in self.forms if form.parameter is not None]


ArgumentFormSet: type[ArgumentRows] = forms.formset_factory(  # type: ignore[assignment]
    ArgumentForm, formset=ArgumentRows, extra=0, max_num=MAX_ARGUMENTS, absolute_max=MAX_ARGUMENTS
)
