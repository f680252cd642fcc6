"""Finds the hyperparameters that code declares, by building its model with several values.

KerasTuner finds one when the code asks for it. It builds once with the defaults, and then until each
conditional scope was active once; further ones may appear during a search. Here the search space is needed
before the search begins, so the values for numbers and choices are tried too: `units_2` may be asked for only
if `layers` is 3.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
from pydantic import TypeAdapter

from jobs.spec.formats import keras_tuner as keras_tuner_format
from jobs.spec.formats.reading import FormatError, Item
from jobs.spec.space.search_space import Space, Value
from workers.engine.errors import CodeBuildFailure, CodeFailure

MAX_BUILDS = 100
MAX_SECONDS = 120.0
"""After this time no further values are tried."""
MAX_CHOICES = 20
"""Values of one choice that are tried."""
MAX_INTEGERS = 8
"""Integers with up to so many values are tried with each."""
MAX_NOTES = 10

Use = Callable[[Any], None]
"""Uses hyperparameters of KerasTuner, which declares further ones."""

_SPACE: TypeAdapter[Space] = TypeAdapter(Space)


class UnusableSpace(CodeBuildFailure):
    """The declared hyperparameters cannot be searched."""

    code = "bad_space"


class SpaceExplorer:
    """Collects the hyperparameters that several uses declare.

    Args:
        on_build: called before each use.

    Attributes:
        builds: how many uses there were.
        notes: sentences about values that failed, and about limits.
    """

    def __init__(self, on_build: Callable[[], None]) -> None:
        # Three seconds, which other tasks do not need.
        import keras_tuner

        self._known = keras_tuner.HyperParameters()
        self._on_build = on_build
        self._tried: set[tuple[str, Value]] = set()
        self._scopes: dict[tuple[str, Value], None] = {}
        self._began = time.monotonic()
        self.builds = 0
        self.notes: list[str] = []

    def defaults(self) -> Any:
        """Return the hyperparameters that are known, with their defaults."""
        return self._with({})

    def use(self, act: Use, values: Mapping[str, Value]) -> None:
        """Call `act` with the defaults, apart from some values, and record the declared hyperparameters."""
        self._on_build()
        self.builds += 1
        hyperparameters = self._with(values)
        act(hyperparameters)
        self._record(hyperparameters)

    def explore(self, act: Use) -> None:
        """Call `act` with values that may reveal further hyperparameters, until none appears.

        Raises:
            CodeFailure: it fails with the defaults.
        """
        self.use(act, {})
        while (candidate := self._next()) is not None:
            if self.builds >= MAX_BUILDS or time.monotonic() - self._began > MAX_SECONDS:
                self.notes.append(
                    f"the dry build ended after {self.builds} builds: hyperparameters that appear only with "
                    "other values have their defaults in all trials"
                )
                return
            self.attempt(act, candidate)
        if largest := {name: value for name, value in self._candidates() if not isinstance(value, str)}:
            # Later candidates of a name are larger.
            self.attempt(act, largest)

    def attempt(self, act: Use, values: Mapping[str, Value]) -> None:
        """Do `use`; a failure becomes a note."""
        try:
            self.use(act, values)
        except CodeFailure as failure:
            if len(self.notes) < MAX_NOTES:
                named = ", ".join(f"{name} = {value!r}" for name, value in list(values.items())[:3])
                self.notes.append(f"with {named}: {failure}")

    def _next(self) -> dict[str, Value] | None:
        for name, value in self._candidates():
            if (name, value) not in self._tried:
                self._tried.add((name, value))
                return {name: value}
        return None

    def _candidates(self) -> Iterator[tuple[str, Value]]:
        yield from self._scopes
        for declared in list(self._known.space):
            for value in values_of(declared):
                if value != declared.default:
                    yield declared.name, value

    def _with(self, values: Mapping[str, Value]) -> Any:
        """Return the known hyperparameters with these values, and with parents that activate them."""
        chosen = dict(values)
        for declared in reversed(self._known.space):
            if declared.name in chosen:
                for condition in declared.conditions:
                    chosen.setdefault(condition.name, condition.values[0])
        hyperparameters = self._known.copy()
        hyperparameters.values = {}
        for declared in hyperparameters.space:
            if hyperparameters.is_active(declared):
                hyperparameters.values[declared.name] = chosen.get(declared.name, declared.default)
        return hyperparameters

    def _record(self, used: Any) -> None:
        for declared in used.space:
            if not self._known._exists(declared.name, declared.conditions):
                self._known._register(declared)
        # The value that activates a scope may not be among the candidates of its parent.
        for conditions in used.inactive_scopes:
            self._scopes.update({(declared.name, declared.values[0]): None for declared in conditions})

    def space(self) -> Space:
        """Return the declared hyperparameters as a search space.

        Raises:
            UnusableSpace: they cannot be searched.
        """
        config = self._known.get_config()
        if not config["space"]:
            return ()
        names = [row["config"]["name"] for row in config["space"]]
        for name in names:
            if names.count(name) > 1:
                raise UnusableSpace(
                    f"the code declares the hyperparameter {name!r} twice with different conditions; give "
                    "each its own name"
                )
        try:
            search_format = keras_tuner_format.read(Item({"space": config["space"]}, ""))
        except FormatError as error:
            raise UnusableSpace(f"the hyperparameters of the code cannot be searched: {error}") from error
        self.notes += search_format.notes
        return _SPACE.validate_python(search_format.search["space"])


def values_of(parameter: Any) -> list[Value]:
    """Return the values with which a KerasTuner hyperparameter may reveal others, ascending."""
    kind = type(parameter).__name__
    if kind == "Boolean":
        return [False, True]
    if kind == "Choice":
        return list(parameter.values)[:MAX_CHOICES]
    if kind == "Int":
        low, high, step = parameter.min_value, parameter.max_value, parameter.step or 1
        if parameter.sampling in (None, "linear") and (high - low) // step < MAX_INTEGERS:
            return list(range(low, high + 1, step))
        return [low, high]
    return []


def other_values(hyperparameters: Any) -> dict[str, Value]:
    """Return a value for each hyperparameter of KerasTuner that is not its default, as small as possible."""
    others: dict[str, Value] = {}
    for parameter in hyperparameters.space:
        candidates = values_of(parameter)
        if type(parameter).__name__ == "Int":
            step = parameter.step or 1
            logarithmic = parameter.sampling not in (None, "linear")
            second = parameter.min_value * step if logarithmic else parameter.min_value + step
            candidates = [parameter.min_value, min(int(second), parameter.max_value)]
        if different := [value for value in candidates if value != parameter.default]:
            others[parameter.name] = different[0]
    return others


def clear() -> None:
    """Free the models that were built only to find hyperparameters."""
    keras.backend.clear_session(free_memory=False)
