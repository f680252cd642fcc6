"""Creates the two demo users: one trains and requests promotions, the other approves them."""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from jobs import clock
from jobs.actions.people import people, tokens
from jobs.queries.people.people import people_accounts

TRAINER, APPROVER = "ada", "grace"
TOKEN_LIFETIME = timedelta(days=7)
SCOPES = {TRAINER: ["read", "write", "predict"], APPROVER: ["read", "write", "approve", "predict"]}


@dataclass(frozen=True)
class DemoPerson:
    """A demo user with an API token."""

    name: str
    token: str


def create_demo_person(name: str) -> DemoPerson:
    """Return a demo user with a new token; create the user if needed."""
    user = people_accounts().filter(username=name).first() or people.add_person(name, by=None)
    _, token = tokens.create(
        user, by=user, scopes=SCOPES[name], name="demo", expires=clock.now() + TOKEN_LIFETIME
    )
    return DemoPerson(name, token)


def demo_login_link(name: str, page: str) -> str:
    """Return a new link's path that logs a demo user in once and opens `page`."""
    user = people_accounts().get(username=name)
    return f"{people.create_login_link(user, by=None)}?{urlencode({'next': page}, safe='/')}"
