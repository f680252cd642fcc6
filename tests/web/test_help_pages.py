"""The help pages: every document is listed once, for users or for developers, is found and opens."""

import re
from urllib.parse import urljoin

import pytest
from django.test import Client

from jobs.models import User
from webapp.pages.docs import RENAMED
from webapp.pages.documents import list_documents

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(User.objects.create_user("reader"))
    return client


def listed(reader: Client, address: str) -> list[str]:
    """Return the names of the documents that a page links to, without the page for developers."""
    page = reader.get(address).content.decode()
    return [name for name in re.findall(r'href="/docs/([^"?#]+)', page) if name != "developers"]


def test_the_guide_comes_first_and_the_decision_records_are_for_developers(reader: Client) -> None:
    for_users, for_developers = listed(reader, "/docs"), listed(reader, "/docs/developers")
    assert for_users[0] == "guide/1-first-search"
    assert for_developers[-1].startswith("decisions/")
    assert not any(name.startswith(("decisions/", "benchmarks", "tutorial-")) for name in for_users)
    assert sorted(for_users + for_developers) == sorted(list_documents())


def test_a_document_for_developers_keeps_its_address_and_names_its_page(reader: Client) -> None:
    page = reader.get("/docs/decisions/0002-events-are-chunks").content.decode()
    assert 'href="/docs/developers">For developers' in page


def test_the_help_is_searched_in_its_text_and_the_part_is_linked(reader: Client) -> None:
    page = reader.get("/docs", {"q": "TRAINYARD_SERVING_OPEN"}).content.decode()
    [address] = re.findall(r'href="(/docs/configuration[^"]*)"', page)[:1]
    anchor = address.partition("#")[2]
    assert not anchor or f'id="{anchor}"' in reader.get(address).content.decode()


def test_parts_with_the_words_in_their_heading_are_found_first(reader: Client) -> None:
    assert listed(reader, "/docs?q=roll+back")[0] == "guide/3-approval"


def test_a_search_of_the_help_leads_to_what_only_developers_read(reader: Client) -> None:
    page = reader.get("/docs", {"q": "consumer disposable"}).content.decode()
    assert "Nothing found" in page
    assert '"/docs/developers?q=consumer%20disposable"' in page
    assert listed(reader, "/docs/developers?q=consumer+disposable")


def test_every_document_opens_and_its_links_lead_to_documents(reader: Client) -> None:
    for name in list_documents():
        address = f"/docs/{name}"
        answer = reader.get(address)
        assert answer.status_code == 200, name
        for link in re.findall(r'<a href="([^"#:]+)"', answer.content.decode().split("<article")[1]):
            if not link.startswith("/"):
                assert reader.get(urljoin(address, link)).status_code == 200, f"{name}: {link}"


def test_the_numbers_of_the_guides_are_different(reader: Client) -> None:
    numbers = [int(name.split("/")[1].split("-")[0]) for name in listed(reader, "/docs") if "guide/" in name]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_addresses_of_renamed_documents_lead_to_the_present_ones(reader: Client) -> None:
    for name, present in RENAMED.items():
        for address in (f"/docs/{name}", f"/docs/{name}.md"):
            assert reader.get(address, follow=True).redirect_chain == [(f"/docs/{present}", 301)]
        assert name not in list_documents()
        assert present in list_documents()
