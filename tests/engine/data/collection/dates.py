"""Dates and times in the formats that programs and people write."""

from jobs.spec.data.columns import ColumnRequest
from tests.engine.data.collection import written_dates
from tests.engine.data.collection.case import TableCase
from tests.engine.data.collection.date_columns import DAY, NIGHT, column_case

MONTHS = [(year, month) for year in (2005, 2006) for month in range(1, 13)]
FIRSTS = [f"{year}-{month:02}-01" for year, month in MONTHS]
OTHER_ORDER = {"type": "date", "date_format": "%m/%d/%Y"}

ORDERS = (
    column_case(
        "american_months",
        [f"{month:02}/01/{year}" for year, month in MONTHS],
        FIRSTS,
        findings=("month/day",),
    ),
    column_case("european_months", [f"01/{month:02}/{year}" for year, month in MONTHS], FIRSTS),
    column_case(
        "first_american_months",
        ["01/01/2005", "02/01/2005", "03/01/2005", "04/01/2005"],
        FIRSTS[:4],
        findings=("day/month/year",),
        offers=(("d", {"type": "date", "date_format": "%d/%m/%Y"}), ("d", OTHER_ORDER)),
    ),
    column_case(
        "american_quarters",
        ["01/01/2005", "04/01/2005", "07/01/2005", "10/01/2005", "01/01/2006"],
        ["2005-01-01", "2005-04-01", "2005-07-01", "2005-10-01", "2006-01-01"],
    ),
    column_case(
        "days_with_one_that_is_no_month",
        [f"{day:02}/01/2005" for day in range(1, 14)],
        [f"2005-01-{day:02}" for day in range(1, 14)],
        absent=("could also be",),
    ),
    column_case(
        "american_days_of_a_month",
        ["12/05/2021", "12/24/2021", "12/06/2021"],
        ["2021-12-05", "2021-12-24", "2021-12-06"],
        absent=("could also be",),
    ),
    column_case(
        "order_that_stays_open",
        ["01/02/2021", "03/04/2021", "07/05/2021", "02/02/2020"],
        ["2021-02-01", "2021-04-03", "2021-05-07", "2020-02-02"],
        findings=("'01/02/2021' is read as 2021-02-01, day/month/year (%d/%m/%Y)",),
        offers=(("d", OTHER_ORDER), ("d", {"type": "date", "date_format": "%d/%m/%Y"})),
    ),
    column_case(
        "order_that_was_stated",
        ["01/02/2021", "03/04/2021", "07/05/2021", "02/02/2020"],
        ["2021-01-02", "2021-03-04", "2021-07-05", "2020-02-02"],
        requests=(ColumnRequest(name="d", role="time", date_format="%m/%d/%Y"),),
        absent=("could also be",),
    ),
    column_case(
        "iso_beside_a_stated_order",
        ["01/02/2021", "2021-02-03", "20210204", "2021-02-30"],
        ["2021-02-01", "2021-02-03", "2021-02-04", None],
        missing=1,
        requests=(ColumnRequest(name="d", date_format="%d/%m/%Y"),),
    ),
    column_case(
        "order_by_the_rows",
        ["01/02/2021", "01/05/2021", "02/03/2021", "03/01/2021", "07/09/2021", "11/10/2021"],
        ["2021-01-02", "2021-01-05", "2021-02-03", "2021-03-01", "2021-07-09", "2021-11-10"],
    ),
    column_case("day_and_month_are_equal", ["01/01/2021", "02/02/2021"] * 2, absent=("could also be",)),
    column_case(
        "points_are_day_first",
        ["01.02.2021", "03.04.2021"],
        ["2021-02-01", "2021-04-03"],
        absent=("could also",),
    ),
    column_case(
        "two_orders_in_one_column",
        ["13/01/2021", "14/02/2021", "15/03/2021", "16/04/2021", "01/13/2021"],
        ["2021-01-13", "2021-02-14", "2021-03-15", "2021-04-16", None],
        missing=1,
        findings=("row 5 has '01/13/2021'", "both orders"),
        offers=(("d", {"type": "date", "date_format": "%d/%m/%Y or %m/%d/%Y"}),),
    ),
)
MISFITS = (
    column_case(
        "impossible_date",
        ["2021-02-28", "2021-02-29", "2021-02-30", "2021-03-01", "2020-02-29"],
        ["2021-02-28", None, None, "2021-03-01", "2020-02-29"],
        missing=2,
        findings=("row 2 has '2021-02-29', row 3 has '2021-02-30'",),
        offers=(("d", {"type": "category"}),),
    ),
    column_case(
        "impossible_date_of_three",
        ["01/30/2021", "02/30/2021", "03/30/2021"],
        ["2021-01-30", None, "2021-03-30"],
        missing=1,
        findings=("2 of 3 values", "row 2 has '02/30/2021'"),
    ),
    column_case(
        "typing_error_that_fits_another_order",
        ["2021-01-01", "2021-02-01", "2021-03-01", "2021-13-01", "2021-05-01"],
        ["2021-01-01", "2021-02-01", "2021-03-01", None, "2021-05-01"],
        missing=1,
        findings=("row 4 has '2021-13-01'",),
    ),
    column_case(
        "words_between_dates",
        ["2021-01-30", "soon", "n/a", "", "2021-03-30", "-", "2021-04-30", "2021-04-30"],
        ["2021-01-30", None, None, None, "2021-03-30", None, "2021-04-30", "2021-04-30"],
        missing=4,
        findings=("4 of 5 values", "row 2 has 'soon'"),
    ),
    column_case(
        "few_dates_between_words",
        ["2021-01-30", "soon", "later", "never", "2021-03-30"],
        kind="category",
        values=["2021-01-30", "soon", "later", "never", "2021-03-30"],
        findings=("2 of 5 values",),
        offers=(("d", {"type": "date", "date_format": "%Y-%m-%d"}),),
    ),
    column_case(
        "misfits_of_a_stated_type",
        ["2021-01-30", "soon", "later", "never", "2021-03-30"],
        ["2021-01-30", None, None, None, "2021-03-30"],
        missing=3,
        findings=("2 of 5 values",),
        requests=(ColumnRequest(name="d", type="date"),),
    ),
    column_case(
        "two_formats",
        ["2021-12-24", "2021-03-04", "12/24/2021", "03/05/2021"],
        ["2021-12-24", "2021-03-04", "2021-12-24", "2021-03-05"],
        findings=('2 rows as "2021-12-24" (%Y-%m-%d), 2 rows as "12/24/2021" (%m/%d/%Y)',),
    ),
    column_case(
        "second_format_whose_order_is_open",
        ["2021-12-24", "2021-03-04", "2021-12-25", "2021-12-27", "2021-12-28", "03/05/2021"],
        ["2021-12-24", "2021-03-04", "2021-12-25", "2021-12-27", "2021-12-28", None],
        missing=1,
        findings=("'03/05/2021', is not clear",),
        offers=(
            ("d", {"type": "date", "date_format": "%Y-%m-%d or %m/%d/%Y"}),
            ("d", {"type": "date", "date_format": "%Y-%m-%d or %d/%m/%Y"}),
        ),
    ),
    column_case(
        "times_that_some_rows_lack",
        ["12/24/2021", "12/24/2021 15:05", "12/24/2021 3:05:00 PM"],
        [DAY, NIGHT, NIGHT],
        absent=("formats",),
    ),
    column_case(
        "no_value_has_the_stated_format",
        ["24.12.2021", "25.12.2021"],
        requests=(ColumnRequest(name="d", date_format="%m/%d/%Y"),),
        refusal='not of type date, such as "12/24/2021" (%m/%d/%Y): row 1 has 24.12.2021',
    ),
    column_case(
        "years_of_two_digits",
        ["24/12/45", "25/12/05"],
        ["2045-12-24", "2005-12-25"],
        findings=("1969 to 2068",),
        offers=(("d", {"type": "date", "date_format": "%d/%m/%y{1930}"}),),
    ),
    column_case(
        "years_of_two_digits_of_spreadsheets",
        ["24/12/45", "25/12/05"],
        ["1945-12-24", "2005-12-25"],
        requests=(ColumnRequest(name="d", date_format="%d/%m/%y{1930}"),),
    ),
)
SEVEN_DAYS = [20210126 + day for day in range(6)] + [20210201 + day for day in range(6)]
NUMBERS = (
    column_case(
        "numbers_that_could_be_dates",
        ["20211224", "20211103", "20200229"],
        kind="integer",
        values=[20211224, 20211103, 20200229],
        column="code",
        findings=("could be dates",),
        offers=(("code", {"type": "date", "date_format": "%Y%m%d"}),),
    ),
    column_case(
        "numbers_whose_name_is_date",
        ["20211224", "20211103", ""],
        ["2021-12-24", "2021-11-03", None],
        column="order_date",
        missing=1,
        offers=(("order_date", {"type": "integer"}),),
    ),
    column_case(
        "numbers_in_steps_of_days",
        [str(number) for number in SEVEN_DAYS],
        [f"{str(n)[:4]}-{str(n)[4:6]}-{str(n)[6:]}" for n in SEVEN_DAYS],
        column="code",
    ),
    column_case(
        "numbers_of_a_stated_format",
        ["1122021", "24122021"],
        ["2021-12-01", "2021-12-24"],
        requests=(ColumnRequest(name="d", date_format="%d%m%Y"),),
    ),
    column_case(
        "codes_of_a_stated_format",
        ["1122021", "02122021"],
        ["2021-12-01", "2021-12-02"],
        requests=(ColumnRequest(name="d", date_format="%d%m%Y"),),
    ),
    column_case(
        "numbers_of_seconds", ["20211224150500", "20211225000000"], [NIGHT, "2021-12-25"], column="time"
    ),
    column_case(
        "numbers_that_are_no_dates", ["20211399", "20211224", "20219999"], kind="integer", column="date"
    ),
    column_case("years", ["1970", "1971"], kind="integer", column="date"),
    column_case("numbers_of_spreadsheets", ["44554", "44555", "44556"], kind="integer", column="date"),
)
NO_DATES = (
    column_case("times_alone", ["10:30", "11:45", "23:59"], kind="category"),
    column_case("winters", ["2001-02", "2002-03", "2003-04"], kind="category"),
    column_case("versions", ["1.2.10", "1.2.11", "1.10.12"], kind="category"),
    column_case("months_and_days_without_a_year", ["Dec-24", "Nov-03", "Dec-31"], kind="category"),
    column_case("codes_with_hyphens", ["4711-08", "4712-09", "9812-01"], kind="category"),
    column_case("phone_numbers", ["030-12-345", "040-99-123", "089-31-555"], kind="category"),
    column_case("addresses_of_machines", ["10.0.12.21", "10.0.12.22", "10.1.1.1"], kind="category"),
)
CASES: tuple[TableCase, ...] = (*ORDERS, *written_dates.CASES, *MISFITS, *NUMBERS, *NO_DATES)
