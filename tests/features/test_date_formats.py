"""Texts in each date format mean the same moments in a file and in a request."""

import contextlib
import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from jobs.spec.data.column_plans import ColumnPlan
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.dates.formats import check_date_format, example_of, pattern_of, write_date
from jobs.spec.data.features import DateFeature
from workers.engine.data.dates.columns import recognize_dates
from workers.engine.data.dates.families import FAMILIES
from workers.engine.data.dates.values import dates_of, iso_dates_of
from workers.features.fitting import fit, with_text_rules
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue, TextRule, from_json

FORMATS = sorted(
    {form for family in FAMILIES for form in family.orders}
    | {f"{form} %H:%M:%S" for form in ("%d/%m/%Y", "%m/%d/%y", "%Y-%m-%d")}
    | {"%m/%d/%Y %I:%M %p", "%d.%m.%Y %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ", "%a, %d %b %Y %H:%M:%S %z"}
    | {"%d%m%Y", "%Y", "%Y-%j", "%G-W%V-%u", "%H:%M %d.%m.%Y", "%B %d, %Y", "%d/%m/%y{1930}", "%Y%m%d%H%M"}
    | {"unix seconds", "unix milliseconds", "unix microseconds", "%Y%d%m"}
)
MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59))


def in_file(text: str, form: str) -> Any:
    return dates_of(pa.array([text], pa.large_string()), form)[0]


def in_request(text: str, form: str | None) -> Any:
    return from_json([text], "date", "day", TextRule(date_format=form))[0]


@settings(deadline=None)
@given(moment=MOMENTS, form=st.sampled_from(FORMATS))
def test_a_moment_is_read_back_from_a_file_and_from_a_request(moment: datetime.datetime, form: str) -> None:
    if "%y" in form:
        moment = moment.replace(year=1969 + moment.year % 60, day=min(moment.day, 28))
    text = write_date(moment, form)
    read = in_file(text, form)
    assert not np.isnat(read)
    assert read == in_request(text, form)
    assert write_date(read.astype(datetime.datetime), form) == text
    with contextlib.suppress(ValueError):  # quarters, windows of years and weeks without a day
        expected = datetime.datetime.strptime(text, form).replace(tzinfo=None)
        assert read == np.datetime64(expected)


@settings(deadline=None)
@given(moment=MOMENTS)
def test_iso_8601_is_read_in_requests_to_each_column(moment: datetime.datetime) -> None:
    for form in (None, "%m/%d/%Y", "%d.%m.%y", "%YQ%q", "%Y%m%d"):
        assert in_request(moment.isoformat(), form) == np.datetime64(moment)


def test_beside_days_before_months_iso_8601_is_not_read() -> None:
    assert in_request("2021-04-11", "%Y-%d-%m") == np.datetime64("2021-11-04")
    for text in ("2021-04-24", "20210424", "2021-04-24T10:00:00Z"):
        with pytest.raises(BadValue, match=r'dates such as "2021-24-12" \(%Y-%d-%m\), but row 1'):
            in_request(text, "%Y-%d-%m")


@pytest.mark.parametrize(
    ("stated", "form"),
    [
        ("unix", "unix seconds"),
        ("%s", "unix seconds"),
        ("Unix ms", "unix milliseconds"),
        ("epoch_ms", "unix milliseconds"),
        ("unix timestamp (µs)", "unix microseconds"),
        ("unix time in nanoseconds", "unix nanoseconds"),
        ("unix micros", "unix microseconds"),
    ],
)
def test_unix_times_are_stated_by_their_unit(stated: str, form: str) -> None:
    assert check_date_format(stated) == form


