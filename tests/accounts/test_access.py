import pytest

from jobs import access
from jobs.access import Action
from jobs.errors import Forbidden, NotFound
from jobs.models import Job, Project, Role
from tests.factories import (
    make_dataset,
    make_experiment,
    make_job,
    make_job_artifact,
    make_model,
    make_promotion,
)
from tests.people import People


@pytest.fixture
def job(people: People) -> Job:
    return make_job(by=people.member, project=people.project)


def test_a_stranger_cannot_tell_whether_a_row_exists(people: People, job: Job) -> None:
    with pytest.raises(NotFound) as hidden:
        access.get_job(people.stranger, job.pk)
    with pytest.raises(NotFound) as absent:
        access.get_job(people.stranger, job.pk + 1000)
    assert str(hidden.value).replace(str(job.pk), "N") == str(absent.value).replace(str(job.pk + 1000), "N")


def test_a_viewer_sees_but_may_not_write(people: People, job: Job) -> None:
    assert access.get_job(people.viewer, job.pk) == job
    with pytest.raises(Forbidden, match="member"):
        access.get_job(people.viewer, job.pk, Action.WRITE)


@pytest.mark.parametrize(
    ("role", "may"),
    [
        (Role.VIEWER, {Action.VIEW}),
        (Role.MEMBER, {Action.VIEW, Action.WRITE}),
        (Role.TRAINER, {Action.VIEW, Action.WRITE, Action.RUN_CODE}),
        (Role.APPROVER, {Action.VIEW, Action.APPROVE, Action.SERVE}),
        (Role.ADMIN, set(Action)),
    ],
)
def test_each_role_has_its_rights(people: People, role: Role, may: set[Action]) -> None:
    user = people.owner if role == Role.ADMIN else getattr(people, role.value)
    assert {action for action in Action if access.can(user, people.project, action)} == may


@pytest.mark.parametrize("who", ["owner", "member", "trainer", "approver", "viewer", "administrator"])
@pytest.mark.parametrize("action", list(Action))
def test_the_projects_of_an_action_are_those_that_allow_it(people: People, who: str, action: Action) -> None:
    user = getattr(people, who)
    projects = {project for project in Project.objects.all() if access.can(user, project, action)}
    assert set(access.projects_of(user, action)) == projects


def test_an_installation_admin_is_admin_everywhere_and_a_disabled_one_nowhere(people: People) -> None:
    admin = people.administrator
    assert access.role_in(admin, people.project) == Role.ADMIN
    assert access.projects_of(admin).count() == 2
    admin.is_active = False
    assert access.role_in(admin, people.project) is None
    assert not access.projects_of(admin).exists()
    assert not access.visible_jobs(admin).exists()


def test_a_projects_own_data_set_precedes_the_bundled_one_of_that_name(people: People) -> None:
    bundled = make_dataset("digits")
    dataset = make_dataset("digits", project=people.project, by=people.member)
    assert access.get_dataset(people.member, "digits", people.project) == dataset
    assert access.get_dataset(people.member, "digits") == bundled
    assert access.get_dataset(people.stranger, "digits") == bundled
    with pytest.raises(Forbidden):
        access.get_dataset(people.administrator, "digits", action=Action.WRITE)


def test_an_artifact_is_visible_through_its_references(people: People, job: Job) -> None:
    reference = make_job_artifact(job)
    assert access.get_artifact(people.viewer, reference.artifact_id) == reference.artifact
    with pytest.raises(NotFound):
        access.get_artifact(people.stranger, reference.artifact_id)


def test_lists_show_nothing_of_other_projects(people: People, job: Job) -> None:
    make_experiment(project=people.project, by=people.member)
    model = make_model(project=people.project, by=people.member)
    make_promotion(model.versions.get(), by=people.member)
    for visible in (
        access.visible_jobs,
        access.visible_experiments,
        access.visible_models,
        access.visible_versions,
        access.visible_promotions,
        access.visible_endpoints,
    ):
        assert visible(people.viewer).exists(), visible.__name__
        assert not visible(people.stranger).exists(), visible.__name__
