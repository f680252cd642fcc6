"""A table's pages: its first rows before the upload, and its columns' roles and types."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from jobs.actions.data import profiles
from jobs.actions.storage import artifacts
from jobs.messages.overview import SplitOverview
from jobs.models import DatasetVersion, Job
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import Split
from jobs.store import store
from tests import factories
from tests.browser.data.overview import OVERVIEW
from tests.browser.looking import Look
from tests.datasets.making import SHOP
from tests.people import People

Open = Callable[..., Page]


def test_the_first_rows_of_a_file_are_shown_before_its_upload(
    people: People, open_as: Open, look: Look, tmp_path: Path
) -> None:
    file = tmp_path / "orders.csv"
    file.write_bytes("Straße;Preis\nAm Wall;1,5\nMarkt;2,25\n".encode("cp1252"))
    page = open_as(people.member, "/datasets/new")
    page.set_input_files("input[type=file]", file)
    names = page.locator("[data-preview] th")
    expect(names).to_have_text(["Straße", "Preis"])
    expect(page.get_by_label("Decimal sign")).to_contain_text("detected: comma")
    look(page, "dataset-upload")
    page.get_by_label("Delimiter").focus()
    page.get_by_label("Delimiter").select_option(label="comma")
    expect(names).to_have_text(["Straße;Preis"])
    # The changed field keeps the focus.
    expect(page.get_by_label("Delimiter")).to_be_focused()
    page.get_by_label("Delimiter").select_option("")
    expect(names).to_have_text(["Straße", "Preis"])  # the rows move the button
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="orders v1")).to_be_visible()


def test_a_wide_table_does_not_widen_the_form_of_an_upload(
    people: People, open_as: Open, look: Look, tmp_path: Path
) -> None:
    file = tmp_path / "rents-with-a-name-that-is-longer-than-the-field.csv"
    names = ";".join(f"a column with number {i}" for i in range(20))
    file.write_text(f"{names}\n" + ";".join(["12,5"] * 20) + "\n")
    page = open_as(people.member, "/datasets/new")
    page.set_input_files("input[type=file]", file)
    expect(page.locator("[data-preview] th")).to_have_count(20)
    page.get_by_text("Images", exact=True).click()
    look(page, "dataset-upload-wide")
    for name in ("Target", "Task"):
        page.get_by_label(name, exact=True).scroll_into_view_if_needed()
    target, task = (page.get_by_label(name, exact=True).bounding_box() for name in ("Target", "Task"))
    assert target is not None
    assert task is not None
    assert target["y"] == task["y"]


@pytest.fixture
def shop(people: People) -> DatasetVersion:
    dataset = factories.make_dataset("shop", project=people.project, by=people.member)
    version = DatasetVersion.objects.get(dataset=dataset)
    upload = factories.make_artifact()
    version.profile_json = Profile.model_validate(SHOP).model_dump(mode="json")
    version.upload, version.request = upload, {"source": "csv", "file": "shop.csv"}
    version.save(update_fields=["profile_json", "upload", "request"])
    return version


def test_the_overview_is_readable_in_both_themes_and_widths(
    people: People, shop: DatasetVersion, open_as: Open, look: Look, tmp_path: Path
) -> None:
    file = tmp_path / "overview.json"
    file.write_text(OVERVIEW.model_dump_json())
    job = profiles.queue_profile(shop, by=people.member)
    job.artifacts.create(
        artifact=artifacts.adopt(store().put(file)), role="overview", name="overview.json", attempt=1
    )
    page = open_as(people.member, f"/datasets/shop/versions/1?project={people.project.slug}")
    expect(page.get_by_role("heading", name="Rows that training knows")).to_be_visible()
    look(page, "dataset-overview")
    pictured = page.get_by_role("img", name="Correlations of 8 columns; the table below has the numbers")
    expect(pictured).to_be_visible()
    page.get_by_text("As a table").last.click()
    expect(page.get_by_role("cell", name="-0.98").first).to_be_visible()
    page.get_by_label("Division of the rows").select_option(label="keep equal values together")
    page.get_by_label("Column", exact=True).fill("city")
    page.get_by_role("button", name="Compare the parts").click()
    expect(page.get_by_text("A worker compares the parts of this split")).to_be_visible()
    overview = OVERVIEW.model_copy(update={"split": Split(group="city")})
    file.write_text(
        SplitOverview(**{f: getattr(overview, f) for f in SplitOverview.model_fields}).model_dump_json()
    )
    (compared,) = Job.objects.filter(kind="split_overview", payload_json__dataset_version=shop.pk)
    compared.artifacts.create(
        artifact=artifacts.adopt(store().put(file)), role="overview", name="overview.json", attempt=1
    )
    # The result arrives without a reload.
    expect(page.get_by_role("heading", name="Rows that training knows")).to_be_visible()
    assert "way=group&along=city" in page.url
    look(page, "dataset-split")


def test_roles_and_types_are_corrected_in_the_table_of_columns(
    people: People, shop: DatasetVersion, open_as: Open
) -> None:
    page = open_as(people.member, f"/datasets/shop/versions/1?project={people.project.slug}")
    expect(page.get_by_text("left out: it has another value in every row")).to_be_visible()
    page.get_by_label("type of city").select_option("text")
    page.get_by_label("role of bought").select_option("ignore")
    page.get_by_role("button", name="Create v2").click()
    expect(page.get_by_role("heading", name="shop v2")).to_be_visible()
    version = DatasetVersion.objects.get(dataset=shop.dataset, number=2)
    assert version.request["columns"][1:3] == [
        {"name": "city", "role": "feature", "type": "text"},
        {"name": "bought", "role": "ignore", "type": "date"},
    ]


def test_an_offer_is_accepted_with_the_keyboard_and_is_readable_in_both_themes_and_widths(
    people: People, shop: DatasetVersion, open_as: Open, look: Look
) -> None:
    finding = "Column 'city': 'NA' in 3 of 40 rows counts as missing."
    offers = [
        {
            "finding": "Column 'bought': 39 of 40 values are numbers; row 7 has 'len'.",
            "label": "Read as numbers; the other value counts as missing",
            "change": {"name": "bought", "type": "number"},
        },
        {
            "finding": finding,
            "label": "Keep 'NA' as a value",
            "change": {"name": "city", "gap_words": []},
        },
    ]
    rules = {
        "number_format": {"thousands": ",", "currency": "$"},
        "misfits": {"count": 2, "rows": [7, 9], "examples": ["len", "90+"]},
    }
    columns = [*SHOP["columns"][:3], SHOP["columns"][3] | rules]
    profile = Profile.model_validate({**SHOP, "offers": offers, "columns": columns})
    shop.profile_json = profile.model_dump(mode="json")
    shop.save(update_fields=["profile_json"])
    page = open_as(people.member, f"/datasets/shop/versions/1?project={people.project.slug}")
    button = page.get_by_role("button", name="Keep 'NA' as a value")
    expect(button).to_have_accessible_description(finding)
    look(page, "dataset-offers")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="shop v2")).to_be_visible()
    changed = DatasetVersion.objects.get(dataset=shop.dataset, number=2)
    assert changed.request["columns"] == [{"name": "city", "gap_words": []}]