@pytest.mark.parametrize(
    ("form", "value", "moment"),
    [
        ("unix seconds", 1_700_000_000, "2023-11-14T22:13:20"),
        ("unix seconds", "1700000000", "2023-11-14T22:13:20"),
        ("unix seconds", 1_700_000_000.25, "2023-11-14T22:13:20.25"),
        ("unix seconds", "-1.5", "1969-12-31T23:59:58.5"),
        ("unix milliseconds", 1_700_000_000_123, "2023-11-14T22:13:20.123"),
        ("unix microseconds", 1_700_000_000_123_456, "2023-11-14T22:13:20.123456"),
        ("unix nanoseconds", 1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456"),
        ("unix seconds", "2023-11-14T22:13:20Z", "2023-11-14T22:13:20"),
    ],
)
def test_a_unix_time_is_a_moment_as_number_and_as_text(form: str, value: object, moment: str) -> None:
    assert from_json([value], "date", "day", TextRule(date_format=form))[0] == np.datetime64(moment)


@pytest.mark.parametrize("value", [True, 1e300, float("inf"), "9" * 30, "1700000000 s", "x"])
def test_what_is_no_unix_time_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(BadValue, match=r'"1640358330" \(unix seconds\)'):
        from_json([value], "date", "day", TextRule(date_format="unix seconds"))


ODD = st.text("0123456789/-.: TtZzPpAaMm+,()DdEeCcQqWwéÀ年\u202f", max_size=30)


@settings(deadline=None)
@given(
    text=ODD | st.builds(str.__add__, st.sampled_from(["24/12/2021", "24/12/2021 10:30", "Dec 24 2021"]), ODD)
)
def test_any_text_is_a_date_in_both_or_in_neither(text: str) -> None:
    for form in ("%d/%m/%Y", "%b %d %Y", "%YQ%q", "%Y%m%d", "%a %d %b %y", "unix seconds", "%Y-%d-%m"):
        read = in_file(text.strip(), form)
        try:
            sent = in_request(text, form)
        except BadValue:
            assert np.isnat(read)
        else:
            assert np.isnat(read) or sent == read


@settings(deadline=None)
@given(moments=st.lists(MOMENTS, min_size=1, max_size=5))
def test_iso_dates_that_are_read_at_once_are_the_same_as_one_by_one(moments: list[datetime.datetime]) -> None:
    texts = pa.array([moment.isoformat(" ") for moment in moments], pa.large_string())
    at_once = iso_dates_of(texts)
    assert at_once is not None
    np.testing.assert_array_equal(at_once, dates_of(texts, "%Y-%m-%d"))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("24/12/2021 24:00", "2021-12-25"),
        ("24/12/2021 12:05 AM", "2021-12-24T00:05"),
        ("24/12/2021 12:05 PM", "2021-12-24T12:05"),
        ("24/12/2021 10:05 +05:30", "2021-12-24T04:35"),
        ("24/12/2021T10:05:06,5Z", "2021-12-24T10:05:06.5"),
        ("24/12/2021 3 p.m.", "2021-12-24T15:00"),
        ("1/2/2021", "2021-02-01"),
        (" 24/12/2021 ", "2021-12-24"),
    ],
)
def test_a_time_after_a_date_is_read_whether_the_format_has_one(text: str, moment: str) -> None:
    for form in ("%d/%m/%Y", "%d/%m/%Y %H:%M", "%d/%m/%Y %I:%M:%S %p"):
        assert in_file(text.strip(), form) == in_request(text, form) == np.datetime64(moment)


@pytest.mark.parametrize(
    "text", ["31/02/2021", "24/13/2021", "24/12/2021 13:05 PM", "24/12/2021 25:00", "24/12"]
)
def test_a_text_that_fits_neither_names_the_format_and_an_example(text: str) -> None:
    assert np.isnat(in_file(text, "%d/%m/%Y"))
    with pytest.raises(BadValue, match=r"takes dates such as \"24/12/2021\" \(%d/%m/%Y\).* but row 1 has '"):
        in_request(text, "%d/%m/%Y")


def test_a_column_of_digits_takes_numbers_too() -> None:
    days = from_json([20211224, 20211224.0, "20211224", None], "date", "day", TextRule(date_format="%Y%m%d"))
    assert [str(day)[:10] for day in days] == ["2021-12-24"] * 3 + ["NaT"]
    assert from_json([1122021], "date", "day", TextRule(date_format="%d%m%Y"))[0] == np.datetime64(
        "2021-12-01"
    )
    for wrong, form in ((20211224.5, "%Y%m%d"), (True, "%Y%m%d"), (20211224, "%d/%m/%Y"), (20211224, None)):
        with pytest.raises(BadValue, match="column 'day' takes dates"):
            from_json([wrong], "date", "day", TextRule(date_format=form))


