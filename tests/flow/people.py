"""Creates users and tokens. Runs inside an installation."""

from jobs.actions.people import people
from jobs.models import User
from webapp.demo.people import APPROVER, TRAINER, create_demo_person

OPERATOR = "root"


def tokens() -> dict[str, str]:
    """Return the tokens of the two demo people, created if needed."""
    return {name: create_demo_person(name).token for name in (TRAINER, APPROVER)}


def login(name: str) -> str:
    """Return a one-time login link for a demo person or the administrator, who is created if needed."""
    if name == OPERATOR and not User.objects.filter(username=OPERATOR).exists():
        people.add_person(OPERATOR, by=None, admin=True)
    return people.create_login_link(User.objects.get(username=name), by=None)
