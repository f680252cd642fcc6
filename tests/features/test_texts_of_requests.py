"""Texts in requests are read by the rule of the data, so they give the input of the row with this text."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.spec.data.column_plans import ColumnPlan
from jobs.spec.data.columns import ColumnRequest, ColumnType
from jobs.spec.data.number_format import NumberFormat, read_number
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.engine.data.store import read_arrays
from workers.features.fitting import fit, with_text_rules
from workers.features.pipeline import Pipeline
from workers.features.values import TEXT, BadValue

FORMATS = {
    "plain": NumberFormat(),
    "decimal comma": NumberFormat(decimal=","),
    "English thousands": NumberFormat(thousands=","),
    "German thousands": NumberFormat(decimal=",", thousands="."),
    "French thousands": NumberFormat(decimal=",", thousands=" "),
    "Swiss thousands": NumberFormat(thousands="'"),
    "dollars": NumberFormat(thousands=",", currency="$"),
    "codes of currencies": NumberFormat(currency="USD"),
    "euros": NumberFormat(decimal=",", thousands=".", currency="€"),
    "accountants": NumberFormat(thousands=",", currency="$", parentheses=True),
    "SAP": NumberFormat(decimal=",", thousands=".", minus_behind=True),
    "kilograms": NumberFormat(unit="kg"),
    "percents": NumberFormat(percent=True),
    "magnitudes": NumberFormat(thousands=",", currency="$", magnitudes=True),
}
GIFTS = ["true", "False", "NA", ""]
SOURCES = ("csv", "json_lines", "parquet")


def written(cents: int, form: NumberFormat, blank: str = " ") -> str:
    """Return a number of hundredths as a text in a format."""
    text = f"{abs(cents) // 100:,}".replace(",", form.thousands)
    text += f"{form.decimal}{abs(cents) % 100:02}"
    text = f"{form.currency}{blank if form.currency.isalpha() else ''}{text}"
    text += f"{blank}{form.unit}" if form.unit else "%" if form.percent else ""
    if cents < 0:
        text = f"({text})" if form.parentheses else f"-{text}"
    return text.replace(" ", blank)


@given(
    st.integers(-(10**12), 10**12),
    st.sampled_from(tuple(FORMATS.values())),
    st.sampled_from([" ", "\u00a0", "\u202f", "\u2009"]),
)
def test_a_written_number_is_read_as_the_same_number(cents: int, form: NumberFormat, blank: str) -> None:
    digits = f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"
    assert read_number(written(cents, form, blank), form) == float(digits)


def table_of(folder: Path, source: str, columns: dict[str, list[str]]) -> Path:
    """Write columns of texts; an empty one is missing where the format has missing values."""
    path = folder / f"table.{source}"
    names, rows = list(columns), list(zip(*columns.values(), strict=True))
    if source == "csv":
        lines = [",".join(f'"{text}"' for text in row) for row in [tuple(names), *rows]]
        path.write_text("\n".join(lines) + "\n")
    elif source == "json_lines":
        objects = [{n: text or None for n, text in zip(names, row, strict=True)} for row in rows]
        path.write_text("".join(json.dumps(item) + "\n" for item in objects))
    else:
        pq.write_table(pa.table({n: [text or None for text in texts] for n, texts in columns.items()}), path)
    return path


def pipeline_over(
    folder: Path, source: str, columns: dict[str, list[str]], requests: tuple[ColumnRequest, ...] = ()
) -> tuple[Pipeline, dict[str, Any]]:
    """Return the fitted pipeline of a table, and the table's stored columns."""
    path = table_of(folder, source, columns)
    file = profiled(folder / "version", source=source, path=str(path), columns=requests, target="y")
    loaded = load_dataset(file, present(spec_of("t").data))
    arrays = read_arrays(Path(file.path))
    stored = {str(name): arrays[f"column_{place}"] for place, name in enumerate(arrays["columns"])}
    return Pipeline(present(loaded.features)), stored


