"""A table's roles, types and dialects on the data set pages."""

from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from django.test import Client

from jobs.actions.data import profiles
from jobs.models import DatasetVersion
from jobs.spec.data.columns import ColumnRequest
from tests.datasets.making import DIGITS, SHOP, make_ready
from tests.datasets.test_pages import upload
from tests.factories import make_dataset, profile
from tests.markup import squeezed, text_of
from tests.world import World
from workers.engine.data.encode import array_types
from workers.engine.data.table import Table


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


def shop_page(browser: Client) -> str:
    address = upload(browser)
    make_ready(DatasetVersion.objects.latest("pk"), SHOP)
    return browser.get(address).content.decode()


def edited(browser: Client, **changes: list[str]) -> Any:
    form = {
        "column": ["id", "city", "bought", "price"],
        "role": ["id", "feature", "feature", "target"],
        "type": ["integer", "category", "date", "number"],
    } | changes
    return browser.post("/datasets/some-people/versions/1/roles?project=yard", form)


def test_a_table_shows_role_and_type_of_each_column_and_why_one_is_left_out(browser: Client) -> None:
    page = squeezed(shop_page(browser))
    assert "left out: it has another value in every row" in page
    assert 'aria-label="type of bought"' in page
    assert "> 2026-11-01 </td>" in page
    assert "Paris, Rome, O&#x27;Fallon" in page


def test_a_person_corrects_roles_and_types_in_a_new_version(browser: Client) -> None:
    shop_page(browser)
    answer = edited(browser, role=["ignore", "feature", "target", "feature"], type=["text"] * 4)
    assert answer.status_code == 303
    version = DatasetVersion.objects.latest("pk")
    assert version.number == 2
    assert version.request["columns"][2] == {"name": "bought", "role": "target", "type": "text"}


def test_a_person_states_how_dates_are_written(browser: Client) -> None:
    page = squeezed(shop_page(browser))
    assert 'aria-label="date format of bought"' in page
    assert '<option value="%d/%m/%Y">24/12/2021</option>' in page
    formats = ["", "", "%m/%d/%Y", "%Y"]
    edited(browser, role=["id", "feature", "time", "target"], date_format=formats)
    version = DatasetVersion.objects.latest("pk")
    expected = {"name": "bought", "role": "time", "type": "date", "date_format": "%m/%d/%Y"}
    assert version.request["columns"][2] == expected
    assert "date_format" not in version.request["columns"][3], "a column of another type has no format"


def test_a_person_states_the_unit_of_unix_times(browser: Client) -> None:
    page = squeezed(shop_page(browser))
    assert '<option value="unix milliseconds">1640358330000</option>' in page
    edited(browser, date_format=["", "", "unix ms", ""])
    version = DatasetVersion.objects.latest("pk")
    expected = {"name": "bought", "role": "feature", "type": "date", "date_format": "unix milliseconds"}
    assert version.request["columns"][2] == expected


def test_a_format_that_was_recognized_is_not_stated_by_another_change(browser: Client) -> None:
    columns = [
        column | ({"date_format": "%m/%d/%Y"} if column["name"] == "bought" else {})
        for column in SHOP["columns"]
    ]
    address = upload(browser)
    make_ready(DatasetVersion.objects.latest("pk"), SHOP | {"columns": columns})
    assert 'value="%m/%d/%Y"' in browser.get(address).content.decode()
    edited(browser, date_format=["", "", "%m/%d/%Y", ""])
    assert "date_format" not in DatasetVersion.objects.latest("pk").request["columns"][2]


def test_a_date_format_that_is_none_is_refused_with_an_example(browser: Client) -> None:
    shop_page(browser)
    answer = edited(browser, date_format=["", "", "DD/MM/YYYY", ""])
    assert DatasetVersion.objects.latest("pk").number == 1
    page = text_of(browser.get("/datasets/some-people/versions/1?project=yard"))
    message = answer.content.decode() + page
    assert "Column &#x27;bought&#x27;" in message or "Column 'bought'" in message
    assert "it may mean" in message and "%d/%m/%Y" in message


def test_a_column_that_was_left_out_is_included_by_its_button(browser: Client) -> None:
    shop_page(browser)
    edited(browser, include=["id"])
    version = DatasetVersion.objects.latest("pk")
    assert version.request["columns"][0] == {"name": "id", "role": "feature", "type": "integer"}


