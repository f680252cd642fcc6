"""Date formats that the form of a table suggests; a person may write others."""

from typing import NamedTuple

from jobs.spec.data.date_formats import EXAMPLE, write_date


class DateFormatChoice(NamedTuple):
    """A suggested format with a date that is written so."""

    format: str
    example: str


DATE_FORMATS: tuple[DateFormatChoice, ...] = tuple(
    DateFormatChoice(form, write_date(EXAMPLE, form))
    for form in (
        *("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%y", "%m/%d/%y"),
        *("%m/%d/%Y %I:%M %p", "%d/%m/%Y %H:%M", "%d-%b-%Y", "%d %B %Y", "%B %d, %Y"),
        *("%Y%m%d", "%Y-%m", "%YQ%q", "%G-W%V", "%a, %d %b %Y %H:%M:%S %z"),
    )
)
