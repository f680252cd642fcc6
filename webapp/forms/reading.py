"""A base form whose invalid fields become problems in `BadInput`, and the other way round."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import QueryDict

from jobs.errors import BadInput, Conflict, StaleState, TrainyardError
from jobs.spec.problems import Problem


class ReadForm(forms.Form):
    """A form that converts between Django's errors and `Problem`.

    Attributes:
        pointer_prefix: the pointer to the object that holds the fields in the REST request's body.
        refusal: the error with which the action was refused.
    """

    pointer_prefix = ""
    refusal: TrainyardError | None = None

    @property
    def status(self) -> int:
        """Return the refused form's HTTP status."""
        return BadInput.status if self.refusal is None else self.refusal.status

    @classmethod
    def read(cls, data: QueryDict) -> Any:
        """Return the cleaned values as attributes.

        Raises:
            BadInput: a value is invalid.
        """
        form = cls(data)
        if not form.is_valid():
            raise BadInput("The input is invalid.", form.problems())
        return Values(form.cleaned_data)

    def apply[T](self, act: Callable[[dict[str, Any]], T]) -> T | None:
        """Return an action's result with the cleaned values; None if the form or the action refuses.

        The form then has the problems, to be shown again with its entries.
        """
        if not self.is_valid():
            return None
        try:
            return act(self.cleaned_data)
        except (BadInput, Conflict) as error:
            self.add_problems(error)
            self.refusal = error
            return None

    def problems(self) -> list[Problem]:
        """Return the form's errors as problems."""
        return [Problem(f"/{name}", str(text)) for name, texts in self.errors.items() for text in texts]

    def add_problems(self, error: TrainyardError) -> None:
        """Add an action's problems to the form, each at its field if there is one."""
        problems = error.problems if isinstance(error, BadInput) else ()
        for problem in problems:
            place = problem.pointer.removeprefix(self.pointer_prefix).strip("/").split("/")[0]
            # A JSON pointer escapes slash and tilde, which the name of a hyperparameter may contain.
            name = place.replace("~1", "/").replace("~0", "~")
            self.add_error(name if name in self.fields else None, problem.message)
        if not problems:
            self.add_error(None, error.message)


class SharedTextForm(ReadForm):
    """A form for a text that several people may edit.

    `seen` is the text's digest when the page was opened; an empty one accepts any.
    """

    seen = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def is_stale(self, saved: str) -> bool:
        """Return whether another person saved a text meanwhile; sent again, the form then replaces it.

        Args:
            saved: the digest from the text that is saved now.
        """
        if not isinstance(self.refusal, StaleState):
            return False
        # Only once the page shows the other text. A form with other problems keeps the first digest.
        self.data = dict(self.data.items()) | {"seen": saved}
        return True


class Values:
    """Cleaned values as attributes."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the form has no field {name!r}")
