from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from jobs import access
from jobs.actions.people import people as actions
from jobs.actions.people import tokens
from jobs.actions.storage import deletions
from jobs.errors import BadInput, Conflict, Forbidden, NotFound
from jobs.models import ApiToken, AuditEvent, Job, LoginLink, Membership, Project, Role, User
from tests.factories import make_experiment, make_job
from tests.people import People, browser_of


def secret_of(path: str) -> str:
    return path.removeprefix(actions.LINK_PATH)


class TestLoginLinks:
    def test_work_once(self, people: People) -> None:
        secret = secret_of(actions.create_login_link(people.member, by=people.administrator))
        link = actions.use_login_link(secret)
        assert (link.user, link.issuer) == (people.member, people.administrator)
        with pytest.raises(NotFound):
            actions.use_login_link(secret)

    def test_are_stored_as_a_hash(self, people: People) -> None:
        secret = secret_of(actions.create_login_link(people.member, by=None))
        assert secret not in str(LoginLink.objects.values())
        assert secret not in str(AuditEvent.objects.values())

    def test_expire(self, people: People) -> None:
        link = actions.create_login_link(people.member, by=None, ttl=timedelta(seconds=-1))
        with pytest.raises(NotFound):
            actions.use_login_link(secret_of(link))

    def test_of_a_disabled_user_are_refused(self, people: People) -> None:
        secret = secret_of(actions.create_login_link(people.member, by=None))
        actions.set_active(people.member, False, by=people.administrator)
        with pytest.raises(NotFound):
            actions.use_login_link(secret)

    def test_are_made_by_administrators(self, people: People) -> None:
        with pytest.raises(Forbidden):
            actions.create_login_link(people.administrator, by=people.owner)


class TestPeople:
    def test_a_name_is_unique(self, people: People) -> None:
        with pytest.raises(Conflict):
            actions.add_person("owner", by=people.administrator)

    @pytest.mark.parametrize("name", ["", "a b", "a/b", "<i>", "x" * 151])
    def test_invalid_names_are_refused(self, db: None, name: str) -> None:
        with pytest.raises(BadInput):
            actions.add_person(name, by=None)

    def test_disabling_ends_sessions_and_tokens_at_once(self, people: People) -> None:
        browser = browser_of(people.member)
        _, raw = tokens.create(people.member, by=people.member, scopes=["read"])
        actions.set_active(people.member, False, by=people.administrator)
        assert browser.get("/").status_code == 302
        assert tokens.authenticate(raw) is None

    def test_administrators_cannot_lock_themselves_out(self, people: People) -> None:
        with pytest.raises(Conflict):
            actions.set_active(people.administrator, False, by=people.administrator)
        with pytest.raises(Conflict):
            actions.set_admin(people.administrator, False, by=people.administrator)

    @pytest.mark.parametrize("change", [actions.set_active, actions.set_admin])
    @pytest.mark.parametrize("others", [0, 1])
    def test_of_two_administrators_who_remove_each_other_one_remains(
        self, people: People, change: Callable[..., User], others: int
    ) -> None:
        for number in range(others):
            actions.add_person(f"third-{number}", by=None, admin=True)
        second = actions.add_person("second", by=None, admin=True)
        first = User.objects.get(pk=people.administrator.pk)
        change(first, False, by=second)
        before = AuditEvent.objects.count()
        with pytest.raises(Forbidden, match="not an administrator"):
            change(second, False, by=people.administrator)  # read before the change
        second.refresh_from_db()
        assert second.is_superuser
        assert second.is_active
        assert AuditEvent.objects.count() == before


class TestProjects:
    def test_the_creator_becomes_the_admin(self, people: People) -> None:
        project = actions.create_project("trains", "Trains", by=people.stranger)
        assert Membership.objects.get(project=project).role == Role.ADMIN

    @pytest.mark.parametrize("slug", ["", "Trains", "-x", "x-", "a_b", "ü", "x" * 64])
    def test_bad_slugs_are_refused(self, people: People, slug: str) -> None:
        with pytest.raises(BadInput) as refused:
            actions.create_project(slug, "Trains", by=people.member)
        assert refused.value.problems[0].pointer == "/slug"

    def test_members_do_not_manage(self, people: People) -> None:
        with pytest.raises(Forbidden):
            actions.set_role(people.project, people.stranger, Role.VIEWER, by=people.member)

    def test_can_be_made_of_every_role_and_a_refusal_names_those_that_are_enough(
        self, people: People
    ) -> None:
        membership = actions.set_role(people.project, people.stranger, Role.TRAINER, by=people.owner)
        assert access.can(people.stranger, people.project, access.Action.RUN_CODE), membership
        with pytest.raises(Forbidden, match="one of these roles: member, trainer, admin"):
            access.require(people.viewer, people.project, access.Action.WRITE)

    def test_the_last_admin_stays(self, people: People) -> None:
        with pytest.raises(Conflict):
            actions.remove_member(people.project, people.owner, by=people.owner)
        with pytest.raises(Conflict):
            actions.set_role(people.project, people.owner, Role.VIEWER, by=people.administrator)
        actions.set_role(people.project, people.member, Role.ADMIN, by=people.owner)
        actions.remove_member(people.project, people.owner, by=people.owner)

    def test_deleting_one_deletes_its_jobs(self, people: People) -> None:
        experiment = make_experiment(project=people.project, by=people.member)
        job = make_job(by=people.member, experiment=experiment, state="completed")
        make_job(by=people.member, project=people.project, parent=job, kind="train", state="completed")
        deletions.delete(people.project, by=people.owner)
        assert not Project.objects.filter(slug="yard").exists()
        assert not Job.objects.exists()

    def test_one_with_open_jobs_stays(self, people: People) -> None:
        make_job(by=people.member, project=people.project)
        with pytest.raises(Conflict, match="stop it first"):
            deletions.delete(people.project, by=people.owner)


