from jobs.kinds.base import TABS, Facts
from jobs.kinds.roots import RootResult
from jobs.kinds.search.payload import SearchPayload
from jobs.messages.training import TrialTask

SEARCH = Facts(
    name="search",
    title="Search",
    payload=SearchPayload,
    result=RootResult,
    task=TrialTask,
    engine="workers.engine.tasks.trial.run",
    planned=lambda spec: int(spec.search is not None),
    has_steps=True,
    has_trials=True,
    tabs=("overview", "trials", *TABS[1:]),
)
