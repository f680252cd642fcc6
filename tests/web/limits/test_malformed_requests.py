"""Requests that Django cannot read are refused, and not answered with an unexpected error."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
LOGIN = "/accounts/login/"
FORM = "application/x-www-form-urlencoded"
PART = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'


@pytest.fixture
def browser() -> Client:
    """A browser that has the CSRF cookie, so that the form is read."""
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    browser.get(LOGIN)
    return browser


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (f"{FORM}; charset=utf-7", b"a=1"),
        (f"{FORM}; charset=latin-1", b"a=1"),
        ("multipart/form-data; boundary=x; charset=zlib_codec", PART),
        ("multipart/form-data; boundary=x; charset=utf-16", PART),
    ],
)
def test_forms_in_other_encodings_are_refused(browser: Client, kind: str, body: bytes) -> None:
    answer = browser.generic("POST", LOGIN, body, content_type=kind)
    assert answer.status_code == 415
    assert "Send forms in UTF-8." in answer.content.decode()


@pytest.mark.parametrize("kind", [FORM, f"{FORM}; charset=UTF-8", "multipart/form-data; boundary=x"])
def test_forms_in_utf8_reach_the_check_of_their_token(browser: Client, kind: str) -> None:
    answer = browser.generic("POST", LOGIN, PART if "x" in kind[20:] else b"a=1", content_type=kind)
    assert answer.status_code == 403


def test_the_api_refuses_them_with_a_problem(client: Client) -> None:
    answer = client.generic("POST", "/api/v1/datasets", PART, content_type="multipart/form-data; charset=hex")
    assert answer.status_code == 415
    assert answer["Content-Type"] == "application/problem+json"


def test_a_form_that_cannot_be_read_has_a_page_of_its_own(browser: Client) -> None:
    answer = browser.generic("POST", LOGIN, b"&".join([b"a=1"] * 2000), content_type=FORM)
    assert answer.status_code == 400
    assert "The request is malformed." in answer.content.decode()


def test_a_host_that_is_not_allowed_has_it_too(client: Client) -> None:
    answer = client.get(LOGIN, headers={"Host": "elsewhere.example"})
    assert answer.status_code == 400
    assert "The request is malformed." in answer.content.decode()


def test_an_address_with_too_many_parameters_is_a_problem_in_the_api(client: Client) -> None:
    answer = client.get("/api/v1/jobs?" + "a=1&" * 2000)
    assert answer.status_code == 400
    assert answer.json()["detail"] == "The address has too many parameters."
