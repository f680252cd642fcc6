"""Dates whose year may be a day, Unix times, times with an offset, durations, and months of two digits."""

import datetime
import random
from typing import Any

from jobs.spec.data.columns import ColumnRequest
from tests.engine.data.collection.case import TableCase
from tests.engine.data.collection.date_columns import column_case, whole_numbers

_RANDOM = random.Random(32)
FIRST = datetime.date(2012, 1, 1)
DAYS = [FIRST + datetime.timedelta(days=_RANDOM.randrange(3_500)) for _ in range(150)]
"""In no order, of the years 2012 to 2021."""
RECENT = [datetime.date(2019, 1, 1) + datetime.timedelta(days=_RANDOM.randrange(1_500)) for _ in range(60)]
EARLY = [day.replace(day=day.day % 12 + 1) for day in DAYS]
"""With days up to the twelfth, so that years from 2012 to 2021 may be days."""
MOMENTS = [1_700_000_000 + 7_919 * row * row for row in range(40)]
READ = [datetime.datetime.fromtimestamp(moment, datetime.UTC).replace(tzinfo=None) for moment in MOMENTS]


def written(name: str, form: str, days: list[datetime.date], **expected: Any) -> TableCase:
    """Return the case of a column with days in a format."""
    return column_case(
        name,
        [day.strftime(form) for day in days],
        [day.isoformat() for day in days],
        **expected,
    )


def unix(name: str, column: str, unit: int, *, fraction: str = "") -> TableCase:
    """Return the case of a column with Unix times in a unit of which a second has so many."""
    return column_case(
        name,
        [f"{moment * unit}{fraction}" for moment in MOMENTS],
        [f"{moment.isoformat()}{fraction}" for moment in READ],
        column=column,
        findings=("are read as Unix times", "from 2023-11-14 22:13"),
        offers=((column, {"type": "number" if fraction else "integer"}),),
    )


