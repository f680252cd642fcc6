"""What a runner may be told: one JSON object a line on its standard input.

A runner starts idle, takes one task, and after its final event is idle again: a warm runner serves
one trial after another of the same search. End of file on standard input ends it. A standby is asked to
rehearse first, before anybody has a task for it.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from jobs.contracts.base import Frozen
from jobs.contracts.pruning import Curve


class Start(Frozen):
    """Run the task in the file `task` (a `jobs.contracts.task.Task`)."""

    op: Literal["start"] = "start"
    task: str


class Rehearse(Frozen):
    """Start JAX, train something made up, say `ready`, be idle: a standby's first order."""

    op: Literal["rehearse"] = "rehearse"
    folder: str = Field(description="what it writes goes below it")
    compile_cache: str = Field(description="a cache of rehearsals alone: nothing of a project is in it")
    threads: int = Field(ge=1)
    platform: str | None = None
    simulated_devices: int = 1


class Yield(Frozen):
    """Write a checkpoint at the next safe point, say `yielded`, be idle again."""

    op: Literal["yield"] = "yield"
    why: Literal["pause", "stop"]


class Checkpoint(Frozen):
    """Write a checkpoint at the next safe point and go on."""

    op: Literal["checkpoint"] = "checkpoint"


class Compare(Frozen):
    """These trainings have ended elsewhere: from the next epoch on, a pruner compares with them too."""

    op: Literal["compare"] = "compare"
    curves: tuple[Curve, ...]


class Recorded(Frozen):
    """These checkpoints are in the database, under these names: what is older will not be gone on from."""

    op: Literal["recorded"] = "recorded"
    folders: tuple[str, ...]


Control = Annotated[Start | Rehearse | Yield | Checkpoint | Compare | Recorded, Field(discriminator="op")]
CONTROL: TypeAdapter[Control] = TypeAdapter(Control)
