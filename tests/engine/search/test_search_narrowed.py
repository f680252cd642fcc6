"""Searches with a narrowed space: algorithms accept rows outside of it."""

from typing import Any

import pytest

from jobs.messages.suggest import TrialRow
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.space.narrowing import contains, narrow_space
from jobs.spec.space.search_space import check_values, grid
from tests.engine.search.searching import Values, ask, items, search, values_of

WIDE = search(
    space=[
        {"name": "units", "kind": "int", "min": 16, "max": 128, "step": 16},
        {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
        {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd", "rmsprop"]},
        {
            "name": "momentum",
            "kind": "float",
            "min": 0.0,
            "max": 0.9,
            "when": {"name": "optimizer", "in": ["sgd"]},
        },
        {"name": "batch_norm", "kind": "boolean"},
    ]
).space
NARROW = narrow_space(
    WIDE,
    [
        {"name": "units", "max": 64},
        {"name": "learning_rate", "max": 1e-2},
        {"name": "optimizer", "values": ["adam", "rmsprop"]},
        {"name": "batch_norm", "kind": "fixed", "value": True},
    ],
)


def rows_of_before(algorithm: str) -> list[TrialRow]:
    """Return trials from a search over the wide space: most completed, two running, one failed."""
    spec = search(algorithm, WIDE, max_trials=60)
    suggestions = ask(spec, count=12, epochs=9).suggestions
    rows = []
    for number, suggestion in enumerate(suggestions, 1):
        state = {3: "running", 4: "running", 5: "failed"}.get(number, "completed")
        rows.append(
            TrialRow(
                number=number,
                state=state,
                values=suggestion.values,
                score=number / 12 if state == "completed" else None,
                bracket=suggestion.bracket,
                epochs=suggestion.epochs,
                inside=contains(NARROW, suggestion.values, on_grid=algorithm == "grid"),
            )
        )
    assert any(not row.inside for row in rows)
    return rows


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_rows_outside_the_space_are_accepted_and_suggestions_are_inside(algorithm: str) -> None:
    suggestions = values_of(
        ask(search(algorithm, NARROW, max_trials=60), rows_of_before(algorithm), 4, epochs=9)
    )
    assert len(suggestions) == 4
    assert all(check_values(NARROW, values) == values for values in suggestions)


@pytest.mark.parametrize("algorithm", sorted(name for name, info in ALGORITHMS.items() if not info.has_rungs))
def test_trials_outside_the_space_count_towards_max_trials(algorithm: str) -> None:
    answer = ask(search(algorithm, NARROW, max_trials=14), rows_of_before(algorithm), 10, epochs=9)
    assert len(answer.suggestions) == 2 and answer.exhausted


def walked(space: Any, narrow: Any) -> tuple[list[Values], list[Values]]:
    """Suggest five grid points, narrow the space, and continue to the end of the grid."""
    before = values_of(ask(search("grid", space, max_trials=1000), count=5))
    rows = [
        TrialRow(
            number=i,
            state="completed",
            values=values,
            score=0.5,
            inside=contains(narrow, values, on_grid=True),
        )
        for i, values in enumerate(before, 1)
    ]
    answer = ask(search("grid", narrow, max_trials=1000), rows, 1000)
    assert answer.exhausted
    return before, values_of(answer)


@pytest.mark.parametrize(
    ("space", "sent"),
    [
        ([{"name": "units", "kind": "int", "min": 0, "max": 9}], {"name": "units", "min": 3}),
        ([{"name": "units", "kind": "int", "min": 0, "max": 9}], {"name": "units", "step": 2}),
        (
            [{"name": "rate", "kind": "float", "min": 0.0, "max": 9.0}],
            {"name": "rate", "min": 3.0, "max": 7.5},
        ),
        ([{"name": "rate", "kind": "float", "min": 0.0, "max": 9.0}], {"name": "rate", "max": 4.5}),
    ],
)
def test_a_narrowed_grid_is_completed_without_repeated_points(
    space: list[dict[str, Any]], sent: dict[str, Any]
) -> None:
    wide = search("grid", space).space
    narrow = narrow_space(wide, [sent])
    before, after = walked(wide, narrow)
    every = [items(values) for values in grid(narrow)]
    assert sorted(map(items, after)) == sorted(set(every) - set(map(items, before)))
