"""What one runner is to do: the `spec.json` in its folder. Paths are of the worker's machine.

Every task names files by path, never by database id; the supervisor has put them there.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from jobs.contracts.after import Ensemble, Quantize, Retrain
from jobs.contracts.base import Frozen
from jobs.contracts.evaluation import Turn
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.pruning import Curve
from jobs.contracts.search import Objective
from jobs.contracts.search_space import Value


class DatasetFile(Frozen):
    """Where a dataset version's table lies, and its schema as the profile found it."""

    path: str = Field(description="an .npz of named columns written by a profile task")
    digest: str
    profile: dict[str, Any] = Field(description="jobs.contracts.profile.Profile as JSON")


class CheckpointFolder(Frozen):
    """A checkpoint to go on from; the runner verifies the manifest before it trusts it."""

    folder: str
    manifest: str
    step: int


class ExecutionPlan(Frozen):
    """One training of a trial still to be done, and the newest checkpoints to go on from, newest first."""

    execution: int = Field(ge=1)
    seed: int
    repeat: int = Field(default=1, ge=1)
    fold: int | None = Field(default=None, ge=1, description="of a cross-validation: the one held out")
    checkpoints: tuple[CheckpointFolder, ...] = ()

    def turn(self) -> Turn:
        """Return its part of the evaluation."""
        return Turn(self.repeat, self.fold)


class _Task(Frozen):
    version: Literal[1] = 1
    folder: str = Field(description="the attempt's own folder; everything it writes goes below it")
    checkpoints: str = Field(default="", description="where its checkpoint folders go (the store)")
    fence: int = Field(default=1, description="the attempt's number; part of every checkpoint's name")
    threads: int = Field(default=1, ge=1)
    compile_cache: str | None = None


class ProfileTask(_Task):
    """Read an upload (or a bundled set), write it as .npz, describe it."""

    kind: Literal["profile"] = "profile"
    source: Literal["bundled", "csv", "npz", "parquet"]
    path: str | None = None
    bundled: str | None = None
    target: str | None = None
    features: tuple[str, ...] | None = None
    task: str | None = None


class TrialPlan(Frozen):
    """One trial of a task: its values, the spec with these applied, and its executions still to be done."""

    number: int = Field(ge=1)
    values: dict[str, Value]
    spec: ExperimentSpec
    executions: tuple[ExecutionPlan, ...]
    until: int | None = Field(default=None, ge=1, description="the epoch up to which it may train now")
    waits: bool = Field(default=False, description="what reaches `until` waits there and may go on later")

    @property
    def epochs(self) -> int:
        """Return the epoch at which its trainings end, if nothing stops them before."""
        return self.spec.fit.epochs if self.until is None else min(self.until, self.spec.fit.epochs)


class TrialTask(_Task):
    """Run trials of one search, one after another. `spec` is the search's, without any trial's values."""

    kind: Literal["trial"] = "trial"
    spec: ExperimentSpec
    objective: Objective
    dataset: DatasetFile
    trials: tuple[TrialPlan, ...] = Field(min_length=1)
    curves: tuple[Curve, ...] = Field(
        default=(), description="of earlier trials, which a pruner compares with"
    )


class TrainTask(_Task):
    """Train for real: find the best epoch, retrain on train + validation, evaluate on test once."""

    kind: Literal["train"] = "train"
    spec: ExperimentSpec
    dataset: DatasetFile
    retrain: Retrain | None
    objective: Objective
    model_name: str = Field(description="unique name of the Keras model: two members may not share one")
    resume: tuple[CheckpointFolder, ...] = Field(default=(), description="newest first")


class Member(Frozen):
    """One retrained model and its predictions, made while it had not seen validation data."""

    name: str
    model: str = Field(description="path of its .keras")
    validation_predictions: str = Field(description="path of an .npz: y_true, y_pred, rows")
    score: float | None = None
    values: dict[str, Value] = Field(default_factory=dict)
    seed_only: bool = False
    title: str = Field(default="", description="what people call it; its name where nothing stands")

    @property
    def called(self) -> str:
        """Return what sentences for people call this member."""
        return self.title or self.name


class EnsembleTask(_Task):
    """Fit weights on the members' validation predictions, save one .keras, evaluate on test once."""

    kind: Literal["ensemble"] = "ensemble"
    spec: ExperimentSpec
    ensemble: Ensemble
    dataset: DatasetFile
    members: tuple[Member, ...] = Field(min_length=2)


class QuantizeTask(_Task):
    """Quantize a trained model and compare it with the original on the same test rows."""

    kind: Literal["quantize"] = "quantize"
    spec: ExperimentSpec
    quantize: Quantize
    dataset: DatasetFile
    model: str


class RegisterTask(_Task):
    """Load a model in this clean process, read its signature, run it on a sample of rows."""

    kind: Literal["register"] = "register"
    model: str
    digest: str
    foreign: bool = Field(default=False, description="uploaded by a person: scan before Keras sees it")
    dataset: DatasetFile | None = None


class GateTask(_Task):
    """Judge a challenger against the champion on the same test rows."""

    kind: Literal["gate"] = "gate"
    challenger: str
    challenger_digest: str
    champion: str | None = None
    champion_signature: dict[str, Any] | None = None
    dataset: DatasetFile | None
    spec: ExperimentSpec | None
    delta: float = 0.01


Task = Annotated[
    ProfileTask | TrialTask | TrainTask | EnsembleTask | QuantizeTask | RegisterTask | GateTask,
    Field(discriminator="kind"),
]
TASK: TypeAdapter[Task] = TypeAdapter(Task)
