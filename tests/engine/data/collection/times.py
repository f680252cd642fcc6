"""Times before dates, and words behind them, such as names of zones."""

from tests.engine.data.collection.date_columns import NIGHT, column_case, one_format

BERLIN = ["2021-03-05 08:30:00 Europe/Berlin", "2021-07-10 09:31:00 Europe/Berlin", "2022-01-15 10:32:00"]

BEFORE = (
    one_format("time_before_a_day", "15:05 24/12/2021"),
    one_format("time_with_seconds_before_iso", "15:05:00 2021-12-24"),
    one_format("time_of_the_afternoon_before_a_day", "3:05 PM, 24 Dec 2021"),
    one_format("time_with_a_zone_before_a_day", "16:05 CET 24.12.2021"),
    one_format("time_of_one_zone", "24/12/2021 10:05 EST"),
    column_case(
        "times_before_american_days",
        ["08:30 12/13/2021", "09:30:15 01/02/2022"],
        ["2021-12-13T08:30", "2022-01-02T09:30:15"],
    ),
    column_case(
        "times_before_days_of_which_one_has_a_zone",
        ["15:05 CET 2021-12-24", "15:05 2021-12-25", "16:05 CET 2021-12-26"],
        ["2021-12-24T14:05", "2021-12-25T15:05", "2021-12-26T15:05"],
        findings=("1 of 3 times has no time zone and is read as UTC",),
    ),
)
BEHIND = (
    column_case(
        "zone_with_summer_time",
        BERLIN[:2],
        kind="category",
        values=BERLIN[:2],
        findings=("'Europe/Berlin' gives no single offset from UTC, so they are read as words.",),
        offers=(("d", {"type": "date", "date_format": "%Y-%m-%d %H:%M:%S Europe/Berlin"}),),
    ),
    column_case(
        "german_clock",
        ["24.12.2021 15:05 Uhr", "25.12.2021 8:00 Uhr"],
        kind="category",
        findings=("'Uhr' gives no single offset",),
        offers=(("d", {"type": "date", "date_format": "%d.%m.%Y %H:%M Uhr"}),),
    ),
    column_case(
        "german_clock_in_arabic_digits",
        ["٢٤.١٢.٢٠٢١ ١٥:٠٥ Uhr", "٢٥.١٢.٢٠٢١ ١٥:٠٥ Uhr"],
        kind="category",
        offers=(("d", {"type": "date", "date_format": "%d.%m.%Y %H:%M Uhr"}),),
    ),
    column_case(
        "zone_of_several_countries",
        ["24/12/2021 15:05 IST", "25/12/2021 15:05 IST"],
        kind="category",
        offers=(("d", {"type": "date", "date_format": "%d/%m/%Y %H:%M IST"}),),
    ),
    column_case(
        "several_zones",
        ["2021-12-24 15:05 Asia/Tokyo", "2021-12-25 15:05 Europe/Berlin"],
        kind="category",
        findings=("'Asia/Tokyo' and 'Europe/Berlin' give no single offset", "write them in UTC"),
    ),
    column_case(
        "quarters_of_a_forecast",
        ["2021Q1 plan", "2021Q2 plan", "2021Q3 plan"],
        kind="category",
        findings=("'plan' behind them is not understood",),
        offers=(("d", {"type": "date", "date_format": "%YQ%q plan"}),),
    ),
    column_case(
        "names_behind_numbers",
        ["Elm Street 12 North", "Oak Road 7 South", "Elm Street 3 North"],
        kind="category",
        absent=("offset",),
    ),
)
OTHER = (
    column_case(
        "digits_of_an_unlikely_year",
        [*(f"{day:02}/12/2021" for day in range(1, 31)), "18991231", "20211224"],
        [*(f"2021-12-{day:02}" for day in range(1, 31)), None, NIGHT[:10]],
        missing=1,
        findings=("row 31 has '18991231'",),
    ),
)
CASES = (*BEFORE, *BEHIND, *OTHER)
