from jobs.kinds.base import Facts
from jobs.kinds.dry_run.payload import DryRunPayload, DryRunResult, DryRunTask

DRY_RUN = Facts(
    name="dry_run",
    title="Dry run of a precision",
    payload=DryRunPayload,
    result=DryRunResult,
    task=DryRunTask,
    engine="workers.engine.tasks.dry_run.run",
    listed=False,
    details="jobs.queries.experiments.dry_runs.dry_run_of_job",
    details_template="runs/details/dry_run.html",
)
