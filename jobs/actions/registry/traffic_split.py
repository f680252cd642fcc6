"""Divides an endpoint's requests among versions. Only the default division is available yet."""

from collections.abc import Mapping

from jobs import access
from jobs.access import Action
from jobs.errors import BadInput
from jobs.models import Endpoint, User
from jobs.spec.problems import Problem

ALL_TO_PRODUCTION = {"production": 100}
"""An endpoint's traffic by stage, in percent. Other distributions are not available yet."""


def change_split(
    endpoint: Endpoint, *, canary: int | None, shadow: int | None, traffic: Mapping[str, int], by: User
) -> None:
    """Check a change to the versions among which the traffic is divided. The present division is accepted.

    Args:
        endpoint: whose traffic is divided.
        canary: the version that answers some requests, by number; None for none.
        shadow: the version that gets copies of the requests, by number; None for none.
        traffic: percent of the requests by stage.
        by: the acting user.

    Raises:
        Forbidden: `by` may not change the served versions.
        BadInput: the change is not available yet.
    """
    access.require(by, endpoint.model.project, Action.SERVE)
    changed = {
        "canary": canary is not None,
        "shadow": shadow is not None,
        "traffic": dict(traffic) != ALL_TO_PRODUCTION,
    }
    hint = "not available yet: all requests go to production"
    if problems := [Problem(f"/{name}", hint) for name, differs in changed.items() if differs]:
        raise BadInput(f"Canary and shadow releases are {hint}.", problems)
