from jobs.kinds.base import Facts
from jobs.kinds.split_overview.payload import SplitOverviewPayload, SplitOverviewResult, SplitOverviewTask

SPLIT_OVERVIEW = Facts(
    name="split_overview",
    title="Overview of a split",
    payload=SplitOverviewPayload,
    result=SplitOverviewResult,
    task=SplitOverviewTask,
    engine="workers.engine.tasks.split_overview.run",
    belongs_to="dataset_version",
    needs_jax=False,
    listed=False,
)
