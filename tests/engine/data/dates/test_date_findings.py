"""Findings and offers about columns of dates, and dates in files of other formats."""

import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from jobs.upload_formats import format_of_upload
from tests.engine.helpers import csv_file, profiled
from workers.engine.data.reading.column_types import recognize, recognize_words
from workers.engine.data.spilled import Spill
from workers.engine.data.statistics import MOST_NAMED
from workers.engine.data.store import read_arrays
from workers.engine.data.texts import text_array
from workers.engine.data.words import words_of
from workers.engine.errors import BadData

OPEN = ["01/02/2021", "03/04/2021", "07/05/2021", "02/02/2020"]


def profile_of(folder: Path, text: str, **task: Any) -> Profile:
    folder.mkdir(exist_ok=True)
    file = profiled(folder / "version", source="csv", path=csv_file(folder, text), **task)
    return Profile.model_validate(file.profile)


def one_column(folder: Path, texts: list[str], **task: Any) -> Profile:
    rows = "".join(f'"{text}",{row % 2}\n' for row, text in enumerate(texts))
    return profile_of(folder, f"d,y\n{rows}", **task)


def test_an_offer_keeps_a_role_that_a_person_chose(tmp_path: Path) -> None:
    columns = [ColumnRequest(name="d", role="time"), ColumnRequest(name="n", role="feature")]
    rows = "".join(f"{text},{row},{row % 2}\n" for row, text in enumerate(OPEN))
    profile = profile_of(tmp_path, f"d,n,y\n{rows}", columns=columns)
    assert [(offer.label, offer.change.role, offer.change.date_format) for offer in profile.offers] == [
        ("Keep day/month/year", "time", "%d/%m/%Y"),
        ("Read it as month/day/year", "time", "%m/%d/%Y"),
    ]


def test_accepting_the_other_order_gives_other_dates_and_no_further_offer(tmp_path: Path) -> None:
    profile = one_column(tmp_path, OPEN)
    other = profile.offers[1].change
    again = one_column(tmp_path / "again", OPEN, columns=[other])
    assert [profile.columns[0].earliest, again.columns[0].earliest] == [
        "2020-02-02T00:00:00.000000",
        "2020-02-02T00:00:00.000000",
    ]
    assert [str(part.columns[0].latest)[:10] for part in (profile, again)] == ["2021-05-07", "2021-07-05"]
    assert again.offers == ()


def test_many_columns_with_doubts_are_not_named_one_by_one(tmp_path: Path) -> None:
    count = MOST_NAMED + 10
    names = ",".join(f"d{column}" for column in range(count))
    rows = "".join(f"{','.join([text] * count)},{row % 2}\n" for row, text in enumerate(OPEN))
    profile = profile_of(tmp_path, f"{names},y\n{rows}")
    assert len(profile.offers) == 2 * MOST_NAMED
    assert any(finding.startswith("10 more columns") for finding in profile.findings)


def test_misfits_have_the_rows_of_the_file_and_their_number(tmp_path: Path) -> None:
    texts = [f"2021-03-{day:02}" for day in range(1, 31)]
    for row in (4, 9, 14, 19, 24, 29):
        texts[row] = "2021-02-30"
    profile = one_column(tmp_path, texts)
    misfits = profile.columns[0].misfits
    assert misfits is not None
    assert (misfits.count, misfits.rows) == (6, (5, 10, 15, 20, 25))
    assert misfits.examples == ("2021-02-30",) * 5
    (offer,) = profile.offers
    assert "24 of 30 values" in offer.finding and "and 1 more row" in offer.finding


def test_a_time_column_of_words_is_refused_with_the_way_to_state_its_format(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"no order in time.* state their date_format, such as %d/%m/%Y"):
        profile_of(tmp_path, "d,n,y\na,1,0\nb,2,1\n", columns=[ColumnRequest(name="d", role="time")])


def test_a_class_that_is_no_date_is_a_class(tmp_path: Path) -> None:
    texts = ["2021-01-01", "2021-01-02", "2021-01-01", "never"] * 5
    rows = "".join(f"{row % 3},{text}\n" for row, text in enumerate(texts))
    profile = profile_of(tmp_path, f"n,y\n{rows}")
    assert set(profile.class_labels) == {*texts}


def test_a_target_of_classes_gets_no_offer_to_read_it_as_dates(tmp_path: Path) -> None:
    texts = [*(f"2021-01-{row % 4 + 1:02}" for row in range(20)), *["open"] * 20]
    profile = profile_of(tmp_path, "n,y\n" + "".join(f"{row % 3},{text}\n" for row, text in enumerate(texts)))
    assert "open" in profile.class_labels
    assert not [offer for offer in profile.offers if offer.change.type == "date"]


@pytest.mark.parametrize("role", ["ignore", "id"])
def test_a_column_of_dates_that_is_not_used_has_no_findings(tmp_path: Path, role: Any) -> None:
    columns = [ColumnRequest(name="d", role=role), ColumnRequest(name="n", role="feature")]
    rows = "".join(f"{text},{row},{row % 2}\n" for row, text in enumerate(OPEN))
    profile = profile_of(tmp_path, f"d,n,y\n{rows}", columns=columns)
    assert profile.columns[0].type == "date"
    assert profile.offers == ()


def test_the_orders_of_two_formats_have_different_names(tmp_path: Path) -> None:
    profile = one_column(tmp_path, ["2021-03-05", "2021-04-09", *OPEN])
    labels = [offer.label for offer in profile.offers]
    assert labels == ["Keep day/month/year", "Read it as month/day/year"], profile.offers


