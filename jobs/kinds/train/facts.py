from jobs.kinds.base import Facts
from jobs.kinds.train.payload import TrainPayload, TrainResult
from jobs.messages.training import TrainTask
from jobs.spec.experiment import ExperimentSpec


def _planned(spec: ExperimentSpec) -> int:
    if spec.search is None:
        return 1
    if spec.after.retrain is not None:
        return spec.after.retrain.top
    return int(spec.after.has_steps())


TRAIN = Facts(
    name="train",
    title="Training",
    payload=TrainPayload,
    result=TrainResult,
    task=TrainTask,
    engine="workers.engine.tasks.train.run",
    planned=_planned,
    has_steps=True,
    trains=True,
    evaluates=True,
    candidate="best",
    registered_as="best",
)
