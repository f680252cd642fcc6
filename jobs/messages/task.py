"""Declares the base class for runner tasks and the parts that several task kinds share.

A task is stored as `spec.json` in a runner's folder. It refers to files by paths on the worker's machine, not
by database ids. The supervisor has placed the files there.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from jobs.messages.environments import InstalledPackage, InstalledSet, PackageChoice
from jobs.messages.sandbox import Level
from jobs.spec.base import Frozen
from jobs.spec.checks.packages import digest_of

_INPUT, _CHECKPOINT = "an input file", "a checkpoint"
InputPath = Annotated[str, _INPUT]
"""The path to a file that the runner reads. It gets only files in fields with this type."""
OptionalInputPath = Annotated[str | None, _INPUT]
CheckpointPath = Annotated[str, _CHECKPOINT]
"""The path to a checkpoint folder from which the runner may resume."""


class DatasetFile(Frozen):
    """A dataset version's table, with its profile."""

    path: InputPath = Field(description="the file of a version, written by a profile task")
    digest: str
    profile: dict[str, Any] = Field(description="jobs.spec.data.profile.Profile as JSON")


def required(dataset: DatasetFile | None) -> DatasetFile:
    """Return a task's data, which the model needs.

    Raises:
        ValueError: the task has none.
    """
    if dataset is None:
        raise ValueError("the task has no data")
    return dataset


class BaseModelFile(Frozen):
    """The version's file from which a training reads its first weights."""

    path: InputPath
    digest: str
    foreign: bool = Field(default=False, description="uploaded by a person: scan before Keras sees it")


class CheckpointFolder(Frozen):
    """A checkpoint to resume from. The runner verifies its manifest first."""

    folder: CheckpointPath
    manifest: str
    step: int
    epoch: int = 0
    copied: bool = Field(default=False, description="whether object storage has a copy")
    worker: str = Field(default="", description="the name of the worker that wrote it")


class EarlierTraining(Frozen):
    """How far earlier attempts have trained a model, for the case that no checkpoint of it is left.

    Attributes:
        epoch: the last epoch that they completed.
        had_checkpoint: whether a checkpoint was ever recorded; without one, a start from epoch 1 is usual.
        reason: why the training cannot resume, as far as the supervisor knows.
    """

    epoch: int
    had_checkpoint: bool = True
    reason: str = ""


class OwnCodeFile(Frozen):
    """A file in a code version."""

    path: str = Field(description="in the version, with / between folders")
    place: InputPath


class OwnCode(Frozen):
    """A version of user code. A task with code runs in a sandbox.

    Attributes:
        digest: the version's digest.
        files: its files.
        folder: where the supervisor has put them, read-only for the runner; empty until then.
        requirements: the packages that it asks for, as it writes them.
        sets: the packages that are recorded for them, one set for each Python and platform.
        packages: those that it must have instead, because a model version names them.
        resolution: changes when a person has the versions chosen again.
        requires_python: the Python versions that it asks for, such as `>=3.12`; empty for all.
        python: its environment's interpreter; empty for the worker's.
        environment: the digest of its environment on the worker; empty for none.
        own_versions: the environment may have other versions of this program's packages, so the runner keeps
            the worker's interpreter, and only a script gets the environment's.
        minimum: the weakest sandbox level at which it may run.
        network: whether it may connect to other hosts, which the project decides.
        passes_batch_size: see `jobs.kinds.base.Payload`.
    """

    digest: str
    files: tuple[OwnCodeFile, ...] = ()
    folder: str = ""
    requirements: tuple[str, ...] = ()
    sets: tuple[InstalledSet, ...] = ()
    packages: tuple[InstalledPackage, ...] | None = None
    resolution: str = ""
    requires_python: str = ""
    python: str = ""
    environment: str = ""
    own_versions: bool = False
    minimum: Level
    network: bool
    passes_batch_size: bool = True

    def wanted_packages(
        self, python: str, platform: str, *, for_engine: bool
    ) -> tuple[InstalledPackage, ...] | None:
        """Return the recorded packages for a Python and a platform, or None if versions are to be chosen."""
        if self.packages is not None:
            return self.packages
        target = (python, platform, for_engine)
        for recorded in self.sets:
            if (recorded.python, recorded.platform, recorded.for_engine) == target:
                return recorded.packages
        return None

    @property
    def choice(self) -> PackageChoice | None:
        """For which later runs its packages are recorded; None if a model version names them."""
        if self.packages is not None:
            return None
        return PackageChoice(requirements=digest_of(self.requirements), resolution=self.resolution)

    def as_installed(self) -> "OwnCode":
        """Return it without the fields that only installing its packages needs."""
        return self.model_copy(update={"sets": (), "packages": None, "resolution": "", "environment": ""})