def test_numbers_to_predict_are_no_dates(tmp_path: Path) -> None:
    rows = "".join(f"{row % 3},{20210101 + row % 28}\n" for row in range(60))
    profile = profile_of(tmp_path, f"n,date\n{rows}")
    assert profile.task == "regression"


@pytest.mark.parametrize("source", ["json_lines", "parquet"])
def test_texts_of_other_files_are_read_by_the_same_rule(tmp_path: Path, source: Any) -> None:
    texts = ["12/24/2021 3:05 PM", "", "01/05/2022 11:00 AM", "13/13/2021"]
    days = [datetime.date(2021, 12, 24), None, datetime.date(2300, 1, 1), datetime.date(1066, 10, 14)]
    path = tmp_path / "file"
    if source == "parquet":
        pq.write_table(pa.table({"d": texts, "day": days, "y": [0, 1, 0, 1]}), path)
    else:
        lines = [f'{{"d": "{text}", "day": "{day or ""}", "y": {row % 2}}}' for row, (text, day) in
                 enumerate(zip(texts, days, strict=True))]  # fmt: skip
        path.write_text("\n".join(lines))
    file = profiled(tmp_path / "version", source=source, path=str(path))
    profile, arrays = Profile.model_validate(file.profile), read_arrays(Path(file.path))
    assert profile.columns[0].date_format == "%m/%d/%Y"
    assert profile.columns[0].misfits is not None
    expected = np.array(["2021-12-24T15:05", "NaT", "2022-01-05T11:00", "NaT"], "datetime64[us]")
    np.testing.assert_array_equal(arrays["column_0"], expected)
    expected = np.array(["2021-12-24", "NaT", "2300-01-01", "1066-10-14"], "datetime64[us]")
    np.testing.assert_array_equal(arrays["column_1"], expected)


@pytest.mark.parametrize("seed", range(5))
def test_different_texts_and_all_rows_are_read_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool = [
        "01/02/2021",
        "13/01/2021",
        "2021-02-30",
        "2021-03-04",
        "n/a",
        "",
        "soon",
        "Dec 24, 2021",
        "20210304",
    ]
    texts = [str(text) for text in rng.choice(pool, 60, p=rng.dirichlet(np.ones(len(pool))))]
    words = words_of(pa.array(texts, pa.large_string()))
    assert words is not None
    by_words, by_rows = recognize_words(words), recognize(text_array(texts))
    assert (by_words.type, by_words.dates) == (by_rows.type, by_rows.dates)
    if by_words.values is not None and by_rows.values is not None:
        np.testing.assert_array_equal(by_words.values, by_rows.values)


@pytest.mark.parametrize("is_large", [False, True])
def test_times_of_a_zone_in_a_parquet_file_are_in_utc_with_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    if is_large:
        monkeypatch.setattr(Spill, "for_size", lambda self, size: self)
    first = datetime.datetime(2024, 3, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    days = [first + datetime.timedelta(days=day) for day in range(6)]
    table = {
        "noon": pa.array([day.replace(hour=12) for day in days], pa.timestamp("us", "Europe/Berlin")),
        "day": pa.array([None, *days[1:]], pa.timestamp("us", "Europe/Berlin")),
        "utc": pa.array(days, pa.timestamp("us", "UTC")),
        "y": [0, 1] * 3,
    }
    path = tmp_path / "file"
    pq.write_table(pa.table(table), path)
    profile = Profile.model_validate(profiled(tmp_path / "version", source="parquet", path=str(path)).profile)
    found = [sentence for sentence in profile.findings if "zone" in sentence]
    assert [sentence.partition(". In a request, ")[::2] for sentence in found] == [
        (
            "Column 'noon' has times of the zone Europe/Berlin, and all of its dates are in UTC: "
            "2024-03-30 12:00 there is 2024-03-30 11:00",
            "state the offset, as in 2024-03-30T12:00+01:00; a time without an offset is one in UTC.",
        ),
        (
            "Column 'day' has times of the zone Europe/Berlin, and all of its dates are in UTC: "
            "2024-03-31 00:00 there is 2024-03-30 23:00",
            "state the offset, as in 2024-03-31T00:00+01:00; a time without an offset is one in UTC.",
        ),
    ]


def test_dates_that_pandas_writes_as_json_are_dates(tmp_path: Path) -> None:
    frame = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=30), "y": ["a", "b"] * 15})
    path = tmp_path / "file.json"
    frame.to_json(path, orient="records", date_format="epoch", date_unit="ms")
    file = profiled(
        tmp_path / "version", source=format_of_upload(path, path.name), path=str(path), target="y"
    )
    profile = Profile.model_validate(file.profile)
    assert (profile.columns[0].type, profile.columns[0].date_format) == ("date", "unix milliseconds")
    assert str(profile.columns[0].earliest)[:10] == "2024-01-01"


def test_a_date_that_is_far_from_the_others_is_taken_as_missing_in_its_own_order(tmp_path: Path) -> None:
    texts = [f"2021-{day}-0{1 + day % 9}" for day in range(13, 29)] + ["2999-02-01"]
    profile = one_column(tmp_path, texts)
    (change,) = [offer.change for offer in profile.offers if offer.change.gap_words]
    assert change.gap_words == ("2999-02-01",)
    again = one_column(tmp_path / "again", texts, columns=[change])
    assert (again.columns[0].missing, str(again.columns[0].latest)[:4]) == (1, "2021")
