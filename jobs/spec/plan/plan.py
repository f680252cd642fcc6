"""The plan of an experiment and the state of the installation on which it depends."""

from typing import NamedTuple

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.plan.estimate import History
from jobs.spec.plan.fine_tuning import FineTuningPlan
from jobs.spec.plan.model_fields import Memory, PlannedVariable
from jobs.spec.sections.mesh import LayoutRule
from jobs.spec.sections.resources import WorkerSize
from jobs.spec.space.search_space import Value
from jobs.spec.space.summary import Line


class Situation(NamedTuple):
    """The installation's state on which a plan depends, as `jobs.queries` read it."""

    free_slots: int
    workers: tuple[WorkerSize, ...] = ()
    """The pool's live workers that have the labels and take work."""

    history: History | None = None
    unlabelled: bool = False
    """Whether the pool has live workers without the labels."""
    refusals: tuple[str, ...] = ()
    """The workers with the labels that take no work, each with its reason."""

    @property
    def total_slots(self) -> int:
        """Return the sum of the workers' slots."""
        return sum(worker.slots for worker in self.workers)


class PlanWarning(Frozen):
    """A warning and the place in the spec that it refers to."""

    pointer: str
    message: str


class Plan(Frozen):
    """The plan of an experiment. Sizes are in bytes, times in hours."""

    kind: str
    trials: int
    grid_size: int
    grid_is_larger: bool
    distinct: int | None
    space: str
    summary: tuple[Line, ...]
    max_minutes: float | None = Field(
        description="the time limit of a search that it alone ends; the numbers of trials, executions and "
        "epochs are then bounds that are seldom reached"
    )
    executions: int
    epochs: int
    epochs_of_search: int = Field(description="the part of `epochs` before the steps; 0 without a search")
    epochs_of_retraining: int = Field(description="the part of `epochs` that retraining adds to a search")
    epochs_likely: int | None
    retrainings: int
    epoch_chosen_by: str = Field(
        description="the measure that chooses the epoch of the model in the end; empty for a script alone"
    )
    stopped_by: str | None = Field(description="the measure that ends its training early; null: nothing does")
    steps: tuple[str, ...]
    minutes_per_training: float | None = Field(
        description="the time limit of a training or script, and of each retraining after a search"
    )
    slots: int
    slots_per_trial: int
    parallel_trials: int
    free_slots: int
    total_slots: int
    devices: int
    device_kind: str
    batch_shards: int
    parameters: int | None
    memory_per_device: int | None
    memory: Memory | None
    largest: dict[str, Value]
    device_hours: float | None
    device_hours_likely: float | None
    estimate: str
    variables: tuple[PlannedVariable, ...]
    variables_note: str = Field(
        default="", description="of which model the variables are, or why none are known; empty for templates"
    )
    suggested_layout: tuple[LayoutRule, ...]
    warnings: tuple[PlanWarning, ...]
    fine_tuning: FineTuningPlan | None = Field(
        default=None, description="the layers of a version that is trained further; null for other models"
    )
