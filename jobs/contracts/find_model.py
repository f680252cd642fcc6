"""Builds the experiment of "Find me a good model": one search over all templates that take the data.

The search chooses a template and its arguments together, so a template with good results gets more trials. It
begins with the defaults of each template, which are the baselines of the result.
"""

import math
from collections.abc import Iterator
from typing import Any, Self

from pydantic import Field, model_validator

from jobs.contracts import measures
from jobs.contracts.base import Frozen
from jobs.contracts.hyperparameters import Value
from jobs.contracts.model import model_json
from jobs.contracts.profile import Profile
from jobs.contracts.searchable import TEMPLATE
from jobs.contracts.templates import TEMPLATES
from jobs.contracts.templates.info import TemplateInfo

FEWEST_TRIALS = 10
MOST_TRIALS = 10_000
"""The limit of trials of a search with a limit of minutes."""
MOST_MINUTES = 100_000
RETRAINED = 5
"""How many of the best trials are trained again and become members of the ensemble."""
EPOCHS, PATIENCE = 100, 10
SMALL = 1_000
"""Rows. Smaller data are trained with smaller batches, so that an epoch has enough steps."""
LEARNING_RATE = {"kind": "float", "min": 1e-4, "max": 3e-2, "sampling": "log"}


class Budget(Frozen):
    """How long a search may take: minutes or trials, one of them."""

    minutes: float | None = Field(default=None, gt=0, le=MOST_MINUTES)
    trials: int | None = Field(default=None, ge=FEWEST_TRIALS, le=MOST_TRIALS)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.minutes is None) == (self.trials is None):
            raise ValueError("give minutes or trials, one of them")
        return self


def suitable(profile: Profile) -> list[TemplateInfo]:
    """Return the templates that take the data, in the order of the registry.

    Those that read the words of texts in their order are left out: all trials take the same input.
    """
    inputs = math.prod(profile.input_shape)
    return [
        info
        for info in TEMPLATES.values()
        if info.takes(profile)
        and not info.reads_tokens
        and (info.most_inputs is None or inputs <= info.most_inputs)
    ]


def spec_for(dataset: str, version: int, profile: Profile, budget: Budget) -> dict[str, Any]:
    """Return the spec of the search, as JSON.

    Args:
        dataset: the slug of the data set.
        version: the number of its version.
        profile: of that version.
        budget: of the search. The steps after it come on top.
    """
    templates = suitable(profile)
    first = list(_defaults(templates))
    trials = MOST_TRIALS if budget.trials is None else max(budget.trials - len(first), 1)
    is_regression = profile.task == "regression"
    metric = "val_loss" if is_regression else "val_accuracy"
    return {
        "version": 1,
        "data": {
            "dataset": dataset,
            "dataset_version": version,
            "split": {"validation": 0.2, "test": 0.2, "seed": 0, "stratify": not is_regression},
        },
        "model": model_json(templates[0].name),
        "fit": {
            "epochs": EPOCHS,
            "batch_size": 32 if profile.rows < SMALL else 128,
            "early_stopping": {"patience": PATIENCE},
        },
        "search": {
            "algorithm": "tpe",
            "objective": {"metric": metric, "direction": measures.direction(metric)},
            "max_trials": trials,
            **({} if budget.minutes is None else {"max_minutes": budget.minutes}),
            # One template may fail on data that suit the others.
            "max_consecutive_failures": 10,
            "pruner": {"kind": "median", "startup_trials": 5, "warmup_epochs": PATIENCE},
            "space": list(_space(templates)),
            "start_with": first,
        },
        "after": {
            "retrain": {"top": min(RETRAINED, trials)},
            "ensemble": {"method": "weighted"},
        },
    }


def _space(templates: list[TemplateInfo]) -> Iterator[dict[str, Any]]:
    yield {"name": TEMPLATE, "kind": "choice", "values": [info.name for info in templates]}
    for info in templates:
        only = {"name": TEMPLATE, "in": [info.name]}
        for argument in info.searched:
            yield {"name": f"{info.name}/{argument}", **info.ranges[argument], "when": only}
    networks = [info.name for info in templates if info.uses("learning_rate")]
    yield {"name": "learning_rate", **LEARNING_RATE, "when": {"name": TEMPLATE, "in": networks}}


def _defaults(templates: list[TemplateInfo]) -> Iterator[dict[str, Value]]:
    """Yield the default configuration of each template; a default outside its range is moved to the bound."""
    for info in templates:
        defaults = info.arguments().model_dump(mode="json")
        values = {f"{info.name}/{name}": _inside(info.ranges[name], defaults[name]) for name in info.searched}
        rate = {"learning_rate": 1e-3} if info.uses("learning_rate") else {}
        yield {TEMPLATE: info.name, **values, **rate}


def _inside(bounds: Any, value: Value) -> Value:
    if bounds["kind"] in ("int", "float") and not isinstance(value, str):
        inside: Value = min(max(value, bounds["min"]), bounds["max"])
        return inside
    return value
