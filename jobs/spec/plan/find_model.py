"""Builds the experiment for "Find me a good model": one search over all templates that fit the data.

The search chooses a template and its arguments together, so a template with good results gets more trials. It
begins with each template's defaults, which are the result's baselines.
"""

import math
from collections.abc import Iterator
from typing import Any, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen
from jobs.spec.data.encoding import NUMBER_BYTES
from jobs.spec.data.file_limits import GIB
from jobs.spec.data.profile import Profile
from jobs.spec.sections import measures
from jobs.spec.sections.data import Task
from jobs.spec.sections.model import model_json
from jobs.spec.sections.search import UNCOUNTED_TRIALS
from jobs.spec.space.hyperparameters import Value
from jobs.spec.space.searchable import TEMPLATE
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo

FEWEST_TRIALS = 10
MOST_TRIALS = UNCOUNTED_TRIALS
"""The most trials in a search, also if it is limited by minutes, which end it earlier."""
MOST_MINUTES = 100_000
RETRAINED = 5
"""How many of the best trials are trained again and become the ensemble's members."""
EPOCHS, PATIENCE = 100, 10
SMALL = 1_000
"""Rows. Smaller data are trained with smaller batches, so that an epoch has enough steps."""
ROW_MEMORY = GIB
"""Larger encoded tables are expected to be read from their file while a model trains, if no worker reports
its own limit."""
LEARNING_RATE = {"kind": "float", "min": 1e-4, "max": 3e-2, "sampling": "log"}


class Budget(Frozen):
    """How long a search may take: either minutes or trials."""

    minutes: float | None = Field(default=None, gt=0, le=MOST_MINUTES)
    trials: int | None = Field(default=None, ge=FEWEST_TRIALS, le=MOST_TRIALS)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.minutes is None) == (self.trials is None):
            raise ValueError("give minutes or trials, one of them")
        return self


STREAMED = (
    "{name} is not searched: this table has {size:.1f} GiB when its columns are encoded. That is more than "
    "the {room:.1f} GiB that a run has for rows, and {name} needs all rows in memory. To search it, leave "
    "out columns, or give the workers more memory"
)


def _encoded_bytes(profile: Profile) -> int:
    """Compute the size of a table's rows with all features encoded; 0 for other data."""
    is_table = profile.has_pipeline and profile.images is None
    return profile.rows * math.prod(profile.input_shape) * NUMBER_BYTES if is_table else 0


def suitable(profile: Profile, row_memory: int = ROW_MEMORY) -> list[TemplateInfo]:
    """Return the templates to search, in registry order.

    Those that read texts' words in their order are left out: all trials take the same input. So are those
    that need all rows in memory, if these are more than it holds.

    Args:
        profile: the data's profile.
        row_memory: the largest size of encoded rows that a run keeps in memory.
    """
    is_streamed = _encoded_bytes(profile) > row_memory
    return [info for info in _of_kind(profile) if info.by_gradient or not is_streamed]


def streamed_out(profile: Profile, row_memory: int = ROW_MEMORY) -> tuple[str, ...]:
    """Return why templates are not searched that would be, if the table were smaller."""
    searched = suitable(profile, row_memory)
    size, room = _encoded_bytes(profile) / GIB, row_memory / GIB
    left_out = (info.name for info in _of_kind(profile) if info not in searched)
    return tuple(STREAMED.format(name=name, size=size, room=room) for name in left_out)


def _of_kind(profile: Profile) -> list[TemplateInfo]:
    """Return the templates that fit such data, however many rows there are."""
    inputs = math.prod(profile.input_shape)
    return [
        info
        for info in TEMPLATES.values()
        if info.takes(profile)
        and not info.reads_tokens
        and (info.most_inputs is None or inputs <= info.most_inputs)
    ]


def default_objective(task: Task) -> str:
    """Return the metric that ranks trials unless another one is chosen."""
    return "val_loss" if task == "regression" else "val_accuracy"


def offered_objectives(task: Task) -> list[str]:
    """List the metrics that each template measures on validation data, from which an objective is chosen."""
    return measures.validation_names(None, task)


def spec_for(
    dataset: str,
    version: int,
    profile: Profile,
    budget: Budget,
    row_memory: int = ROW_MEMORY,
    *,
    objective: str = "",
    model: str = "",
) -> dict[str, Any]:
    """Return the search's spec, as JSON.

    Args:
        dataset: the data set's slug.
        version: the version's number.
        profile: that version's profile.
        budget: the search's budget. The steps after it come on top.
        row_memory: the largest size of encoded rows that a run keeps in memory.
        objective: one of `offered_objectives`; empty: the default of the data's task.
        model: the registered model that gets the best model and the ensemble as versions; empty: none.
    """
    templates = suitable(profile, row_memory)
    first = list(_defaults(templates))
    trials = MOST_TRIALS if budget.trials is None else max(budget.trials - len(first), 1)
    is_regression = profile.task == "regression"
    metric = objective or default_objective(profile.task)
    registration = {"register": {"model": model, "what": ["best", "ensemble"]}} if model else {}
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
            **registration,
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
    """Yield each template's default configuration; a default outside its range is moved to the bound."""
    for info in templates:
        defaults = info.arguments().model_dump(mode="json")
        values = {f"{info.name}/{name}": _clamp(info.ranges[name], defaults[name]) for name in info.searched}
        rate = {"learning_rate": 1e-3} if info.uses("learning_rate") else {}
        yield {TEMPLATE: info.name, **values, **rate}


def _clamp(bounds: Any, value: Value) -> Value:
    if bounds["kind"] in ("int", "float") and not isinstance(value, str):
        clamped: Value = min(max(value, bounds["min"]), bounds["max"])
        return clamped
    return value
