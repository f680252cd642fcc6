"""Gives algorithms access to a search's trials: sorted, counted, and indexed by configuration."""

import math
from functools import cached_property
from operator import attrgetter

from jobs.messages.suggest import Suggestion, SuggestRequest, TrialRow
from jobs.spec.space.search_space import Value, Values, grid
from jobs.spec.space.size import grid_size

LISTED = 10_000
"""Maximum number of configurations of a space that are listed to find unseen ones."""
SCANS = 8
"""Number of lookups that compare rows one by one: the first few take a tenth of the time of hashing all."""

type Key = tuple[Value | None, ...]


class History:
    """The trials that an algorithm knows. Each suggestion is added, so that the next one differs.

    Attributes:
        rows: this search's trials by their numbers.
        own: those suggested by the algorithm.
        earlier: trials with a result from the search that this one is warm-started from.
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
        """Return a key that is equal for equal configurations: values in order, None if inactive.

        For ten thousand trials this takes a fifth as long as sorting their items.
        """
        return tuple(map(values.get, self._names))

    def is_seen(self, values: Values) -> bool:
        """Return whether a configuration has a trial in this search."""
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
        """The next new trial's number; trials are counted from 1."""
        return self.rows[-1].number + 1 if self.rows else 1

    @property
    def left(self) -> int:
        """How many trials the algorithm may still suggest."""
        if self.search.info.enumerates_grid:  # the grid may have fewer points than max_trials
            inside = sum(row.inside for row in self.own)
            return max(min(self.search.max_trials - len(self.own), self._planned - inside), 0)
        return max(self._planned - len(self.own), 0)

    @cached_property
    def _planned(self) -> int:
        return self.search.trials_planned(self.epochs)

    def model_rows(self, limit: int) -> list[TrialRow]:
        """Return the trials to fit a model to: those with results, also earlier ones, and pending ones.

        Trials outside a narrowed space are left out: a removed value has no coordinate, and a value beyond a
        bound would be counted at the bound.

        Args:
            limit: most results to return. If there are more, the best quarter of this number by the first
                objective is kept, and the newest of the others.
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
        """Return a row's first objective as a cost to minimize; infinity without a result."""
        result = row.result()
        return math.inf if result is None else self.search.ranked_by()[0].cost(result[0])

    def add(self, suggestion: Suggestion) -> None:
        """Add a suggestion as the trial that it will become."""
        answer = self.answer_to(suggestion.values) if suggestion.answered_by is not None else None
        # Not validated again: all values come from validated objects.
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
        """Return the configurations without a trial; empty if the space is too large or not countable."""
        if self._unseen is None:
            space = self.search.space
            countable = all(parameter.is_countable() for parameter in space)
            points = grid(space) if countable and grid_size(space, LISTED + 1) <= LISTED else ()
            listed = ((self.key(values), values) for values in points)
            self._unseen = {key: values for key, values in listed if key not in self._seen()}
        return list(self._unseen.values())

    def answer_to(self, values: Values) -> TrialRow | None:
        """Return the first completed trial with these values and a score, or None."""
        if self._answers is None:
            done = [row for row in self.rows if row.state == "completed" and row.result() is not None]
            # Reversed: of several trials with equal values the first one is kept.
            self._answers = {self.key(row.values): row for row in reversed(done)}
        return self._answers.get(self.key(values))
