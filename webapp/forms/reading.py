"""Reading a form into checked values: what does not hold becomes `BadInput` with the place it stands at."""

from typing import Any, Self

from django import forms
from django.http import QueryDict

from jobs.contracts.problems import Problem
from jobs.errors import BadInput, TrainyardError


class ReadForm(forms.Form):
    """A form that can be read in one step where no page shows it again.

    Attributes:
        below: where in the body of the same request by REST the fields stand.
    """

    below = ""

    @classmethod
    def read(cls, data: QueryDict) -> Any:
        """Return the cleaned values as attributes.

        Raises:
            BadInput: a value does not hold.
        """
        form = cls(data)
        if not form.is_valid():
            raise BadInput("This input does not hold.", form.found())
        return Values(form.cleaned_data)

    def found(self) -> list[Problem]:
        """Return what is wrong as problems, by field."""
        return [Problem(f"/{name}", str(text)) for name, texts in self.errors.items() for text in texts]

    def refused(self, error: TrainyardError) -> Self:
        """Take over what an action found wrong, each at its field where there is one."""
        found = error.problems if isinstance(error, BadInput) else ()
        for problem in found:
            place = problem.pointer.removeprefix(self.below).strip("/").split("/")[0]
            name = place.replace("~1", "/").replace("~0", "~")
            self.add_error(name if name in self.fields else None, problem.message)
        if not found:
            self.add_error(None, error.message)
        return self


class Values:
    """Cleaned values as attributes."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the form has no field {name!r}")
