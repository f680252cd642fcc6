"""Names the forms of numbers and dates that are read as words, such as durations and hexadecimal numbers."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobs.spec.data.dates.names import MONTHS
from workers.engine.data.reading.codes import are_telephone_numbers

MIN_SHARE = 0.9
"""So many of the first values have a form that is named."""
MAX_CHARACTERS = 60


class _Form(NamedTuple):
    """A form of texts, its name, and how to write the texts so that they are read.

    Attributes:
        pattern: for a whole text.
        name: of several such texts.
        remedy: the end of a sentence.
        accepts: whether all texts together have the form, since single ones may have another meaning too.
    """

    pattern: re.Pattern[str]
    name: str
    remedy: str
    accepts: Callable[[Sequence[str]], bool] | None = None


def _have_several_units(texts: Sequence[str]) -> bool:
    """Return whether durations have clocks or several units; with one unit they may be other numbers."""
    units = {unit for text in texts for unit in re.findall(r"[a-z]+", text)}
    return len(units) > 1 or any(":" in text or "P" in text or text[-1].isdigit() for text in texts)


def _have_zeros(texts: Sequence[str]) -> bool:
    return any(text.startswith("0") for text in texts)


def _have_signs(texts: Sequence[str]) -> bool:
    return any(text[-1] in FRACTIONS for text in texts)


FRACTIONS = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"


_CLOCK = r"-?[0-9]{1,4}:[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?"
_NUMBER = r"[+-]?[0-9]+([.,][0-9]+)?"
_PART = (
    r"[0-9]+([.,][0-9]+)? ?(y|yrs?|years?|mo|mos|months?|w|wks?|weeks?|d|days?|h|hrs?|hours?|std|stunden?"
    r"|m|mins?|minutes?|minuten?|s|secs?|seconds?|sekunden?|ms)"
)
"""Of a duration. A column in which all values have one unit is read as numbers, or has that offer."""
_MONTH = rf"({'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_FORMS = (
    _Form(
        re.compile(r"\[[0-9]{1,2}/[A-Za-z]{3}/[0-9]{4}[: ].*\]|\[[0-9]{4}-[0-9]{2}-[0-9]{2}.*\]"),
        "dates between brackets",
        "without these",
    ),
    _Form(
        re.compile(rf"[~≈] ?{_NUMBER}|{_NUMBER} ?(±|\+/-|\[|\()[^a-zA-Z]*[0-9][^a-zA-Z]*"),
        "numbers with a range or an error",
        "as numbers alone",
    ),
    _Form(
        re.compile(r"[0-3][0-9]/[0-9]{2}"),
        "days without a year, months without a day, or other pairs of numbers",
        "as 2021-12-24 or 2021-12, or in two columns",
        _have_zeros,
    ),
    _Form(
        re.compile(r"([0-9]+ )?[0-9]+[/⁄][0-9]+"),
        "numbers with a slash",
        "as decimals, such as 0.5, or in two columns",
    ),
    _Form(
        re.compile(rf"[+-]?([0-9]+ ?)?[{FRACTIONS}]|[0-9]+"),
        "numbers with a fraction",
        "as decimals, such as 0.5",
        _have_signs,
    ),
    _Form(
        re.compile(r"[0-9]+ ?(ft|feet|'|′) ?([0-9]+(\.[0-9]+)? ?(in|inch|\"|″|'')?)?"),
        "lengths in feet and inches",
        "as numbers of one unit",
    ),
    _Form(
        re.compile(r"[NSEW]? ?[0-9]{1,3}(\.[0-9]+)? ?°[ 0-9.'′\"″]* ?[NSEW]?|[0-9]{1,3}\.[0-9]+ ?[NSEW]"),
        "geographic degrees",
        "as decimal degrees, negative in the south and the west",
    ),
    _Form(
        re.compile(
            rf"{_CLOCK}|-?[0-9]+ days?,? *({_CLOCK})?|-?P([0-9.]+[YMWD])*(T([0-9.]+[HMS])+)?"
            rf"|({_PART}[ ,]*){{1,6}}|[0-9]+ ?h ?[0-9]{{2}}"
        ),
        "times or durations",
        "as numbers, for example of seconds",
        _have_several_units,
    ),
    _Form(
        re.compile(rf"({_PART}[ ,]*){{1,6}} (ago|from now)|in ({_PART}[ ,]*){{1,6}}", re.IGNORECASE),
        "times before or after a moment that the file does not name",
        "as 2021-12-24 15:05",
    ),
    _Form(
        re.compile(
            r"([^\W\d_]+,? )?[0-9]{1,2}\.?[ -][^\W\d_][^\s\d.,]{2,14}\.?,?[ -](1[89]|2[0-9])[0-9]{2}\b.*"
            r"|(1[89]|2[0-9])[0-9]{2}\.? [^\W\d_][^\s\d.,]{2,14}\.? [0-9]{1,2}\b.*"
        ),
        "dates with names of months that are not known",
        "as 2021-12-24",
    ),
    _Form(
        re.compile(rf"[0-9]{{1,2}}\.?[ /-]?{_MONTH}|[0-3]?[0-9]\.[01]?[0-9]\.", re.IGNORECASE),
        "days without a year",
        "as 2021-12-24",
    ),
    _Form(re.compile(r"['’‘`][0-9]{2}"), "years of two digits", "as 1963"),
    _Form(re.compile(r"[0-9]+ ?(st|nd|rd|th)", re.IGNORECASE), "numbers of an order", "as 1, 2 and 3"),
    _Form(
        re.compile(r"[+-]?[0-9]{1,3}(_[0-9]{3})+(\.[0-9]+)?"), "numbers with _ between digits", "without it"
    ),
    _Form(
        re.compile(r"[^\W\d_]{3,9}\.? +[0-9]{1,2},? +[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?.*"),
        "dates without a year",
        "as 2021-12-24 15:05",
    ),
    _Form(
        re.compile(r"(明治|大正|昭和|平成|令和|民國|民国)?[0-9]{1,3}年[0-9]{1,2}月([0-9]{1,2}日)?"),
        "dates of another calendar",
        "as 2021-12-24",
    ),
    _Form(
        re.compile(
            r"(FY ?)?([0-9]{2}|[0-9]{4})[ /-]?(H[12]|S[12])|FY ?'?[0-9]{2,4}.*|[1-4]Q[ '/-]?[0-9]{2}"
            r"|Q[1-4][ '/-]?[0-9]{2}|H[12][ '/-]?[0-9]{2,4}"
        ),
        "periods",
        "as their first days, such as 2021-10-01",
    ),
    _Form(re.compile(r'="[^"]*"|=[+-]?[0-9.,]+'), "formulas of spreadsheets", "without = and quotes"),
    _Form(
        re.compile(r"0[xX][0-9a-fA-F]+"), "hexadecimal numbers", "with decimal digits if they are measured"
    ),
    _Form(
        re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[dD][+-]?[0-9]+"),
        "numbers with the exponent of Fortran",
        "with e, such as 1.5e3",
    ),
    _Form(
        re.compile(r"/Date\(-?[0-9]+([+-][0-9]{4})?\)/"), "dates of .NET", "as 2021-12-24, or as their number"
    ),
)


def name_form(texts: Sequence[str]) -> str | None:
    """Return the form of texts that may be meant as numbers or dates, and how to write them.

    Args:
        texts: some values of a column of words.

    Returns:
        The end of a sentence; None for other words.
    """
    if are_telephone_numbers(texts):
        return None
    stripped = (text.strip() for text in texts)
    short = [text for text in stripped if len(text) <= MAX_CHARACTERS and any(map(str.isnumeric, text))]
    for form in _FORMS:
        fitting = [text for text in short if form.pattern.fullmatch(text)]
        is_form = texts and len(fitting) >= MIN_SHARE * len(texts) and len({*fitting}) > 1
        if is_form and (form.accepts is None or form.accepts(fitting)):
            example = next((text for text in fitting if not text.isdecimal()), fitting[0])
            return (
                f"values such as {example!r} are {form.name}, and are read as words. To use their order "
                f"or size, write them {form.remedy}."
            )
    return None
