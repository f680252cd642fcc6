from jobs.kinds.base import Facts
from jobs.kinds.gate.payload import GatePayload, GateResult, GateTask

GATE = Facts(
    name="gate",
    title="Gates",
    payload=GatePayload,
    result=GateResult,
    task=GateTask,
    engine="workers.engine.tasks.gate.run",
    belongs_to="promotion",
    retry_refusal="belongs to a promotion request that is closed; request the promotion again",
)