YEARS_FIRST = (
    *(
        written(f"year_first_{place}", form, DAYS, absent=("could also be", "1930"))
        for place, form in enumerate(("%y/%m/%d", "%y.%m.%d", "%y-%m-%d", "%y %m %d", "%a %y/%m/%d"))
    ),
    *(
        written(f"day_first_{place}", form, RECENT, absent=("could also be",))
        for place, form in enumerate(("%d/%m/%y", "%d.%m.%y", "%d-%m-%y", "%d %m %y"))
    ),
    *(
        column_case(
            f"year_or_day_{place}",
            [day.strftime(form) for day in EARLY],
            findings=("as year/month/day", "is read as"),
            offers=(("d", {"type": "date", "date_format": form}),),
            absent=("NaT",),
        )
        for place, form in enumerate(("%y/%m/%d", "%y.%m.%d", "%y-%m-%d"))
    ),
    column_case(
        "year_first_in_even_steps",
        [(FIRST + datetime.timedelta(days=9 * row)).strftime("%y/%m/%d") for row in range(60)],
        [(FIRST + datetime.timedelta(days=9 * row)).isoformat() for row in range(60)],
    ),
    column_case(
        "days_of_a_month_with_two_digits_of_the_year",
        [f"{day:02}/03/21" for day in range(13, 32)],
        [f"2021-03-{day:02}" for day in range(13, 32)],
    ),
    column_case(
        "year_first_with_a_time",
        [day.strftime("%y/%m/%d 10:30") for day in DAYS],
        [day.strftime("%Y-%m-%dT10:30") for day in DAYS],
    ),
    column_case(
        "digits_with_a_short_year",
        [day.strftime("%y%m%d") for day in DAYS],
        kind="integer",
        column="ymd",
        findings=('could be dates such as "211224" (%y%m%d)',),
        offers=(("ymd", {"type": "date", "date_format": "%y%m%d"}),),
    ),
)
DIGITS = tuple(
    column_case(
        f"codes_of_days_{place}",
        [day.strftime(form) for day in DAYS],
        kind="category",
        column="date",
        findings=("could be dates such as", "They are read as words"),
        offers=(("date", {"type": "date", "date_format": form}),),
    )
    for place, form in enumerate(("%d%m%y", "%m%d%y", "%d%m%Y", "%m%d%Y"))
)
DAYS_SECOND = (
    written("year_day_month", "%Y-%d-%m", DAYS, absent=("could also be",)),
    written("year_day_month_with_points", "%Y.%d.%m", DAYS),
    written("few_late_days_of_year_day_month", "%Y-%d-%m", [*EARLY, *DAYS[:20]]),
    written(
        "stated_year_day_month",
        "%Y-%d-%m",
        EARLY,
        requests=(ColumnRequest(name="d", date_format="%Y-%d-%m"),),
    ),
    written("iso_with_days_that_may_be_months", "%Y-%m-%d", EARLY),
)
TWO_SOURCES = (
    column_case(
        "unix_nanoseconds_with_a_gap",
        [*(str(moment * 10**9 + 1) for moment in MOMENTS), ""],
        kind="category",
        column="ts",
        missing=1,
        offers=(("ts", {"type": "date", "date_format": "unix nanoseconds"}),),
    ),
    column_case(
        "typing_error_that_fits_the_year_first",
        [*(day.strftime("%d/%m/%y") for day in RECENT), "45/03/21"],
        [*(day.isoformat() for day in RECENT), None],
        missing=1,
        findings=("row 61 has '45/03/21'",),
    ),
    column_case(
        "two_orders_without_a_date_of_both",
        ["13/01/2024", "14/02/2024", "05/05/2024", "01/15/2024", "02/16/2024"],
        ["2024-01-13", "2024-02-14", "2024-05-05", None, None],
        missing=2,
        findings=("if the column has both orders",),
        absent=("NaT",),
        offers=(("d", {"type": "date", "date_format": "%d/%m/%Y or %m/%d/%Y"}),),
    ),
    column_case(
        "two_orders_with_a_date_of_both",
        ["13/01/2024", "14/02/2024", "01/05/2024", "01/15/2024", "02/16/2024"],
        missing=2,
        findings=("'01/05/2024' is read as 2024-05-01", "2024-01-05 as month/day/year"),
        absent=("NaT",),
    ),
)
UNIX = (
    unix("unix_seconds", "created_at", 1),
    unix("unix_milliseconds", "date", 10**3),
    unix("unix_microseconds", "event.timestamp", 10**6),
    unix("unix_nanoseconds", "ts", 10**9),
    unix("unix_seconds_with_a_fraction", "loginTime", 1, fraction=".5"),
    column_case(
        "unix_seconds_with_gaps",
        ["1700000000", "n/a", "1700086400", ""],
        ["2023-11-14T22:13:20", None, "2023-11-15T22:13:20", None],
        column="updated_at",
        missing=2,
    ),
    column_case(
        "unix_seconds_of_which_some_are_zero",
        ["1700000000", "0", "1700086400", "1700172800"],
        ["2023-11-14T22:13:20", "1970-01-01", "2023-11-15T22:13:20", "2023-11-16T22:13:20"],
        column="date",
        offers=(("date", {"gap_words": ["1970-01-01"]}),),
    ),
    column_case(
        "unix_milliseconds_under_another_name",
        [str(moment * 1_000) for moment in MOMENTS],
        kind="integer",
        column="x",
        findings=("could be Unix times, which count milliseconds", "neither its name nor its steps"),
        offers=(("x", {"type": "date", "date_format": "unix milliseconds"}),),
    ),
    column_case(
        "unix_seconds_of_a_stated_format",
        ["-86400", "0", "1700000000"],
        ["1969-12-31", "1970-01-01", "2023-11-14T22:13:20"],
        requests=(ColumnRequest(name="d", date_format="unix seconds"),),
    ),
    column_case(
        "numbers_that_count_rows",
        [str(1_600_000_000 + row) for row in range(40)],
        kind="integer",
        column="x",
        absent=("Unix",),
    ),
    column_case(
        "telephone_numbers",
        [str(2_015_550_100 + 7_777_777 * row) for row in range(40)],
        kind="integer",
        column="x",
        absent=("Unix",),
    ),
    column_case(
        "unix_seconds_of_which_the_type_alone_was_stated",
        [str(moment) for moment in MOMENTS],
        [moment.isoformat() for moment in READ],
        requests=(ColumnRequest(name="d", type="date"),),
        absent=("are read as Unix times",),
    ),
    column_case(
        "nanoseconds_of_a_run",
        [str(400_000_000 + 7_777_777 * row) for row in range(40)],
        kind="integer",
        column="time",
        offers=(("time", {"type": "date", "date_format": "unix seconds"}),),
    ),
    *(
        column_case(
            f"numbers_in_a_column_named_{name}",
            [str(2_000_000_000 - 37_777_777 * row) for row in range(25)],
            kind="integer",
            column=name,
        )
        for name in ("season", "candidate", "date_id")
    ),
    whole_numbers("seconds_of_a_day", "43200", "86399", "120"),
)
WORDS = (
    *(
        column_case(
            name,
            texts,
            kind="category",
            findings=(f"values such as {texts[0]!r} are {form}",),
        )
        for name, form, texts in (
            ("durations_of_letters", "times or durations", ["2h 30m", "45m", "1h 05m"] * 3),
            ("durations_with_days", "times or durations", ["1d 4h", "6h", "2d"] * 3),
            ("durations_of_one_unit_each", "times or durations", ["6h", "2d", "3h", "45m"] * 3),
            ("durations_with_minutes_behind", "times or durations", ["0h59", "2h50", "3h05"] * 3),
            ("days_ago", "times before or after a moment", ["4 days ago", "1 hour ago"] * 3),
            ("days_and_months_with_a_slash", "days without a year, months", ["24/12", "08/01"] * 3),
            ("days_and_months_with_points", "days without a year", ["24.12.", "08.01."] * 3),
            ("days_of_spreadsheets", "days without a year", ["20-Jan", "1-Feb", "3-Mrz"] * 3),
            ("fractions_of_one_sign", "numbers with a fraction", ["½", "1½", "2", "2 ¾"] * 3),
            ("ordinals", "numbers of an order", ["1st", "2nd", "3rd", "4th"] * 3),
            ("digits_with_low_lines", "numbers with _", ["7_806", "1_000", "12_345_678"] * 3),
            ("years_with_an_apostrophe", "years of two digits", ["'63", "'64", "'71"] * 3),
        )
    ),
    *(
        column_case(
            f"months_of_two_digits_{place}",
            texts,
            kind="category",
            findings=(f"such as {texts[0]!r} could be months, this one 2020-0", "days of a month"),
            offers=(("d", {"type": "date", "date_format": form}),),
        )
        for place, (form, texts) in enumerate(
            (
                ("%b-%y", ["Jan-20", "Mar-21", "Feb-20"] * 3),
                ("%b %y", ["Jan 20", "Mar 21"] * 3),
                ("%b-%y", ["Mai-20", "Okt-21"] * 3),
            )
        )
    ),
    column_case(
        "months_of_two_digits_that_were_stated",
        ["Jan-20", "Mar-21"],
        ["2020-01-01", "2021-03-01"],
        requests=(ColumnRequest(name="d", date_format="%b-%y"),),
    ),
)
OFFSETS = (
    column_case(
        "midnights_with_an_offset",
        ["2024-04-02T10:00:00+02:00", "2024-04-01T00:00:00+02:00"],
        ["2024-04-02T08:00", "2024-03-31T22:00"],
        findings=("'2024-04-01T00:00:00+02:00' is 2024-03-31 22:00",),
    ),
    column_case(
        "offsets_of_nothing",
        [
            "2024-04-02T10:00:00+00:00",
            "2024-04-02T10:00:00Z",
            "2024-04-02 10:00 UTC",
            "2024-04-02 10:00 -0000",
        ],
        ["2024-04-02T10:00"] * 4,
        absent=("offset",),
    ),
)
SENT = (*YEARS_FIRST, *DAYS_SECOND, *UNIX, *OFFSETS)
"""Their rows can be sent in requests."""
CASES: tuple[TableCase, ...] = (*SENT, *DIGITS, *TWO_SOURCES, *WORDS)
