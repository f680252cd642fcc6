"""Hyperparameters that trials of a search find, and the larger space that follows from them."""

from collections.abc import Collection, Sequence

from jobs.spec.base import Frozen
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.hyperparameters import first_value
from jobs.spec.space.search_space import Parameter, Space, Value, Values


class FoundHyperparameter(Frozen):
    """A hyperparameter that a trial's code asked for and that the space lacked.

    Attributes:
        name: of the hyperparameter.
        trial: the number of the first trial that asked for it.
        row: the hyperparameter as it is searched from then on; None if it is not.
        default: the code's default, which trials have that began before.
        in_revision: whether the search's revision has the row, since a user has changed the search.
        refused: why it is not searched; empty if it is.
    """

    name: str
    trial: int
    row: Parameter | None = None
    default: Value | None = None
    in_revision: bool = False
    refused: str = ""


def whole_values(found: Sequence[FoundHyperparameter], values: Values) -> dict[str, Value]:
    """Return a trial's values with the defaults of hyperparameters that were found after it began."""
    whole = dict(values)
    for one in found:
        if one.row is None or one.default is None or one.name in whole:
            continue
        if one.row.is_active(whole):
            whole[one.name] = one.default
    return whole


def with_defaults(space: Space, names: Collection[str], values: Values) -> dict[str, Value]:
    """Return a configuration with the first values of hyperparameters that it lacks.

    Args:
        space: the whole space.
        names: the hyperparameters that may be added.
        values: the configuration.
    """
    whole = dict(values)
    for row in space:
        if row.name in names and row.name not in whole and row.is_active(whole):
            whole[row.name] = first_value(row)
    return whole


def with_rows(search: SearchSpec, rows: Space, found: Sequence[FoundHyperparameter]) -> SearchSpec:
    """Return a search whose space has further rows. It is not validated.

    Args:
        search: the search.
        rows: hyperparameters that are known by now.
        found: has their defaults, with which the first configurations are completed.
    """
    fields = {
        "space": (*search.space, *rows),
        "start_with": tuple(whole_values(found, values) for values in search.start_with),
    }
    # A copy would have the cached size of the smaller grid.
    return SearchSpec.model_construct(search.model_fields_set | fields.keys(), **{**dict(search), **fields})