def test_digits_that_a_format_of_digits_does_not_read_are_no_date_by_iso_8601() -> None:
    for value in ("20211224", 20211224):
        with pytest.raises(BadValue, match="takes dates such as"):
            from_json([value], "date", "day", TextRule(date_format="%d%m%Y"))
    assert in_request("20211224", "%d/%m/%Y") == np.datetime64("2021-12-24")


def test_texts_beside_the_format_of_a_column_are_read_alike_in_the_file_and_in_requests() -> None:
    days = [f"{day:02}/12/2021" for day in range(1, 31)]
    others = ["18991231", "20211224", "2021W515", "18001224T1030", "2021-12-24x10:30", "0099-12-24", "x"]
    others += ["2021-12-24T10:30:00,5", "99991231", "2021-W51-5", "24.12.2021", "1899-12-31"]
    texts = pa.array([*days, *others], pa.large_string())
    column = recognize_dates(texts, np.arange(len(texts)))
    assert column is not None
    for text, moment in zip(texts.to_pylist(), column.moments, strict=True):
        try:
            sent = in_request(text, column.facts.format)
        except BadValue:
            sent = np.datetime64("NaT")
        np.testing.assert_array_equal(sent, moment, err_msg=text)
    assert np.isnat(column.moments[[30, 33, 38]]).all()
    assert sum(column.facts.rows) == np.count_nonzero(~np.isnat(column.moments))


def test_a_word_for_a_gap_is_missing_in_a_request_as_in_a_file() -> None:
    assert np.isnat(from_json(["n/a", "", "-", None], "date", "day", TextRule(date_format="%d/%m/%Y"))).all()


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ("DD/MM/YYYY", "it may mean '%d/%m/%Y'"),
        ("yyyy-MM-dd HH:mm", "it may mean '%Y-%m-%d %H:%M'"),
        ("%d/%m", "needs a year"),
        ("%d/%m/%Y %I:%M", "needs %p"),
        ("%Y-%m-%d or %x", "no directive '%x'"),
        ("%d %d/%m/%Y", "a part twice"),
        ("", "needs a year"),
        ("%", "no directive"),
    ],
)
def test_a_format_that_is_none_is_refused_with_an_example(stated: str, reason: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        ColumnRequest(name="day", date_format=stated)
    assert reason in str(refusal.value) and "%d/%m/%Y for 24/12/2021" in str(refusal.value)


def test_a_format_belongs_to_the_type_date() -> None:
    with pytest.raises(ValidationError, match="date_format is for columns of type date"):
        ColumnRequest(name="day", type="category", date_format="%d/%m/%Y")
    assert ColumnRequest(name="day", date_format=" ISO 8601 ").date_format == "%Y-%m-%d"
    assert check_date_format("%e.%-m.%Y or %F %T") == "%e.%-m.%Y or %F %T"


def test_an_example_shows_each_format() -> None:
    assert example_of("%d/%m/%Y or %YQ%q") == '"24/12/2021" (%d/%m/%Y) or "2021Q4" (%YQ%q)'
    assert pattern_of("%Y%m%d").width == 8


def test_the_file_of_a_model_without_a_format_stays_the_same() -> None:
    feature = DateFeature(column="d", type="date", origin="2021-12-24", fill="2021-12-24", indicator=False)
    assert "date_format" not in feature.model_dump_json()
    assert DateFeature.model_validate_json(feature.model_dump_json()).date_format is None


def test_a_model_that_is_trained_further_reads_requests_as_its_new_data() -> None:
    days = np.array(["2021-12-24", "2021-12-25"], "datetime64[us]")
    old, new = (ColumnPlan("d", "date", "date", date_format=form) for form in ("%d/%m/%Y", "%m/%d/%Y"))
    fitted = fit([old], {"d": days}, np.arange(2))
    rows = [{"d": "03/04/2021"}]
    before, after = (
        Pipeline(features).of_rows(rows) for features in (fitted, with_text_rules(fitted, [new]))
    )
    assert before.tobytes() != after.tobytes()
    assert after.tobytes() == Pipeline(fitted).of_rows([{"d": "2021-03-04"}]).tobytes()
