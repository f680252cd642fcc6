"""Finds the hyperparameters that code declares, by building its model with several values.

KerasTuner finds one when the code asks for it. It builds once with the defaults, and then until each
conditional scope was active once; further ones may appear during a search. Here the search space is needed
before the search begins, so the values for numbers and choices are tried too: `units_2` may be asked for only
if `layers` is 3. Each build that reveals something is a start for further ones: `momentum` may be asked for
only if `optimizer` is "sgd" and `nesterov`, which "sgd" has revealed, is true.
"""

import random
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from itertools import combinations
from typing import Any

import keras
from pydantic import TypeAdapter

from jobs.spec.checks.dry_build import Unasked
from jobs.spec.formats import keras_tuner as keras_tuner_format
from jobs.spec.formats.reading import FormatError, Item
from jobs.spec.space.search_space import Space, Value
from workers.engine.errors import CodeFailure
from workers.engine.models import mesh
from workers.engine.models.build_memory import small_enough
from workers.engine.models.code_models.code_questions import Questions, follow_questions, unasked_in
from workers.engine.models.code_models.code_rows import (
    UnusableSpace,
    active_rows,
    may_have,
    merged_rows,
    why_unusable,
)
from workers.engine.models.code_models.code_values import spread_values_of, values_of

MAX_BUILDS = 150
MAX_SECONDS = 120.0
"""After this time no further values are tried."""
MAX_COMBINATIONS = 40
"""Builds that try values of several hyperparameters together."""
COMBINATION_SECONDS = 40.0
DRAWS = 20
"""Drawn builds, of which the one with the most new pairs of values is done."""
MAX_NOTES = 10

Use = Callable[[Any], None]
"""Uses hyperparameters of KerasTuner, which declares further ones."""
Point = dict[str, Value]
"""The values of a build, by name; other hyperparameters have their defaults."""
Pair = tuple[tuple[str, str], tuple[str, str]]
"""Two hyperparameters, each with one of its values."""

_SPACE: TypeAdapter[Space] = TypeAdapter(Space)


