"""Creates users and tokens. Runs inside an installation."""

from jobs.actions import people
from jobs.models import User
from webapp.demo.people import APPROVER, TRAINER, create_demo_person

OPERATOR = "root"


def tokens() -> dict[str, str]:
    """Return the tokens of the two demo people, created if needed."""
    return {name: create_demo_person(name).token for name in (TRAINER, APPROVER)}


def logins() -> dict[str, str]:
    """Return one-time login links of the two demo people and of an administrator, created if needed."""
    if not User.objects.filter(username=OPERATOR).exists():
        people.add_person(OPERATOR, by=None, admin=True)
    everyone = User.objects.filter(username__in=(TRAINER, APPROVER, OPERATOR))
    return {user.username: people.create_login_link(user, by=None) for user in everyone}
