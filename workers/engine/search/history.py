"""The rows of one search, looked at once for a whole answer: sorted, counted, and what was tried already."""

import math
from collections.abc import Iterable
from functools import cached_property
from operator import attrgetter

from jobs.contracts.search_space import Value, Values, grid
from jobs.contracts.space_size import grid_size
from jobs.contracts.suggest import Suggestion, SuggestRequest, TrialRow

LISTED = 10_000
"""Spaces of up to this many configurations are listed to find an unseen one."""
SCANS = 8
"""So often rows are compared one by one: for the first few questions that is a tenth of hashing them all."""

type Key = tuple[Value | None, ...]


class History:
    """What an algorithm knows. It grows by each suggestion, so that the next one differs.

    Attributes:
        rows: the trials of this search by their number, whoever asked for them.
        own: those of them that the algorithm made.
        earlier: the trials with a result of the search that this one is warm-started from.
    """

    def __init__(self, request: SuggestRequest) -> None:
        self.search = request.search
        self.epochs = request.epochs
        ordered = sorted(request.trials, key=attrgetter("number"))
        self.rows = [row for row in ordered if row.source != "earlier"]
        self.own = [row for row in self.rows if row.source == "algorithm"]
        self.earlier = [row for row in ordered if row.source == "earlier" and row.result() is not None]
        self._names = tuple(parameter.name for parameter in request.search.space)
        self._keys: set[Key] | None = None
        self._scans = 0
        self._unseen: dict[Key, dict[str, Value]] | None = None
        self._answers: dict[Key, TrialRow] | None = None

    def key(self, values: Values) -> Key:
        """Return what makes two configurations the same: the values in the space's order, None if inactive.

        For ten thousand trials this takes a fifth of what sorting their items would.
        """
        return tuple(map(values.get, self._names))

    def is_seen(self, values: Values) -> bool:
        """Say whether a configuration has a trial in this search."""
        if self._keys is None and self._scans < SCANS:
            self._scans += 1
            return any(row.values == values for row in self.rows)
        return self.key(values) in self._seen()

    def _seen(self) -> set[Key]:
        if self._keys is None:
            self._keys = {self.key(row.values) for row in self.rows}
        return self._keys

    @property
    def next_number(self) -> int:
        """Return the number that the next new trial will have; trials count from 1."""
        return self.rows[-1].number + 1 if self.rows else 1

    @property
    def left(self) -> int:
        """Return how many trials the algorithm may still make."""
        if self.search.info.enumerates_grid:  # there may be fewer points, and outside ones are none
            inside = sum(row.inside for row in self.own)
            return max(min(self.search.max_trials - len(self.own), self._planned - inside), 0)
        return max(self._planned - len(self.own), 0)

    @cached_property
    def _planned(self) -> int:
        return self.search.trials_planned(self.epochs)

    def model_rows(self, limit: int) -> list[TrialRow]:
        """Return what a model learns from: results, of earlier searches too, and trials that are pending.

        Trials outside a space that was made narrower are left out: a value that is gone has no place on any
        axis, and one beyond a bound would stand at the bound and speak for it.

        Of more results than `limit` the best quarter stays, by the first objective, and of the others
        the newest: where a search is now, and where it was best.
        """
        inside = [row for row in self.rows if row.inside]
        pending = [row for row in inside if row.result() is None and row.is_pending()]
        scored = self.earlier + [row for row in inside if row.result() is not None]
        if len(scored) <= limit:
            return scored + pending
        best = sorted(range(len(scored)), key=lambda i: self.cost(scored[i]))[: limit // 4]
        rest = sorted(set(range(len(scored))) - set(best))[-(limit - len(best)) :]
        return [scored[i] for i in sorted({*best, *rest})] + pending

    def cost(self, row: TrialRow) -> float:
        """Return the first objective of a row with a result as something to be minimized."""
        result = row.result()
        return math.inf if result is None else self.search.ranked_by()[0].cost(result[0])

    def add(self, suggestion: Suggestion) -> None:
        """Count a suggestion for a new trial as the trial that it will be."""
        answer = self.answer_to(suggestion.values) if suggestion.answered_by is not None else None
        row = TrialRow.model_construct(
            number=self.next_number,
            state="queued" if answer is None else "completed",
            values=suggestion.values,
            score=answer.score if answer is not None else None,
            scores=answer.scores if answer is not None else None,
            bracket=suggestion.bracket,
            rung=suggestion.rung,
            epochs=suggestion.epochs,
        )
        self.rows.append(row)
        self.own.append(row)
        if self._keys is not None:
            self._keys.add(self.key(row.values))
        if self._unseen is not None:
            self._unseen.pop(self.key(row.values), None)

    def unseen(self) -> list[dict[str, Value]]:
        """List the configurations without a trial; nothing where they are too many or cannot be counted."""
        if self._unseen is None:
            listed = ((self.key(values), values) for values in self._listed())
            self._unseen = {name: values for name, values in listed if name not in self._seen()}
        return list(self._unseen.values())

    def _listed(self) -> Iterable[dict[str, Value]]:
        space = self.search.space
        countable = all(parameter.is_countable() for parameter in space)
        return grid(space) if countable and grid_size(space, LISTED + 1) <= LISTED else ()

    def answer_to(self, values: Values) -> TrialRow | None:
        """Return the first completed trial of these values that has a score."""
        if self._answers is None:
            done = [row for row in self.rows if row.state == "completed" and row.result() is not None]
            self._answers = {self.key(row.values): row for row in reversed(done)}
        return self._answers.get(self.key(values))