def random_cents(seed: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.choice((-1, 1)) * rng.randrange(10 ** rng.randrange(3, 9)) for _ in range(40)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_stored_rows_and_requests_with_their_texts_have_the_same_input(
    tmp_path: Path, source: str, form: NumberFormat
) -> None:
    texts = [written(cents, form) for cents in random_cents(7)]
    texts[3], texts[8], texts[11] = "n/a", "", "-"
    columns = {
        "x": texts,
        "plan": ["NA", "pro", "free", "None"] * 10,
        "gift": GIFTS * 10,
        "y": ["yes", "no"] * 20,
    }
    pipeline, stored = pipeline_over(tmp_path, source, columns)
    assert pipeline.columns == {"x": "number", "plan": "category", "gift": "boolean"}
    expected = pipeline.of_stored(stored)
    sent = {name: columns[name] for name in pipeline.columns}
    np.testing.assert_array_equal(pipeline.of_json(sent, len(texts)), expected)
    rows = [dict(zip(sent, row, strict=True)) for row in zip(*sent.values(), strict=True)]
    np.testing.assert_array_equal(pipeline.of_rows(rows), expected)
    numbers = [None if np.isnan(number) else number for number in stored["x"].tolist()]
    np.testing.assert_array_equal(pipeline.of_json(sent | {"x": numbers}, len(texts)), expected)


@pytest.mark.parametrize(
    "make", [lambda texts: texts, lambda texts: [*texts[:-1], ""]], ids=["no empty cell", "an empty cell"]
)
@pytest.mark.parametrize("gap_words", [None, (), ("NA",), ("None", "NA")])
@pytest.mark.parametrize("source", SOURCES)
def test_a_word_is_missing_in_requests_where_it_is_missing_in_the_data(
    tmp_path: Path,
    source: str,
    gap_words: tuple[str, ...] | None,
    make: Callable[[list[str]], list[str]],
) -> None:
    plans = make(["NA", "pro", "free", "None", "pro"] * 8)
    columns = {"plan": plans, "x": [f"{number}.5" for number in range(40)], "y": ["yes", "no"] * 20}
    requests = () if gap_words is None else (ColumnRequest(name="plan", gap_words=gap_words),)
    pipeline, stored = pipeline_over(tmp_path, source, columns, requests)
    sent = {name: columns[name] for name in pipeline.columns}
    np.testing.assert_array_equal(pipeline.of_json(sent, 40), pipeline.of_stored(stored))
    if gap_words is not None:
        none = pipeline.of_rows([{"plan": None}, {"plan": "None"}, {"plan": " NA "}])
        assert np.array_equal(none[0], none[1]) == ("None" in gap_words)
        assert np.array_equal(none[0], none[2]) == ("NA" in gap_words)


@pytest.mark.parametrize(
    "days", [["20211224", "20211103", "20200229"], ["24.12.2021", "3.11.2021", "9.2.2020"]]
)
@pytest.mark.parametrize("source", SOURCES)
def test_a_stated_word_between_dates_is_missing_in_requests(
    tmp_path: Path, source: str, days: list[str]
) -> None:
    columns = {"date": [*days, "99999999"] * 10, "y": ["yes", "no"] * 20}
    request = ColumnRequest(name="date", gap_words=("99999999",))
    pipeline, stored = pipeline_over(tmp_path, source, columns, (request,))
    assert pipeline.columns == {"date": "date"}
    sent = {"date": columns["date"]}
    np.testing.assert_array_equal(pipeline.of_json(sent, 40), pipeline.of_stored(stored))


def test_a_text_that_is_no_number_of_this_format_is_refused_with_an_example(tmp_path: Path) -> None:
    texts = [written(cents, FORMATS["euros"]) for cents in random_cents(3)]
    pipeline, _ = pipeline_over(tmp_path, "csv", {"x": texts, "y": ["yes", "no"] * 20})
    with pytest.raises(BadValue, match=r"takes numbers, or texts such as '€1\.234,5', but row 1 has"):
        pipeline.of_rows([{"x": "1,234.5"}])
    with pytest.raises(BadValue, match="row 1 has True"):
        pipeline.of_rows([{"x": True}])


def test_a_number_column_of_numbers_takes_their_plain_texts_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    durations = pa.array([3600, 60] * 20, pa.duration("s"))
    pq.write_table(pa.table({"x": [1.5, 2.5] * 20, "d": durations, "y": ["yes", "no"] * 20}), path)
    file = profiled(tmp_path / "version", source="parquet", path=str(path))
    pipeline = Pipeline(present(load_dataset(file, present(spec_of("t").data)).features))
    as_numbers, as_texts = ({"x": 1.5, "d": 3600}, {"x": "1.5", "d": "3600"})
    np.testing.assert_array_equal(pipeline.of_rows([as_texts]), pipeline.of_rows([as_numbers]))
    for text in ("1,5", "1.5 kg", "01:00:00"):
        with pytest.raises(BadValue, match=r"takes numbers, or texts such as '1234\.5', but row 1"):
            pipeline.of_rows([{"x": 1.5, "d": text}])


def test_a_misfit_of_the_data_is_no_number_in_a_request_either(tmp_path: Path) -> None:
    texts = [*(str(number) for number in range(39)), "90+"]
    columns = {"x": texts, "y": ["yes", "no"] * 20}
    pipeline, stored = pipeline_over(tmp_path, "csv", columns, (ColumnRequest(name="x", type="number"),))
    assert np.isnan(stored["x"][-1])
    with pytest.raises(BadValue, match="row 1 has '90\\+'"):
        pipeline.of_rows([{"x": "90+"}])


@pytest.mark.parametrize("source", ["csv", "json_lines"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("number", [f"{number}.5" for number in range(37)]),
        ("integer", [str(number) for number in range(37)]),
        ("date", [f"{day:02}.12.2021" for day in range(1, 31)] + ["01.11.2021"] * 7),
    ],
)
def test_a_word_that_counts_as_missing_in_the_data_does_so_in_requests(
    tmp_path: Path, source: str, kind: ColumnType, values: list[str]
) -> None:
    columns = {"x": [*values, "TBD", "to come ", "TBD"], "y": ["yes", "no"] * 20}
    pipeline, stored = pipeline_over(tmp_path, source, columns, (ColumnRequest(name="x", type=kind),))
    np.testing.assert_array_equal(pipeline.of_json({"x": columns["x"]}, 40), pipeline.of_stored(stored))
    missing = pipeline.of_rows([{"x": None}])
    for word in ("TBD", " TBD", "to come", "n/a", "-", "unknown"):
        np.testing.assert_array_equal(pipeline.of_rows([{"x": word}]), missing)
    for word in ("later", "tbd"):
        with pytest.raises(BadValue, match=f"row 1 has '{word}'"):
            pipeline.of_rows([{"x": word}])


@pytest.mark.parametrize("kind", ["number", "date"])
def test_many_different_words_are_refused_in_requests_and_a_finding_says_so(
    tmp_path: Path, kind: ColumnType
) -> None:
    values = [f"20{year}" if kind == "number" else f"20{year}-01-31" for year in range(21, 90)]
    words = [first + second for first in "abc" for second in "defghijk"]
    rows = [f"{text},{row % 5},{row % 2}" for row, text in enumerate(values + words)]
    file = {"source": "csv", "path": csv_file(tmp_path, "\n".join(["x,z,y", *rows])), "target": "y"}
    for requests in ((), (ColumnRequest(name="x", type=kind),)):
        profile = profiled(tmp_path / "version", columns=requests, **file).profile
        said = [*profile["findings"], *(offer["finding"] + offer["label"] for offer in profile["offers"])]
        assert any("equests with" in sentence and "are refused" in sentence for sentence in said), said
    assert "words" not in profile["columns"][0]["misfits"]


def test_a_model_that_is_trained_further_keeps_the_words_that_are_missing() -> None:
    columns = {"x": np.asarray([1.5, 2.5, np.nan])}
    old = [ColumnPlan("x", "number", None, number_format=FORMATS["plain"], misfit_words=("TBD",))]
    new = [old[0]._replace(misfit_words=("soon",))]
    pipeline = Pipeline(with_text_rules(fit(old, columns, np.arange(3)), new))
    sent: dict[str, list[object]] = {"x": ["TBD", "soon", None]}
    assert len(np.unique(pipeline.of_json(sent, 3), axis=0)) == 1


@pytest.mark.parametrize("kind", ["number", "integer", "category"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_number_is_missing_in_requests_where_its_word_is_missing_in_the_data(
    tmp_path: Path, source: str, kind: ColumnType
) -> None:
    columns = {"x": [str(number) for number in [-999, *range(4)] * 8], "y": ["yes", "no"] * 20}
    request = ColumnRequest(name="x", type=kind, gap_words=("-999",))
    pipeline, stored = pipeline_over(tmp_path, source, columns, (request,))
    expected = pipeline.of_rows([{"x": None}])
    for gap in ("-999", -999, -999.0):
        np.testing.assert_array_equal(pipeline.of_rows([{"x": gap}]), expected)
    np.testing.assert_array_equal(pipeline.of_stored(stored)[:1], expected)
    other = {"x": np.asarray([-999, 5])}
    np.testing.assert_array_equal(pipeline.of_stored(other)[:1], expected)
    assert (pipeline.of_stored(other)[1:] != expected).any()
    if (numeric := pipeline.numeric_rows) is not None:
        np.testing.assert_array_equal(present(numeric.encode(np.asarray([[-999.0]]))), expected)


def test_a_model_that_is_trained_further_reads_words_and_numbers_as_its_new_data() -> None:
    columns = {"x": np.asarray([1.5, 2.5, np.nan]), "plan": np.asarray(["pro", "free", ""], TEXT)}
    old = [
        ColumnPlan("x", "number", None),
        ColumnPlan("plan", "category", "one_hot", size=4, gap_words=("none",)),
    ]
    new = [old[0]._replace(number_format=FORMATS["kilograms"]), old[1]._replace(gap_words=("NaN",))]
    pipeline = Pipeline(with_text_rules(fit(old, columns, np.arange(3)), new))
    sent: dict[str, list[object]] = {"x": ["2.5 kg", "n/a", "2.5 kg"], "plan": ["free", "NaN", "none"]}
    expected: dict[str, list[object]] = {"x": [2.5, None, 2.5], "plan": ["free", None, None]}
    np.testing.assert_array_equal(pipeline.of_json(sent, 3), pipeline.of_json(expected, 3))


@pytest.mark.parametrize(
    ("before", "words"),
    [
        pytest.param(None, ["1.50", "2", "01", "1"], id="texts"),
        pytest.param(NumberFormat(), ["1.5", "2", "1"], id="numbers"),
    ],
)
def test_a_model_of_words_finds_them_in_data_that_have_numbers(
    before: NumberFormat | None, words: list[str]
) -> None:
    plan = ColumnPlan("x", "category", "one_hot", size=6, number_format=before)
    fitted = fit([plan], {"x": np.asarray(words, TEXT)}, np.arange(len(words)))
    pipeline = Pipeline(with_text_rules(fitted, [plan._replace(number_format=NumberFormat())]))
    expected = pipeline.of_rows([{"x": words[0]}, {"x": "2"}, {"x": "1"}])
    assert len({tuple(row) for row in expected.tolist()}) == 3
    np.testing.assert_array_equal(pipeline.of_stored({"x": np.asarray([1.5, 2.0, 1.0])}), expected)
    np.testing.assert_array_equal(pipeline.of_rows([{"x": 1.5}, {"x": "2.0"}, {"x": "+1"}]), expected)
    known = [{"x": word} for word in words]
    np.testing.assert_array_equal(pipeline.of_rows(known), Pipeline(fitted).of_rows(known))


def test_a_model_of_words_is_not_trained_further_with_true_and_false() -> None:
    plan = ColumnPlan("x", "category", "one_hot", size=6)
    fitted = fit([plan], {"x": np.asarray(["TRUE", "FALSE", "maybe"], TEXT)}, np.arange(3))
    with pytest.raises(BadValue, match="takes words, and these data have true and false"):
        with_text_rules(fitted, [plan._replace(type="boolean", encode=None)])


def test_a_number_in_json_means_the_category_with_this_number() -> None:
    words = ["0.00", "01234", "7", "7.0", "2.50", "2.5000", "red"]
    plan = ColumnPlan("x", "category", "one_hot", size=10)
    pipeline = Pipeline(fit([plan], {"x": np.asarray(words, TEXT)}, np.arange(len(words))))

    def of(value: object) -> list[float]:
        row: list[float] = pipeline.of_rows([{"x": value}])[0].tolist()
        return row

    assert of(0) == of(0.0) == of("0.00") and of(1234) == of("01234") and of(7) == of("7")
    # Two categories are this number, and a text is read as it is written.
    assert of(2.5) == of("1234") == of("0") == of("unknown")
