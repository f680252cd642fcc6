"""The help pages: every document is listed once, in its group, and opens."""

import re
from urllib.parse import urljoin

import pytest
from django.test import Client

from jobs.models import User
from webapp.pages.docs import RENAMED, list_documents

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(User.objects.create_user("reader"))
    return client


def test_the_user_guide_comes_first_and_the_decision_records_last(reader: Client) -> None:
    page = reader.get("/docs").content.decode()
    listed = re.findall(r'href="/docs/([^"]+)"', page)
    assert listed[0] == "guide/1-first-search"
    assert listed[-1].startswith("decisions/")
    assert sorted(listed) == sorted(list_documents())


def test_every_document_opens_and_its_links_lead_to_documents(reader: Client) -> None:
    for name in list_documents():
        address = f"/docs/{name}"
        answer = reader.get(address)
        assert answer.status_code == 200, name
        for link in re.findall(r'<a href="([^"#:]+)"', answer.content.decode().split("<article")[1]):
            if not link.startswith("/"):
                assert reader.get(urljoin(address, link)).status_code == 200, f"{name}: {link}"


def test_the_guides_are_listed_by_their_numbers_which_are_different(reader: Client) -> None:
    page = reader.get("/docs").content.decode()
    numbers = [int(number) for number in re.findall(r'href="/docs/guide/(\d+)-', page)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_addresses_of_renamed_documents_lead_to_the_present_ones(reader: Client) -> None:
    for name, present in RENAMED.items():
        for address in (f"/docs/{name}", f"/docs/{name}.md"):
            assert reader.get(address, follow=True).redirect_chain == [(f"/docs/{present}", 301)]
        assert name not in list_documents()
        assert present in list_documents()
