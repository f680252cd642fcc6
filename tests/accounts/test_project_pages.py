"""The settings page of a project: what is refused about a member is said where it was asked for."""

from django.test import Client

from tests.people import People, browser_of

MEMBERS = "/p/yard/members"


def post(people: People, path: str, **fields: str) -> tuple[int, str]:
    answer = browser_of(people.owner).post(path, fields)
    return answer.status_code, answer.content.decode()


def test_an_unknown_person_is_said_at_the_form_that_keeps_what_was_typed(people: People) -> None:
    status, page = post(people, MEMBERS, user="nobody", role="trainer")
    assert status == 422
    assert '<div class="ty-error">There is no person &#x27;nobody&#x27;.</div>' in page
    assert 'value="nobody"' in page
    assert '<option value="trainer" selected>' in page


def test_a_member_without_a_name_is_said_at_the_form(people: People) -> None:
    status, page = post(people, MEMBERS, user="", role="viewer")
    assert (status, page.count('<div class="ty-error">This field is required.</div>')) == (422, 1)


def test_the_last_admin_stays_and_the_row_says_why(people: People) -> None:
    for path in (MEMBERS, f"{MEMBERS}/owner/remove"):
        status, page = post(people, path, user="owner", role="viewer")
        assert status == 409
        row = page.partition('aria-label="Role of owner"')[2].partition("</tr>")[0]
        assert "yard would have no admin left: make somebody else admin first." in row
        assert page.count("no admin left") == 1
    assert people.project.memberships.get(user=people.owner).role == "admin"


def test_a_refusal_that_is_loaded_again_leads_to_the_settings(people: People) -> None:
    browser = browser_of(people.owner)
    for path in (MEMBERS, f"{MEMBERS}/viewer/remove"):
        answer = browser.get(path)
        assert (answer.status_code, answer["Location"]) == (303, "/p/yard/settings")
    assert people.project.memberships.filter(user=people.viewer).exists()


def test_a_member_is_added_and_taken_out(people: People) -> None:
    browser: Client = browser_of(people.owner)
    browser.post(MEMBERS, {"user": "stranger", "role": "viewer"})
    assert people.project.memberships.get(user=people.stranger).role == "viewer"
    browser.post(f"{MEMBERS}/stranger/remove")
    assert not people.project.memberships.filter(user=people.stranger).exists()
