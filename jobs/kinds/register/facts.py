from jobs.contracts.experiment import ExperimentSpec
from jobs.kinds.base import Facts
from jobs.kinds.register.payload import RegisterPayload, RegisterResult, RegisterTask


def _planned(spec: ExperimentSpec) -> int:
    return len(spec.after.register_.what) if spec.after.register_ is not None else 0


REGISTER = Facts(
    name="register",
    title="Validation",
    payload=RegisterPayload,
    result=RegisterResult,
    task=RegisterTask,
    engine="workers.engine.tasks.register.run",
    planned=_planned,
    usual_starts=0.5,
)
