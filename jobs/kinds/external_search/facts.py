from jobs.kinds.base import TABS, Facts
from jobs.kinds.external_search.payload import ExternalSearchPayload
from jobs.kinds.roots import RootResult

EXTERNAL_SEARCH = Facts(
    name="external_search",
    title="Search",
    payload=ExternalSearchPayload,
    result=RootResult,
    public_as="search",
    has_trials=True,
    trial_waits_for="The next script that requests a trial gets this one.",
    tabs=("overview", "trials", *TABS[1:]),
    details="jobs.queries.search.external_search.environment_of",
    details_template="search/external_search.html",
)
