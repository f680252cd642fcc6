"""Lists a design's variables, by filter and by a part of their paths."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobs.spec.plan.mesh.placement import Placement
from webapp.forms.experiments.mesh_design.view_entries import PAGE_ROWS, ViewEntries


class Filter(NamedTuple):
    """A filter over the list of variables, with the number of its variables."""

    name: str
    label: str
    number: int


class VariableList(NamedTuple):
    """A page of the variables that match filter and text."""

    filters: list[Filter]
    rows: list[Placement]
    found: int
    page: int
    pages: int


_FILTERS: dict[str, tuple[str, Callable[[Placement], bool]]] = {
    "all": ("all", lambda _: True),
    "unmatched": ("unmatched", lambda placement: not placement.rules),
    "twice": ("matched twice", lambda placement: len(placement.rules) > 1),
    "indivisible": ("not divisible", lambda placement: bool(placement.problem)),
}


def list_variables(placements: Sequence[Placement], view: ViewEntries) -> VariableList:
    """Return the variables that match filter and text, one page of them."""
    filters = [
        Filter(name, label, sum(map(accepts, placements))) for name, (label, accepts) in _FILTERS.items()
    ]
    accepts, text = _FILTERS[view.show][1], view.text.lower()
    found = [
        placement for placement in placements if accepts(placement) and text in placement.weight.path.lower()
    ]
    pages = max(-(-len(found) // PAGE_ROWS), 1)
    page = min(view.page, pages)
    return VariableList(filters, found[(page - 1) * PAGE_ROWS : page * PAGE_ROWS], len(found), page, pages)