class TestTokens:
    def test_authenticate_until_revoked(self, people: People) -> None:
        token, raw = tokens.create(people.member, by=people.member, scopes=["write", "read"])
        assert raw.startswith("ty_")
        assert raw not in str(ApiToken.objects.values())
        authenticated = tokens.authenticate(raw)
        assert authenticated == token
        assert authenticated is not None
        assert (authenticated.user, authenticated.scopes) == (people.member, ["read", "write"])
        tokens.revoke(token, by=people.member)
        assert tokens.authenticate(raw) is None

    def test_expire(self, people: People) -> None:
        soon = timezone.now() + timedelta(minutes=1)
        token, raw = tokens.create(people.member, by=people.member, scopes=["read"], expires=soon)
        assert tokens.authenticate(raw)
        ApiToken.objects.filter(pk=token.pk).update(expires=timezone.now() - timedelta(seconds=1))
        assert tokens.authenticate(raw) is None

    def test_record_their_use_at_most_once_a_minute(
        self, people: People, django_assert_num_queries: object
    ) -> None:
        _, raw = tokens.create(people.member, by=people.member, scopes=["read"])
        with django_assert_num_queries(2):  # type: ignore[operator]
            tokens.authenticate(raw)
        with django_assert_num_queries(1):  # type: ignore[operator]
            tokens.authenticate(raw)

    def test_have_no_more_rights_than_their_owner(self, people: People) -> None:
        with pytest.raises(Forbidden):
            tokens.create(people.owner, by=people.owner, scopes=["admin"])
        with pytest.raises(BadInput):
            tokens.create(people.owner, by=people.owner, scopes=["everything"])
        with pytest.raises(BadInput, match="worker is not available yet"):
            tokens.create(people.administrator, by=people.administrator, scopes=["worker"])
        with pytest.raises(Forbidden):
            tokens.create(people.owner, by=people.member, scopes=["read"])

    def test_of_others_cannot_be_revoked(self, people: People) -> None:
        token, _ = tokens.create(people.owner, by=people.owner, scopes=["read"])
        with pytest.raises(NotFound):
            tokens.revoke(token, by=people.member)


class TestCommands:
    def test_adduser_prints_a_link_that_works(self, db: None, capsys: pytest.CaptureFixture[str]) -> None:
        call_command("adduser", "ada", "--admin")
        printed = capsys.readouterr()
        assert "The address of the dashboard is not known" in printed.err
        user = actions.use_login_link(printed.out.strip().rsplit("/", 1)[1]).user
        assert user.username == "ada"
        assert user.is_superuser

    def test_adduser_names_a_deactivated_account_and_changes_nothing(
        self, people: People, capsys: pytest.CaptureFixture[str]
    ) -> None:
        actions.set_active(people.member, False, by=people.administrator)
        with pytest.raises(CommandError, match=r"The account member is deactivated\. .*on the page People"):
            call_command("adduser", "member", "--reset")
        assert capsys.readouterr() == ("", "")
        people.member.refresh_from_db()
        assert people.member.has_usable_password()

    def test_adduser_tells_that_it_grants_an_existing_person_no_right(
        self, people: People, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call_command("adduser", "member", "--admin")
        printed = capsys.readouterr()
        assert "/login/" in printed.out
        assert "member exists already; this is a new login link." in printed.err
        assert "member is still no administrator" in printed.err

    def test_token_prints_the_token_and_nothing_else(
        self, people: People, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call_command("token", "member", "--scopes", "read,write", "--expires", "30d")
        token = tokens.authenticate(capsys.readouterr().out.removesuffix("\n"))
        assert token is not None
        assert token.expires is not None
        assert timedelta(days=29) < token.expires - timezone.now() <= timedelta(days=30)

    def test_token_names_a_deactivated_account(self, people: People) -> None:
        actions.set_active(people.member, False, by=people.administrator)
        with pytest.raises(CommandError, match=r"The account member is deactivated\. .*on the page People"):
            call_command("token", "member", "--scopes", "read")

    @pytest.mark.parametrize(
        "arguments",
        [
            ("unknown", "--scopes", "read"),
            ("member", "--scopes", "all"),
            ("member", "--scopes", "read", "--expires", "soon"),
        ],
    )
    def test_token_rejects_invalid_arguments(self, people: People, arguments: tuple[str, ...]) -> None:
        with pytest.raises(CommandError):
            call_command("token", *arguments)
        assert not ApiToken.objects.exists()
        assert User.objects.filter(is_service=True).count() == 0
