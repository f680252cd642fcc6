"""The users of all tests: one of each role in the project "yard", a stranger and an administrator."""

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


def make_person(username: str, *, admin: bool = False) -> User:
    """Make a person with the password that all test people share."""
    user = User(username=username, is_superuser=admin, is_staff=admin)
    user.set_password(PASSWORD)
    user.save()
    return user


def make_people() -> People:
    """Make the project and all users; the stranger has a project of her own."""
    owner = make_person("owner")
    project = Project.objects.create(slug="yard", name="The yard", created_by=owner)
    people = {role: make_person(role.value) for role in Role if role != Role.ADMIN}
    for role, user in [*people.items(), (Role.ADMIN, owner)]:
        Membership.objects.create(project=project, user=user, role=role)
    stranger = make_person("stranger")
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere", created_by=stranger)
    Membership.objects.create(project=elsewhere, user=stranger, role=Role.ADMIN)
    return People(
        project=project,
        owner=owner,
        member=people[Role.MEMBER],
        trainer=people[Role.TRAINER],
        approver=people[Role.APPROVER],
        viewer=people[Role.VIEWER],
        stranger=stranger,
        administrator=make_person("administrator", admin=True),
    )


def browser_of(user: User) -> Client:
    """Return a test client in which `user` is logged in."""
    client = Client()
    client.force_login(user)
    return client
