"""Declares the commands to a runner: one JSON object per line on its standard input.

A runner starts idle, runs one task, and is idle again after its final event, so a warm runner can serve a
search's trials one after another. It exits when its input ends. A standby gets `Rehearse` first, before there
is a task for it.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from jobs.spec.base import Frozen
from jobs.spec.sections.pruning import Curve


class ProcessLimits(Frozen):
    """The kernel's limits for a runner, which it sets for itself before it reads its task's files.

    The supervisor cannot set them: without CAP_SYS_RESOURCE, the kernel refuses it for a process with another
    user.
    """

    memory: int = Field(ge=1, description="bytes that each process may allocate beside those that it has")
    cpu_seconds: float = Field(gt=0, description="CPU time of each process, beside that until now")
    file_bytes: int = Field(ge=1, description="size of each file that it writes")
    threads: int | None = Field(default=None, ge=1, description="of all processes of its user together")


class Start(Frozen):
    """Run the task in the file `task` (a `jobs.messages.task.Task`)."""

    op: Literal["start"] = "start"
    task: str
    limits: ProcessLimits | None = None


class Rehearse(Frozen):
    """Prepare for a task, send `ready` and wait: the first command to a standby."""

    op: Literal["rehearse"] = "rehearse"
    folder: str = Field(description="the rehearsal writes below it")
    compile_cache: str = Field(description="a cache for rehearsals only, without programs of any project")
    threads: int = Field(ge=1)
    platform: str | None = None
    simulated_devices: int = 1
    preallocate: bool = False
    memory_fraction: float | None = None


class Yield(Frozen):
    """Write a checkpoint at the next safe point, send `yielded` and become idle."""

    op: Literal["yield"] = "yield"
    why: Literal["pause", "stop"]


class Checkpoint(Frozen):
    """Write a checkpoint at the next safe point and continue."""

    op: Literal["checkpoint"] = "checkpoint"


class Compare(Frozen):
    """Curves from trainings that ended on other runners; the pruner uses them from the next epoch."""

    op: Literal["compare"] = "compare"
    curves: tuple[Curve, ...]


class Recorded(Frozen):
    """These checkpoint folders are in the database, so no attempt will resume from older ones."""

    op: Literal["recorded"] = "recorded"
    folders: tuple[str, ...]


Control = Annotated[Start | Rehearse | Yield | Checkpoint | Compare | Recorded, Field(discriminator="op")]
CONTROL: TypeAdapter[Control] = TypeAdapter(Control)