def test_a_person_chooses_whether_an_array_has_images_or_sequences(browser: Client) -> None:
    address = upload(browser)
    make_ready(DatasetVersion.objects.latest("pk"), DIGITS)
    page = squeezed(browser.get(address).content.decode())
    assert '<option value="image">images in shades of grey</option>' in page
    form = {"column": "image", "role": "feature", "type": "sequence", "target": "digit"}
    browser.post("/datasets/some-people/versions/1/roles?project=yard", form)
    version = DatasetVersion.objects.latest("pk")
    chosen = [ColumnRequest.model_validate(column) for column in version.request["columns"]]
    assert array_types(Table({"image": np.zeros((3, 8, 8)), "digit": np.arange(3)}), chosen) == {
        "image": "sequence"
    }
    steps = [{**DIGITS["columns"][0], "type": "sequence"}, DIGITS["columns"][1]]
    make_ready(version, {**DIGITS, "kind": "sequence", "input_shape": [8, 8], "columns": steps})
    page = squeezed(browser.get("/datasets/some-people/versions/2?project=yard").content.decode())
    assert "8 × 8 numbers" in page and '<option value="sequence" selected>' in page


def test_the_target_of_an_array_is_detected_again_if_its_field_is_cleared(browser: Client) -> None:
    upload(browser)
    version = DatasetVersion.objects.latest("pk")
    version.request = {**version.request, "columns": [{"name": "digit", "role": "target"}]}
    version.save(update_fields=["request"])
    make_ready(version, DIGITS)
    form = {"column": "image", "role": "feature", "type": "image", "target": ""}
    browser.post("/datasets/some-people/versions/1/roles?project=yard", form)
    new_version = DatasetVersion.objects.latest("pk")
    assert new_version.request["columns"] == [{"name": "image", "role": "feature", "type": "image"}]


def test_exactly_one_column_is_the_target(browser: Client) -> None:
    shop_page(browser)
    for roles in (["id", "feature", "feature", "ignore"], ["id", "target", "feature", "target"]):
        answer = edited(browser, role=roles)
        assert answer.status_code == 422
        assert DatasetVersion.objects.latest("pk").number == 1


def sampled(browser: Client, content: bytes, **query: str) -> Any:
    address = f"/datasets/sample?{urlencode({'all': '1', **query})}"
    return browser.post(address, content, content_type="application/octet-stream")


def test_the_first_rows_of_a_chosen_file_are_shown_with_the_detected_dialect(browser: Client) -> None:
    page = squeezed(
        sampled(browser, "Straße;Preis\nAm Wall;1,5\nMarkt;<b>\n".encode("cp1252")).content.decode()
    )
    assert "detected: semicolon" in page and "detected: Latin-1" in page
    assert '<th scope="col">Straße</th>' in page
    assert "Am Wall" in page and "&lt;b&gt;" in page


def test_another_dialect_shows_other_rows(browser: Client) -> None:
    page = squeezed(sampled(browser, b"a;b\n1;2\n", **{"dialect.delimiter": ","}).content.decode())
    assert '<th scope="col">a;b</th>' in page
    assert 'value="," selected' in page
    assert sampled(browser, b"a\n", **{"dialect.delimiter": "x"}).status_code == 422


def test_a_sample_is_bytes_and_bounded(browser: Client) -> None:
    assert browser.post("/datasets/sample", {"file": "a"}).status_code == 415
    assert sampled(browser, b"a" * (65_536 + 1)).status_code == 413


def test_a_sample_of_a_file_that_is_not_in_the_chosen_encoding_is_shown_as_it_reads(browser: Client) -> None:
    answer = sampled(browser, b"name;age\nx;3\n", **{"dialect.encoding": "utf-16"})
    assert answer.status_code == 200


def test_the_dialect_is_corrected_in_a_new_version(browser: Client) -> None:
    shop_page(browser)
    edited(browser, **{"dialect.header": ["false"]})
    version = DatasetVersion.objects.latest("pk")
    assert version.request["reading"]["dialect"] == {"header": False}


