"""The demo's two people: one trains and asks, the other approves."""

from dataclasses import dataclass
from datetime import timedelta

from jobs import clock
from jobs.actions import people, tokens
from jobs.queries.people import accounts

TRAINER, APPROVER = "ada", "grace"
LIFE = timedelta(days=7)
SCOPES = {TRAINER: ["read", "write", "serve"], APPROVER: ["read", "write", "approve", "serve"]}


@dataclass(frozen=True)
class Person:
    """Somebody with a token, and a link to log in with in a browser of their own."""

    name: str
    token: str
    login: str


def meet(name: str) -> Person:
    """Return a demo person, made if absent, with a fresh token and login link."""
    user = accounts().filter(username=name).first() or people.add_person(name, by=None)
    _, token = tokens.create(user, by=user, scopes=SCOPES[name], name="demo", expires=clock.now() + LIFE)
    return Person(name, token, people.create_login_link(user, by=None))
