"""Simulates searches without training: rows, and trials that end in random order."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jobs.messages.suggest import FINAL, Answer, SuggestRequest, TrialRow
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.sections.search import SearchSpec
from tests.present import present
from workers.engine.search.suggest import suggest

Values = dict[str, Any]


def search(
    algorithm: str = "random", space: Sequence[Any] = (), direction: str = "max", **more: Any
) -> SearchSpec:
    """Return a search over `space`."""
    metric = "val_accuracy" if direction == "max" else "val_loss"
    body = {"algorithm": algorithm, "space": list(space), **more}
    if "objectives" not in more:
        body["objective"] = {"metric": metric, "direction": direction}
    return SearchSpec.model_validate(body)


def ask(spec: SearchSpec, rows: Iterable[TrialRow] = (), count: int = 1, epochs: int = 100) -> Answer:
    """Return the answer to these rows."""
    return suggest(SuggestRequest(search=spec, trials=tuple(rows), count=count, epochs=epochs))


def values_of(answer: Answer) -> list[Values]:
    """Return an answer's configurations."""
    return [suggestion.values for suggestion in answer.suggestions]


def row(number: int, state: str = "completed", values: Values | None = None, **more: Any) -> TrialRow:
    """Return a trial's row, with arbitrary values unless they are given."""
    return TrialRow(number=number, state=state, values=values or {"learning_rate": number / 1000}, **more)


def quality(values: Values, epochs: int) -> float:
    """Return a configuration's score after `epochs` epochs, to minimize; more training is better."""
    return sum(math.sin(7 * float(v)) for v in values.values() if not isinstance(v, str)) + 1 / epochs


def finished(rows: Iterable[TrialRow]) -> bool:
    """Return whether every trial is final."""
    return all(r.state in FINAL for r in rows)


def play(
    algorithm: str,
    space: Sequence[Any],
    *,
    seed: int = 0,
    max_trials: int = 12,
    epochs: int = 9,
    slots: int = 4,
    trouble: float = 0.2,
    look: Callable[[list[TrialRow], Answer, int], None] | None = None,
    limit: int = 2000,
    **more: Any,
) -> list[TrialRow]:
    """Simulate a search; trials end in random order, and fail or have no score with probability `trouble`.

    Fails if it does not end. `look(rows, answer, asked)` sees every answer.
    """
    rng = random.Random(seed)
    spec = search(algorithm, space, "min", max_trials=max_trials, seed=seed, **more)
    top = epochs
    rows: dict[int, TrialRow] = {}
    for _ in range(limit):
        running = [r for r in rows.values() if r.state == "running"]
        if (free := slots - len(running)) and (not running or rng.random() < 0.6):
            shuffled = rng.sample(list(rows.values()), len(rows))
            answer = ask(spec, shuffled, free, epochs)
            if look is not None:
                look(list(rows.values()), answer, free)
            _apply(rows, answer)
            if answer.exhausted and not any(r.state == "running" for r in rows.values()):
                return list(rows.values())
            assert answer.suggestions or running, "it waits, and nothing runs"
        if running := [r for r in rows.values() if r.state == "running"]:
            _end(rows, rng.choice(running), top, trouble, rng, climbs=ALGORITHMS[algorithm].has_rungs)
    raise AssertionError(f"{algorithm} did not end: {rows}")


def _apply(rows: dict[int, TrialRow], answer: Answer) -> None:
    for said in answer.suggestions:
        place = {"bracket": said.bracket, "rung": said.rung, "epochs": said.epochs}
        if said.promotes is not None:
            old = rows[said.promotes]
            assert old.waits() and said.rung == old.rung + 1 and present(said.epochs) > present(old.epochs)
            rows[old.number] = old.model_copy(update={**place, "state": "running"})
        elif said.answered_by is not None:
            first = rows[said.answered_by]
            number = len(rows) + 1
            rows[number] = TrialRow(number=number, state="completed", values=said.values, score=first.score)
        else:
            rows[len(rows) + 1] = TrialRow(number=len(rows) + 1, state="running", values=said.values, **place)
    for dropped in answer.dropped:
        assert rows[dropped.trial].waits()
        rows[dropped.trial] = rows[dropped.trial].model_copy(update={"state": "pruned"})


def _end(
    rows: dict[int, TrialRow], trial: TrialRow, top: int, trouble: float, rng: random.Random, *, climbs: bool
) -> None:
    """End a training at its rung or finally, with or without a failure."""
    chance = rng.random()
    if chance < trouble / 2:
        rows[trial.number] = trial.model_copy(update={"state": rng.choice(["failed", "stopped"])})
        return
    score = None if chance < trouble else quality(trial.values, trial.epochs or top)
    rungs = (*trial.rungs, score) if climbs else ()
    state = "paused" if climbs and trial.epochs is not None and trial.epochs < top else "completed"
    rows[trial.number] = trial.model_copy(update={"state": state, "score": score, "rungs": rungs})


def items(values: Values) -> tuple[tuple[str, Any], ...]:
    """Return a configuration as a value that can be hashed and sorted."""
    return tuple(sorted(values.items()))
