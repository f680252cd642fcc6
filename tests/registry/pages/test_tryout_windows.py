"""The form to try a version whose instances are row windows."""

import json
from html import unescape
from typing import Any

import pytest

from jobs.errors import BadInput
from jobs.spec.data.profile import Profile
from jobs.spec.signature import InputWindow, Signature, TensorSpec
from tests.datasets.making import SHOP
from tests.markup import one_line
from tests.people import browser_of
from tests.registry.conftest import Yard
from webapp.http_errors import Malformed
from webapp.pages.registry import tryout_columns, tryout_windows

TENSOR = TensorSpec(name="input", dtype="float32", shape=(3, 2))
WINDOW = InputWindow(rows=3, horizon=1, time="bought", group="city")
PROFILE = Profile.model_validate(SHOP)
COLUMNS = [{"name": "price", "type": "number"}, {"name": "open", "type": "boolean"}]
SIGNATURE = Signature.model_validate(
    {"inputs": [TENSOR], "outputs": [TENSOR], "columns": COLUMNS, "window": WINDOW}
)


def read(text: str, profile: Profile | None = PROFILE) -> dict[str, Any]:
    return tryout_windows.read_window(text, SIGNATURE, profile)


def test_pasted_csv_and_json_become_the_same_instance() -> None:
    rows = [{"price": 1.5, "open": True}, {"price": 2, "open": None}]
    assert read("price;open\n1.5;true\n2;\n") == {"rows": rows}
    assert read("price,open\r\n1.5,true\r\n2,\r\n") == {"rows": rows}
    assert read(json.dumps(rows)) == read(json.dumps({"rows": rows})) == {"rows": rows}


def test_other_columns_of_the_data_are_left_out_of_csv() -> None:
    assert read("city\tprice\nParis\t3\n") == {"rows": [{"price": 3}]}


@pytest.mark.parametrize(
    ("columns", "text", "rows"),
    [
        (["a", "b"], "a\tb\n1\t\n2\t", [{"a": "1", "b": None}, {"a": "2", "b": None}]),
        ([" a", "b"], " a,b\nx, y\n", [{" a": "x", "b": " y"}]),
        (["a", "b"], "a, b\nx, y\n", [{"a": "x", "b": "y"}]),
        (["a"], "a\nx\n\ny\n", [{"a": "x"}, {"a": None}, {"a": "y"}]),
        (["[a]", "b"], "[a],b\nx,y\n", [{"[a]": "x", "b": "y"}]),
        (["{a", "b, c"], '{a;"b, c"\nx;y\n', [{"{a": "x", "b, c": "y"}]),
    ],
)
def test_csv_keeps_each_cell_and_the_names_of_columns(columns: list[str], text: str, rows: list[Any]) -> None:
    texts = [{"name": name, "type": "category"} for name in columns]
    signature = Signature.model_validate({**SIGNATURE.model_dump(mode="json"), "columns": texts})
    assert tryout_windows.read_window(text, signature, None) == {"rows": rows}


def test_pasted_numbers_that_are_written_as_in_the_data_are_read_by_its_rule() -> None:
    form = {"decimal": ",", "thousands": ".", "unit": "kg"}
    price = {**PROFILE.columns[0].model_dump(mode="json"), "name": "price", "number_format": form}
    german = Profile.model_validate({**SHOP, "columns": [price]})
    assert read('price\n1.234\n"1,5 kg"\nn/a\n', german) == {
        "rows": [{"price": "1.234"}, {"price": "1,5 kg"}, {"price": "n/a"}]
    }
    with pytest.raises(BadInput, match="price: 'x' is not of type number"):
        read("price\nx\n", german)
    written = tryout_windows.as_csv(SIGNATURE, [{"price": 1.234, "open": True}], german)
    assert written == 'price,open\n"1,234",true\n'


def test_a_text_that_begins_like_json_and_names_no_column_is_refused_as_json() -> None:
    for text in ('[{"price": 1,}]', "[" + "1" * 200_000):
        with pytest.raises(Malformed, match="not JSON"):
            read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price,colour\n1,red\n", "'colour' is none of price, open"),
        ("price,open\n1\n", "Line 2 has 1 values, and the first line has 2 columns"),
        ("price,price\n1,2\n", "must name each column once"),
        ("price\nx\n", "price: 'x' is not of type number"),
        ('price\n"1', "The rows are no CSV"),
        ("", "must name each column once"),
    ],
)
def test_a_wrong_text_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read(text)


def test_the_example_of_a_long_window_repeats_rows_that_are_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[str] = []
    field = tryout_columns._column_field

    def counted(name: str, *more: Any) -> tryout_columns.ColumnField:
        encoded.append(name)
        return field(name, *more)

    monkeypatch.setattr(tryout_columns, "_column_field", counted)
    rows = tryout_windows.example_rows(SIGNATURE, WINDOW.model_copy(update={"rows": 1000}), PROFILE)
    different = len({json.dumps(row) for row in rows})
    assert len(rows) == 1000 and rows[different] == rows[0]
    assert len(encoded) <= len(PROFILE.preview) * len(COLUMNS)


def test_the_pages_have_an_example_that_the_form_reads(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    version = yard.live()
    version.signature = SIGNATURE.model_dump(mode="json")
    version.save()
    browser = browser_of(yard.viewer)
    page = unescape(one_line(browser.get("/models/digits/versions/1", {"tab": "try"})))
    assert "Rows as CSV or JSON" in page and "An instance is 3 rows with the same value of “city”" in page
    rows = tryout_windows.example_rows(SIGNATURE, WINDOW, PROFILE)
    example = tryout_windows.as_csv(SIGNATURE, rows, PROFILE)
    assert len(read(example)["rows"]) == 3
    use = unescape(one_line(browser.get("/models/digits/versions/1", {"tab": "use"})))
    assert '{"instances": [{"rows": [{' in use
    sent: list[Any] = []

    def predict(model: str, version: int, instances: list[Any]) -> list[list[float]]:
        sent.extend(instances)
        return [[0.0] * 9 + [1.0]]

    monkeypatch.setattr("webapp.prediction.predict", predict)
    examples: list[Any] = []

    def no_example(*parts: Any) -> list[Any]:
        examples.append(parts)
        return []

    monkeypatch.setattr(tryout_windows, "example_rows", no_example)
    answer = browser.post(
        "/models/digits/versions/1/predict", {"instance": "price\n1\n2\n3\n"}, headers={"HX-Request": "true"}
    )
    assert answer.status_code == 200 and sent == [{"rows": [{"price": 1}, {"price": 2}, {"price": 3}]}]
    assert not examples, "neither the answer nor the reading of the form needs one"