def test_a_version_of_many_columns_and_classes_is_shown_in_parts(world: World, browser: Client) -> None:
    dataset = make_dataset("wide", project=world.project, by=world.owner)
    names = [f"column{i}" for i in range(250)]
    column = {"dtype": "float64", "missing": 0, "distinct": 2}
    described = profile(
        features=names[:-1],
        target=names[-1],
        columns=[column | {"name": name} for name in names],
        preview=[dict.fromkeys(names, 1.5)],
        class_labels=[f"class{i}" for i in range(150)],
        class_counts=[1] * 150,
    )
    DatasetVersion.objects.filter(dataset=dataset).update(profile_json=described)
    first = text_of(browser.get("/datasets/wide/versions/1?project=yard"))
    assert [name for name in names if f" {name} " in first] == [*names[:100], "column249"]
    assert "100 of 250 columns" in first
    assert ("class99" in first, "class100" in first, "and 50 more classes" in first) == (True, False, True)
    last = text_of(browser.get("/datasets/wide/versions/1?project=yard&cursor=200"))
    assert "50 of 250 columns" in last
    assert "column248" in last
    for cursor in ("x", "9" * 5000, "400", "-1"):
        page = browser.get("/datasets/wide/versions/1", {"project": "yard", "cursor": cursor})
        assert page.status_code == 200


def test_a_dialect_that_changes_the_names_drops_the_roles_of_the_old_ones(browser: Client) -> None:
    shop_page(browser)
    edited(browser, **{"dialect.delimiter": [";"]})
    assert "columns" not in DatasetVersion.objects.latest("pk").request


def test_another_decimal_sign_keeps_the_roles_and_proposes_the_types(browser: Client) -> None:
    shop_page(browser)
    same = {f"dialect.{name}": [""] for name in ("delimiter", "encoding", "header")}
    edited(browser, **same, **{"dialect.decimal": [","]})
    request = DatasetVersion.objects.latest("pk").request
    assert request["columns"][3] == {"name": "price", "role": "target"}
    assert request["reading"]["dialect"] == {"decimal": ","}


def test_the_dialect_that_was_found_is_no_other_one(browser: Client) -> None:
    shop_page(browser)
    same = {f"dialect.{name}": [""] for name in ("encoding", "decimal", "header")}
    edited(browser, **same, **{"dialect.delimiter": [","]})
    assert len(DatasetVersion.objects.latest("pk").request["columns"]) == 4


def test_a_page_of_columns_without_the_target_keeps_it(browser: Client) -> None:
    shop_page(browser)
    edited(browser, column=["id", "city"], role=["ignore", "feature"], type=["integer", "category"])
    request = DatasetVersion.objects.latest("pk").request
    assert {"name": "price", "role": "target"} in request["columns"]
    make_ready(DatasetVersion.objects.latest("pk"), SHOP)
    form = {"column": ["id"], "role": ["target"], "type": ["integer"]}
    browser.post("/datasets/some-people/versions/2/roles?project=yard", form)
    roles = DatasetVersion.objects.latest("pk").request["columns"]
    assert [column["name"] for column in roles if column.get("role") == "target"] == ["id"]


def test_the_task_that_was_asked_for_stays_chosen(browser: Client) -> None:
    address = upload(browser, task="regression")
    make_ready(DatasetVersion.objects.latest("pk"), SHOP)
    assert "<option selected> regression </option>" in squeezed(browser.get(address).content.decode())


def test_a_sample_of_thousands_of_columns_shows_the_first(browser: Client) -> None:
    header = b",".join(b"a%d" % i for i in range(5_000))
    page = squeezed(sampled(browser, header + b"\n" + b"1," * 4_999 + b"1\n").content.decode())
    assert page.count("<th ") == 50
    assert "950 more columns are not shown" in page


def test_a_version_that_could_not_be_read_is_read_with_another_dialect(browser: Client) -> None:
    address = upload(browser)
    profiles.record_profile_failure(
        DatasetVersion.objects.latest("pk").pk, {"code": "bad_data", "message": "x"}
    )
    assert 'name="dialect.delimiter"' in browser.get(address).content.decode()
    browser.post("/datasets/some-people/versions/1/roles?project=yard", {"dialect.delimiter": ";"})
    assert DatasetVersion.objects.latest("pk").request["reading"]["dialect"] == {"delimiter": ";"}


def test_other_roles_keep_the_dialect_that_was_given(browser: Client) -> None:
    upload(browser, **{"dialect.delimiter": ","})
    browser.post("/datasets/some-people/versions/1/roles?project=yard", {"target": "age"})
    assert DatasetVersion.objects.latest("pk").request["reading"]["dialect"] == {"delimiter": ","}
