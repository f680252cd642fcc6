"""The page of a version and REST show how its file was understood, and the form corrects it."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import DatasetVersion
from tests.datasets.making import SHOP, make_ready
from tests.datasets.test_columns_pages import edited, sampled
from tests.datasets.test_pages import upload
from tests.markup import squeezed
from tests.world import World

ZIPPED = {"format": "CSV", "archive": "zip", "members": ["train.csv"]}
WORKBOOK = {"format": "Excel workbook", "sheet": "Data"}


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


def version_of(browser: Client, source: str, file: dict[str, Any], dialect: dict[str, Any]) -> str:
    """Return the page of a version whose file was read so."""
    address = upload(browser)
    version = DatasetVersion.objects.latest("pk")
    version.request = {**version.request, "source": source}
    version.save(update_fields=["request"])
    make_ready(version, {**SHOP, "file": file, "dialect": dialect})
    return squeezed(browser.get(address).content.decode())


def test_the_page_names_format_archive_and_dialect(browser: Client) -> None:
    page = version_of(browser, "images", ZIPPED, {"encoding": "windows-1251", "skip_lines": 2})
    assert "CSV in the zip archive: train.csv" in page
    assert "encoding: Windows-1251 (Cyrillic)" in page
    assert "lines above the table: 2" in page
    # A table in an archive has the fields of text, and none for the size of images.
    assert 'name="dialect.delimiter"' in page
    assert 'name="images.height"' not in page


def test_a_workbook_has_a_field_for_its_sheet_and_none_for_a_delimiter(browser: Client) -> None:
    page = version_of(browser, "xlsx", WORKBOOK, {})
    assert "Excel workbook" in page and "sheet: Data" in page
    assert 'name="dialect.sheet"' in page and 'name="dialect.delimiter"' not in page
    edited(browser, **{"dialect.sheet": ["Other"]})
    assert DatasetVersion.objects.latest("pk").request["reading"]["dialect"] == {"sheet": "Other"}


def test_the_sheet_that_was_read_is_no_other_one(browser: Client) -> None:
    version_of(browser, "xlsx", WORKBOOK, {})
    edited(browser, **{"dialect.sheet": ["Data"]})
    assert "reading" not in DatasetVersion.objects.latest("pk").request


def test_lines_above_the_table_are_corrected_in_a_new_version(browser: Client) -> None:
    version_of(browser, "csv", {"format": "CSV"}, {"skip_lines": 2})
    edited(browser, **{"dialect.skip_lines": ["3"], "dialect.comments": ["false"]})
    dialect = DatasetVersion.objects.latest("pk").request["reading"]["dialect"]
    assert dialect == {"skip_lines": 3, "comments": False}
    assert edited(browser, **{"dialect.skip_lines": ["many"]}).status_code == 422


def test_rest_describes_the_file(browser: Client) -> None:
    version_of(browser, "images", {**ZIPPED, "compression": "gzip"}, {"comments": True})
    version = browser.get("/api/v1/datasets/some-people/versions/1?project=yard").json()
    assert version["schema"]["file"] == {**ZIPPED, "compression": "gzip", "sheet": None}
    assert version["schema"]["dialect"]["comments"]


def test_a_packed_file_has_the_fields_of_a_sample_and_no_rows(browser: Client) -> None:
    page = squeezed(sampled(browser, b"PK", packed="1", **{"dialect.sheet": "Second"}).content.decode())
    assert "The file is unpacked and read after the upload" in page
    assert 'name="dialect.sheet" value="Second"' in page and "<table" not in page


def test_the_sample_begins_below_a_title(browser: Client) -> None:
    page = squeezed(sampled(browser, b"Report of 2024\n\na b  y\n1 2 0\n3 4 1\n").content.decode())
    assert "detected: blanks" in page and 'placeholder="detected: 2"' in page
    assert '<th scope="col">a</th>' in page and "Report" not in page
