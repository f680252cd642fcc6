from jobs.kinds.base import Facts
from jobs.kinds.ensemble.payload import EnsemblePayload, EnsembleResult, EnsembleTask
from jobs.messages.reports.ensemble import EnsembleReport

ENSEMBLE = Facts(
    name="ensemble",
    title="Ensemble",
    payload=EnsemblePayload,
    result=EnsembleResult,
    task=EnsembleTask,
    engine="workers.engine.tasks.ensemble.run",
    planned=lambda spec: int(spec.after.ensemble is not None),
    pools=True,
    evaluates=True,
    candidate="ensemble",
    report=EnsembleReport,
    registered_as="ensemble",
    usual_starts=1.0,
)
