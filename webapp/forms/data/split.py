"""The form of a split on the page of a dataset version; its fields are also the query of the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from pydantic import ValidationError

from jobs.spec.checks.split import problems_of_split
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import resolved
from jobs.spec.problems import Problem, problems
from jobs.spec.sections.data import Split

WAYS = {
    "roles": "as the roles decide",
    "random": "at random",
    "group": "keep equal values together",
    "column": "parts named by a column",
    "time": "over time",
}
ALONG = ("group", "column", "time")
FIELDS = ("way", "along", "validation", "test", "seed", "stratify")
"""Names of the fields, in the order of the query."""


MOST_COLUMNS = 100
"""The form suggests this many names, as many as the page shows; a table may have ten thousand."""
NUMBERS = {"validation": "Validation part", "test": "Test part", "seed": "Seed"}


@dataclass(frozen=True)
class SplitForm:
    """The entries of the form.

    Attributes:
        profile: of the data.
        way: the kind of split.
        along: the column of a split along one.
        given: the other entries as text.
        is_asked: whether the query has a split.
    """

    profile: Profile
    way: str
    along: str
    given: dict[str, str]
    is_asked: bool

    @property
    def ways(self) -> dict[str, str]:
        """Return the kinds that the data can have, with their labels."""
        return _ways(self.profile)

    @property
    def columns(self) -> list[str]:
        """Return the names of the first columns with one value for each row."""
        names = (c.name for c in self.profile.columns if not c.shape and c.type != "image")
        return list(islice(names, MOST_COLUMNS))

    @property
    def has_classes(self) -> bool:
        """Return whether proportions of classes can be kept."""
        return self.profile.task in ("binary", "multiclass")

    @cached_property
    def checked(self) -> tuple[Split | None, dict[str, str]]:
        """Return the split, or None and the messages by field."""
        split, found = self._parsed()
        if split is not None:
            found = problems_of_split(split, self.profile)
        wrong = {_field_of(problem): problem.message for problem in found}
        return (None, wrong) if wrong else (split, {})

    @property
    def numbers(self) -> list[tuple[str, str, str, str]]:
        """Return name, label, entry and message of each number."""
        wrong = self.checked[1] if self.is_asked else {}
        return [(name, label, self.given[name], wrong.get(name, "")) for name, label in NUMBERS.items()]

    def _parsed(self) -> tuple[Split | None, list[Problem]]:
        body: dict[str, Any] = {name: text for name, text in self.given.items() if text}
        body["stratify"] = bool(self.given["stratify"])
        body["use_roles"] = self.way != "random"
        if self.way in ALONG:
            if not self.along:
                return None, [Problem("/along", "choose a column")]
            body[self.way] = self.along
        try:
            return Split.model_validate(body), []
        except ValidationError as error:
            return None, problems(error, body)


def form_of(given: Mapping[str, str], profile: Profile) -> SplitForm:
    """Return the form with the entries of a query, or with those of the split of a new experiment."""
    is_asked = given.get("way") in _ways(profile)
    entries = {name: given.get(name, str(Split.model_fields[name].default)) for name in NUMBERS}
    entries["stratify"] = given.get("stratify", "" if is_asked else "1")
    way = given["way"] if is_asked else next(iter(_ways(profile)))
    return SplitForm(profile, way, given.get("along", ""), entries, is_asked)


def query_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the form that have an entry, for the address of the page."""
    return {name: given[name] for name in FIELDS if given.get(name)}


def _ways(profile: Profile) -> dict[str, str]:
    has_roles = resolved(Split(), profile) != Split()
    return {way: label for way, label in WAYS.items() if way != "roles" or has_roles}


def _field_of(problem: Problem) -> str:
    """Return the field of the form of a problem; that of the whole split is at its first number."""
    name = problem.pointer.strip("/")
    return "along" if name in ALONG else name or "validation"
