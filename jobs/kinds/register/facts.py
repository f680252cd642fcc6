from jobs.kinds.base import Facts
from jobs.kinds.register.payload import RegisterPayload, RegisterResult, RegisterTask

REGISTER = Facts(
    name="register",
    title="Validation",
    payload=RegisterPayload,
    result=RegisterResult,
    task=RegisterTask,
    engine="workers.engine.tasks.register.run",
    belongs_to="version",
    planned=lambda spec: len(set(spec.after.register_.what)) if spec.after.register_ is not None else 0,
    usual_starts=0.5,
)
