from jobs.kinds.base import Facts
from jobs.kinds.dry_build.payload import DryBuildPayload, DryBuildResult, DryBuildTask

DRY_BUILD = Facts(
    name="dry_build",
    title="Dry build",
    payload=DryBuildPayload,
    result=DryBuildResult,
    task=DryBuildTask,
    engine="workers.engine.tasks.dry_build.run",
    listed=False,
    details="jobs.queries.code.dry_builds.dry_build_of_job",
    details_template="runs/details/dry_build.html",
)
