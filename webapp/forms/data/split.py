"""The split form on a version's page. Its fields are also the page's query."""

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
    """The form's entries.

    Attributes:
        profile: the data's profile.
        way: the kind of split.
        along: the column that the split follows.
        entries: the other entries as text.
        is_asked: whether the query has a split.
    """

    profile: Profile
    way: str
    along: str
    entries: dict[str, str]
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
        """Return whether class proportions can be kept."""
        return self.profile.task in ("binary", "multiclass")

    @cached_property
    def checked(self) -> tuple[Split | None, dict[str, str]]:
        """Return the split, or None and the messages by field."""
        split, invalid = self._parsed()
        if split is not None:
            invalid = problems_of_split(split, self.profile)
        wrong = {_field_of(problem): problem.message for problem in invalid}
        return (None, wrong) if wrong else (split, {})

    @property
    def numbers(self) -> list[tuple[str, str, str, str]]:
        """Return name, label, entry and message for each number."""
        wrong = self.checked[1] if self.is_asked else {}
        return [(name, label, self.entries[name], wrong.get(name, "")) for name, label in NUMBERS.items()]

    def _parsed(self) -> tuple[Split | None, list[Problem]]:
        body: dict[str, Any] = {name: text for name, text in self.entries.items() if text}
        body["stratify"] = bool(self.entries["stratify"])
        body["use_roles"] = self.way != "random"
        if self.way in ALONG:
            if not self.along:
                return None, [Problem("/along", "choose a column")]
            body[self.way] = self.along
        try:
            return Split.model_validate(body), []
        except ValidationError as error:
            return None, problems(error, body)


def split_form(query: Mapping[str, str], profile: Profile) -> SplitForm:
    """Return the form with a query's entries, or with the default split for new experiments."""
    is_asked = query.get("way") in _ways(profile)
    entries = {name: query.get(name, str(Split.model_fields[name].default)) for name in NUMBERS}
    entries["stratify"] = query.get("stratify", "" if is_asked else "1")
    way = query["way"] if is_asked else next(iter(_ways(profile)))
    return SplitForm(profile, way, query.get("along", ""), entries, is_asked)


def query_of_entries(entries: Mapping[str, str]) -> dict[str, str]:
    """Return the form's fields that have an entry, for the page's address."""
    return {name: entries[name] for name in FIELDS if entries.get(name)}


def _ways(profile: Profile) -> dict[str, str]:
    has_roles = resolved(Split(), profile) != Split()
    return {way: label for way, label in WAYS.items() if way != "roles" or has_roles}


def _field_of(problem: Problem) -> str:
    """Return a problem's form field. A problem with the whole split is shown at its first number."""
    name = problem.pointer.strip("/")
    return "along" if name in ALONG else name or "validation"
