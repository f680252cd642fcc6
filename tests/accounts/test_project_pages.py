"""The settings page of a project; errors about a member are shown at its form or row."""

from django.test import Client

from jobs.actions.people import people as accounts
from jobs.models import Role
from jobs.queries.people import projects as query
from tests.people import People, browser_of

MEMBERS = "/p/yard/members"


def post(people: People, path: str, **fields: str) -> tuple[int, str]:
    answer = browser_of(people.owner).post(path, fields)
    return answer.status_code, answer.content.decode()


def test_an_unknown_user_is_an_error_of_the_form_which_keeps_its_input(people: People) -> None:
    status, page = post(people, MEMBERS, user="unknown", role="approver")
    assert status == 422
    assert '<div class="ty-error">There is no person &#x27;unknown&#x27;.</div>' in page
    assert 'value="unknown"' in page
    assert '<option value="approver" selected>' in page


def test_every_role_is_offered_and_explained(people: People) -> None:
    page = browser_of(people.owner).get("/p/yard/settings").content.decode()
    row = page.partition('aria-label="Role of trainer"')[2].partition("</tr>")[0]
    for role in Role:
        assert f'value="{role}"' in row
        assert f"<dt>{role}</dt>" in page
    status, _ = post(people, MEMBERS, user="member", role="trainer")
    assert (status, people.project.memberships.get(user=people.member).role) == (303, "trainer")


def test_a_missing_user_name_is_an_error_of_the_form(people: People) -> None:
    status, page = post(people, MEMBERS, user="", role="viewer")
    assert (status, page.count('<div class="ty-error">This field is required.</div>')) == (422, 1)


def test_the_last_admin_stays_and_the_row_shows_why(people: People) -> None:
    for path in (MEMBERS, f"{MEMBERS}/owner/remove"):
        status, page = post(people, path, user="owner", role="viewer")
        assert status == 409
        row = page.partition('aria-label="Role of owner"')[2].partition("</tr>")[0]
        assert "yard would have no admin left: make another member admin first." in row
        assert page.count("no admin left") == 1
    assert people.project.memberships.get(user=people.owner).role == "admin"


def test_reloading_an_error_redirects_to_the_settings(people: People) -> None:
    browser = browser_of(people.owner)
    for path in (MEMBERS, f"{MEMBERS}/viewer/remove"):
        answer = browser.get(path)
        assert (answer.status_code, answer["Location"]) == (303, "/p/yard/settings")
    assert people.project.memberships.filter(user=people.viewer).exists()


def test_a_member_is_added_and_removed(people: People) -> None:
    browser: Client = browser_of(people.owner)
    browser.post(MEMBERS, {"user": "stranger", "role": "viewer"})
    assert people.project.memberships.get(user=people.stranger).role == "viewer"
    browser.post(f"{MEMBERS}/stranger/remove")
    assert not people.project.memberships.filter(user=people.stranger).exists()


def test_a_nul_is_refused_with_its_field_on_every_page(people: People) -> None:
    status, page = post(people, MEMBERS, user="a\0b", role="viewer")
    assert status == 422
    assert "The field &#x27;user&#x27; has a NUL character" in page
    browser = browser_of(people.owner)
    assert browser.get("/audit", {"actor": "a\0b"}).status_code == 422
    assert browser.get("/p/a%00b/members").status_code == 404


def test_removing_someone_who_is_no_member_shows_it_on_the_settings_page(people: People) -> None:
    browser = browser_of(people.owner)
    for name, message in (
        ("stranger", "stranger is not a member of yard."),
        ("nobody", "There is no person"),
    ):
        answer = browser.post(f"{MEMBERS}/{name}/remove", follow=True)
        assert answer.redirect_chain == [("/p/yard/settings", 303)]
        assert message in answer.content.decode()


def test_a_deactivated_member_can_be_removed_and_gets_no_role(people: People) -> None:
    accounts.set_active(people.viewer, False, by=people.administrator)
    status, page = post(people, MEMBERS, user="viewer", role="member")
    assert status == 422
    assert "The account viewer is deactivated." in page
    browser = browser_of(people.owner)
    assert "is no longer a member" in browser.post(f"{MEMBERS}/viewer/remove", follow=True).content.decode()
    assert not people.project.memberships.filter(user=people.viewer).exists()


def test_a_deactivated_member_can_be_removed_by_a_program(people: People) -> None:
    accounts.set_active(people.viewer, False, by=people.administrator)
    assert browser_of(people.owner).delete("/api/v1/projects/yard/members/viewer").status_code == 204


def test_a_chosen_role_is_changed_by_a_button_and_not_by_the_choice(people: People) -> None:
    page = browser_of(people.owner).get("/p/yard/settings").content.decode()
    form = page.partition('aria-label="Role of viewer"')[2].partition("</form>")[0]
    assert "data-when-changed" in form
    assert "data-submit" not in form


def test_the_list_of_projects_counts_all_members_for_each_of_them(people: People) -> None:
    count = people.project.memberships.count()
    assert count > 1
    for user in (people.owner, people.viewer):
        (project,) = query.projects_with_counts(user)
        assert project.members == count, user.username