class SpaceExplorer:
    """Collects the hyperparameters that several uses declare.

    Args:
        on_build: called before each use.
        thresholds: the numbers with which the code compares.

    Attributes:
        builds: how many uses there were.
        notes: sentences about values that failed, and about limits.
    """

    def __init__(self, on_build: Callable[[], None], thresholds: Collection[float] = ()) -> None:
        # Three seconds, which other tasks do not need.
        import keras_tuner

        self._known = keras_tuner.HyperParameters()
        self._on_build = on_build
        self._thresholds = thresholds
        self._waiting: deque[Point] = deque()
        self._tried: set[frozenset[tuple[str, str]]] = set()
        self._covered: set[Pair] = set()
        self._scopes: set[str] = set()
        self._questions: list[Questions] = []
        self._explorations = 0
        self._began = time.monotonic()
        self._has_ended = False
        self.builds = 0
        self.notes: list[str] = []

    def defaults(self) -> Any:
        """Return the hyperparameters that are known, with their defaults."""
        return self._with({})

    def use(self, act: Use, values: Mapping[str, Value]) -> None:
        """Call `act` with the defaults, apart from some values, and record the declared hyperparameters.

        Those that it reveals are tried with their other values in further builds like this one.
        """
        self._on_build()
        self.builds += 1
        hyperparameters = self._with(values)
        asked = follow_questions(hyperparameters)
        act(hyperparameters)
        self._record(hyperparameters)
        known = {name: hyperparameters.values[name] for name in asked & hyperparameters.values.keys()}
        self._questions.append(Questions(self._explorations, frozenset(asked), known))

    def explore(self, act: Use, first: Use | None = None) -> None:
        """Call `act` with values that may reveal further hyperparameters, until none appears.

        Args:
            act: the use.
            first: is called instead with the defaults.

        Raises:
            CodeFailure: it fails with the defaults.
        """
        self._tried.clear()
        self._covered.clear()
        self._explorations += 1
        self._follow_known()
        self.use(first or act, {})
        self._follow(act)
        ends = min(self._began + MAX_SECONDS, time.monotonic() + COMBINATION_SECONDS)
        for _ in range(MAX_COMBINATIONS):
            if self._is_spent() or time.monotonic() > ends or (point := self._next_pairs()) is None:
                break
            self.attempt(act, point)
            self._follow(act)
        if self._is_spent() and not self._has_ended:
            self._has_ended = True
            self.notes.append(
                f"the dry build ended after {self.builds} builds, at most {MAX_BUILDS} in {MAX_SECONDS:g} s: "
                "what appears only with other values has its default in all trials, unless a row with its "
                "name is added to the search space"
            )

    def attempt(self, act: Use, values: Mapping[str, Value]) -> None:
        """Do `use`; a failure becomes a note."""
        try:
            with small_enough():
                self.use(act, values)
        except CodeFailure as failure:
            if len(self.notes) < MAX_NOTES:
                named = ", ".join(f"{name} = {value!r}" for name, value in list(values.items())[:3])
                self.notes.append(f"with {named}: {failure}")

    def _is_spent(self) -> bool:
        return self.builds >= MAX_BUILDS or time.monotonic() - self._began > MAX_SECONDS

    def _follow(self, act: Use) -> None:
        """Do the builds that follow from those before, until there are none or the budget is spent."""
        while self._waiting and not self._is_spent():
            point = self._waiting.popleft()
            if (key := _key(point)) not in self._tried:
                self._tried.add(key)
                self.attempt(act, point)

    def _follow_known(self) -> None:
        """Try the values of hyperparameters that are known before the first build."""
        base = self.defaults().values
        for declared in self._known.space:
            self._vary(declared, base)

    def _vary(self, declared: Any, base: Mapping[str, Value]) -> None:
        for value in values_of(declared, self._thresholds):
            if value != base.get(declared.name, declared.default):
                self._waiting.append({**base, declared.name: value})

    def _next_pairs(self) -> Point | None:
        """Return the values for a build with pairs of values that no build had; None if there are no more.

        Each pair of values occurs in one of these builds, since a hyperparameter may depend on both.
        """
        generator = random.Random(self.builds)  # noqa: S311  not for secrets
        values = {
            declared.name: found
            for declared in self._known.space
            if len(found := spread_values_of(declared, self._thresholds)) > 1
        }
        drawn = [
            self._with({name: generator.choice(choices) for name, choices in values.items()}).values
            for _ in range(DRAWS)
        ]
        best = max(drawn, key=lambda point: len(_pairs(point, values) - self._covered))
        return best if _pairs(best, values) - self._covered else None

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
        new = [
            declared for declared in used.space if not self._known._exists(declared.name, declared.conditions)
        ]
        for declared in new:
            self._known._register(declared)
        self._covered |= _pairs(used.values, used.values)
        for declared in new:
            self._vary(declared, used.values)
        # The value that activates a scope may not be among the candidates of its parent.
        for conditions in used.inactive_scopes:
            chosen = {condition.name: self._possible(condition) for condition in conditions}
            if all(chosen.values()) and (key := repr(chosen)) not in self._scopes:
                self._scopes.add(key)
                first = {name: values[0] for name, values in chosen.items()}
                self._waiting.append({**used.values, **first})

    def unasked(self, space: Space) -> tuple[Unasked, ...]:
        """Return which hyperparameters of a space have no effect, by values of the others."""
        return unasked_in(self._questions, {row.name for row in space})

    def _possible(self, condition: Any) -> list[Value]:
        """Return the values of a condition that its parent may have."""
        rows = [
            {"class_name": type(parent).__name__, "config": parent.get_config()}
            for parent in self._known.space
            if parent.name == condition.name
        ]
        return [value for value in condition.values if not rows or any(may_have(row, value) for row in rows)]

    def space(self) -> Space:
        """Return the declared hyperparameters as a search space.

        Raises:
            UnusableSpace: they cannot be searched.
        """
        config = self._known.get_config()
        if not config["space"]:
            return ()
        rows = active_rows(merged_rows(config["space"]), self.notes)
        try:
            search_format = keras_tuner_format.read(Item({"space": rows}, ""))
        except FormatError as error:
            raise UnusableSpace(why_unusable(error, rows)) from error
        self.notes += search_format.notes
        return _SPACE.validate_python(search_format.search["space"])


def _key(point: Mapping[str, Value]) -> frozenset[tuple[str, str]]:
    # In Python, True == 1.
    return frozenset((name, repr(value)) for name, value in point.items())


def _pairs(point: Mapping[str, Value], names: Collection[str]) -> set[Pair]:
    """Return the pairs of values in a build, of hyperparameters with several values."""
    valued = sorted((name, repr(value)) for name, value in point.items() if name in names)
    return set(combinations(valued, 2))


def clear() -> None:
    """Free the models that were built only to find hyperparameters."""
    used = mesh.current()
    keras.backend.clear_session(free_memory=False)
    # It forgets the mesh as well.
    if used is not None:
        mesh.restore(used)