class ModelWithCode(Frozen):
    """A model file with user code, which a process in a separate sandbox executes for a task.

    The task's process gets predictions only: it never has the code.

    Attributes:
        name: the name in the task, such as `challenger`.
        file: the model file.
        code: its code. The supervisor leaves it out of the task that it hands over.
        socket: where the task asks for predictions; set by the supervisor.
        failure: why it cannot be executed, if the supervisor knows that already.
    """

    name: str
    file: InputPath
    code: OwnCode | None = None
    socket: str = ""
    failure: str = ""


class Task(Frozen):
    """The fields that every task has. Each kind adds fields and sets `kind` to its name."""

    kind: str
    version: Literal[1] = 1
    folder: str = Field(description="the folder of the attempt; all its output is written there")
    checkpoints: str = Field(default="", description="the folder in the store for its checkpoints")
    fence: int = Field(default=1, description="the attempt's number; part of every checkpoint's name")
    threads: int = Field(default=1, ge=1)
    compile_cache: str | None = None
    in_memory_bytes: int | None = Field(
        default=None,
        ge=0,
        description="the rows of a larger table are read from its file when they are used; None: no limit",
    )
    code: OwnCode | None = Field(default=None, description="code of a user that the task runs")
    models: tuple[ModelWithCode, ...] = Field(
        default=(), description="models with code of users, of which the task gets predictions only"
    )
    base_model: BaseModelFile | None = Field(
        default=None, description="None unless the spec's model is a version"
    )

    def reads_foreign_file(self) -> bool:
        """Return whether the task reads a file that a person uploaded. Limits apply to such tasks."""
        return False

    def runs_in_engine(self) -> bool:
        """Return whether it runs in the engine's process, with this program's packages."""
        spec = getattr(self, "spec", None)
        return spec is None or not spec.model.info.trains_itself

    def resumes_from(self) -> tuple[CheckpointFolder, ...]:
        """Return the first open training's checkpoints, newest first."""
        return ()


def with_inputs[Part: BaseModel](part: Part, place: Callable[[str], str]) -> Part:
    """Replace each input path in a task, or in a part, by `place(path)`."""
    return _with_paths(part, _INPUT, place)


def with_checkpoints[Part: BaseModel](part: Part, place: Callable[[str], str]) -> Part:
    """Replace the folder of each checkpoint from which a task may resume by `place(folder)`."""
    return _with_paths(part, _CHECKPOINT, place)


def _with_paths[Part: BaseModel](part: Part, kind: str, place: Callable[[str], str]) -> Part:
    changed: dict[str, object] = {}
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        marked = value is not None and kind in field.metadata
        new = place(value) if marked else _placed(value, kind, place)
        if new is not value:
            changed[name] = new
    return part.model_copy(update=changed) if changed else part


def _placed(value: object, kind: str, place: Callable[[str], str]) -> object:
    if isinstance(value, BaseModel):
        return _with_paths(value, kind, place)
    if type(value) is tuple:
        parts = tuple(_placed(part, kind, place) for part in value)
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    return value
