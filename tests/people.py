"""The users in all tests: one per role in the project "yard", a stranger and an administrator."""

from dataclasses import dataclass

from django.test import Client

from jobs.models import Membership, Project, Role, User

PASSWORD = "correct-horse-battery"


@dataclass(frozen=True)
class People:
    """The project "yard" and its users."""

    project: Project
    owner: User
    member: User
    trainer: User
    approver: User
    viewer: User
    stranger: User
    administrator: User


def _person(username: str, *, admin: bool = False) -> User:
    user = User(username=username, is_superuser=admin, is_staff=admin)
    user.set_password(PASSWORD)
    return user


def make_person(username: str, *, admin: bool = False) -> User:
    """Make a person with the password that all test people share."""
    user = _person(username, admin=admin)
    user.save()
    return user


def make_people() -> People:
    """Make the project and all users; the stranger has a project of her own."""
    roles = {role: _person(role.value) for role in Role if role != Role.ADMIN}
    owner, stranger, administrator = (
        _person("owner"),
        _person("stranger"),
        _person("administrator", admin=True),
    )
    # More than a thousand tests begin with these rows: one statement for each table.
    User.objects.bulk_create([owner, *roles.values(), stranger, administrator])
    project = Project(slug="yard", name="The yard", created_by=owner)
    elsewhere = Project(slug="elsewhere", name="Elsewhere", created_by=stranger)
    Project.objects.bulk_create([project, elsewhere])
    Membership.objects.bulk_create(
        [
            *(Membership(project=project, user=user, role=role) for role, user in roles.items()),
            Membership(project=project, user=owner, role=Role.ADMIN),
            Membership(project=elsewhere, user=stranger, role=Role.ADMIN),
        ]
    )
    return People(
        project=project,
        owner=owner,
        member=roles[Role.MEMBER],
        trainer=roles[Role.TRAINER],
        approver=roles[Role.APPROVER],
        viewer=roles[Role.VIEWER],
        stranger=stranger,
        administrator=administrator,
    )


def browser_of(user: User) -> Client:
    """Return a test client in which `user` is logged in."""
    client = Client()
    client.force_login(user)
    return client
