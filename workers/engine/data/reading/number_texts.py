"""Finds the number format that most texts of a column have, and reads them by it."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from jobs.spec.data.magnitudes import NAMES, UNITS_TOO, power_of
from jobs.spec.data.number_format import (
    LONGEST,
    ZERO,
    DecimalSign,
    NumberFormat,
    ThousandsMark,
    core_pattern,
    reader_of,
)
from jobs.spec.data.plain_characters import plain_characters
from workers.engine.arrays import Array
from workers.engine.data.reading.number_arrays import MANY, read_plain

CURRENCY_CODES = frozenset(
    re.findall(
        "[A-Z]{3}",
        "AED ALL AMD ARS AUD AZN BAM BBD BDT BGN BHD BMD BOB BRL BSD BWP BYN BZD CAD CHF CLP CNY COP CRC "
        "CUP CZK DKK DOP DZD EGP ETB EUR FJD GBP GEL GHS GTQ HKD HNL HRK HUF IDR ILS INR IQD IRR ISK JMD "
        "JOD JPY KES KGS KHR KRW KWD KZT LAK LBP LKR LTL LVL LYD MAD MDL MGA MKD MMK MNT MOP MUR MXN MYR "
        "MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PHP PKR PLN PYG QAR RMB RON RSD RUB RWF SAR SEK SGD SYP "
        "THB TJS TMT TND TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND XAF XOF YER ZAR ZMW",
    )
)
"""Codes of ISO 4217, with some that are no longer used."""
LOCAL_SIGNS = frozenset(
    {"Rs", "Rs.", "kr", "kr.", "Kr", "Kr.", "Fr", "Fr.", "zł", "Kč", "Ft", "lei", "лв", "руб", "руб."}
)
NO_UNITS = frozenset({"AM", "PM", "am", "pm", "a.m.", "p.m.", "st", "nd", "rd", "th"})
"""Endings of times and of ordinal numbers."""
_LETTER = r"(?:[^\W\d_]|[°%‰²³·′″\u20a0-\u20cf$£¥¢])"
PARTS = re.compile(
    r"(?P<open>\()? *(?P<sign>[+-])? *"
    r"(?:(?P<prefix>[^\W\d_]{0,3}[\u20a0-\u20cf$£¥¢]|[A-Z]{3}|Rs\.?|[kK]r\.?|Fr\.?) *)?"
    r"(?P<opened>\()?(?P<inner>[+-])?"
    r"(?P<core>[.,]?[0-9](?:[0-9.,' ]*[0-9])?[.,]?)(?P<exponent>[eE][+-]?[0-9]+)?(?P<behind> *-)?"
    rf"(?: *(?P<scale>(?:{NAMES})\.?)(?= *(?:[€$£¥]|{'|'.join(sorted(CURRENCY_CODES))})))?"
    rf"(?: *(?P<suffix>{_LETTER}(?:{_LETTER}|/){{0,14}}(?:(?<=m)[23])?\.?))? *(?P<close>\))?"
)
"""The parts of a text that is a number in some format."""
FORMATS: dict[DecimalSign, tuple[tuple[DecimalSign, ThousandsMark], ...]] = {
    ".": ((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (".", "'"), (",", " "), (",", "'")),
    ",": ((",", ""), (",", "."), (".", ""), (".", ","), (",", " "), (",", "'"), (".", " "), (".", "'")),
}
"""Signs in the order in which they are tried, for files whose decimal sign is known."""
NEARLY_ALL, FEWEST_OF_A_SIGN = 0.9, 0.05
DIGITS_OF_GROUP = 3
_PATTERNS = {signs: re.compile(core_pattern(*signs)) for signs in FORMATS["."]}
_NINES = str.maketrans("0123456789", "9" * 10)
_ONE_GROUP = re.compile(r"(?!0)[0-9]{1,3}(?P<mark>[.,])[0-9]{3}")
_SHARE = re.compile(r"0|1|0?[.,][0-9]+")
"""A number from 0 to 1."""
_DECIMALS = re.compile(r",[0-9]{1,2}$")
_SHORT_DECIMAL = re.compile(r"(?!0,)[0-9]+,[0-9]")


class Seen(NamedTuple):
    """The parts of the texts that may be numbers, each with the number of its rows."""

    rows: int
    cores: Counter[str]
    currencies: Counter[str]
    units: Counter[str]
    parentheses: int
    with_blank: Counter[int]
    minus_behind: int = 0
    bare: Counter[str] = Counter()
    """The digits and marks of numbers without a unit and without a currency."""
    scaled: Counter[str] = Counter()
    """The digits and marks before a magnitude such as k."""


def look_at(counted: Iterable[tuple[str, int]]) -> Seen:
    """Return the parts of texts, given with the number of their rows."""
    cores: Counter[str] = Counter()
    prefixes: Counter[str] = Counter()
    suffixes: Counter[str] = Counter()
    with_blank: Counter[int] = Counter()
    scales: Counter[str] = Counter()
    scaled: Counter[str] = Counter()
    bare: Counter[str] = Counter()
    rows = parentheses = minus_behind = 0
    fullmatch = PARTS.fullmatch
    for text, count in counted:
        match = fullmatch(plain_characters(text)) if len(text) <= LONGEST else None
        if match is None or match["suffix"] in NO_UNITS:
            continue
        opened, sign, prefix, inside, inner, core, _, minus, scale, suffix, closed = match.groups()
        if minus and (sign or inner or opened or inside):
            continue
        rows += count
        # Digits are equal, since only their places and a zero at the begin matter.
        cores[core[:1] + core[1:].translate(_NINES)] += count
        if prefix is not None:
            prefixes[prefix] += count
        if suffix is not None:
            suffixes[suffix] += count
        if scale is not None:
            scales[scale] += count
        if power_of(scale or suffix or "") is not None:
            scaled[core[:1] + core[1:].translate(_NINES)] += count
        if prefix is None and suffix is None:
            bare[core[:1] + core[1:].translate(_NINES)] += count
        if closed and (opened or inside):
            parentheses += count
        if minus:
            minus_behind += count
        if " " in core and text.isascii():
            with_blank[len(core)] += count
    units = Counter({suffix: count for suffix, count in suffixes.items() if not _is_currency(suffix)})
    currencies = prefixes + (suffixes - units)
    units += scales
    return Seen(rows, cores, currencies, units, parentheses, with_blank, minus_behind, bare, scaled)


def _is_currency(text: str) -> bool:
    return text in CURRENCY_CODES or text in LOCAL_SIGNS or any(unicodedata.category(c) == "Sc" for c in text)


def has_codes(seen: Seen) -> bool:
    """Return whether texts have a zero before another digit, as postal codes have."""
    return any(ZERO.match(core) for core in seen.cores)


def format_of(seen: Seen, decimal: DecimalSign) -> NumberFormat | None:
    """Return the format that most of the texts have; None if none of them is a number.

    Args:
        seen: their parts.
        decimal: the file's decimal sign, which decides where several formats fit.
    """
    known = [sign for sign in seen.currencies if _is_currency(sign)]
    fits = {
        signs: sum(count for core, count in seen.cores.items() if _PATTERNS[signs].fullmatch(core))
        for signs in FORMATS[decimal]
    }
    signs = max(FORMATS[decimal], key=lambda pair: fits[pair])
    if not fits[signs]:
        return None
    if signs == (".", "") and _has_points_between_thousands(seen):
        signs = (",", ".")
    currency = max(known, key=lambda sign: seen.currencies[sign]) if known else ""
    magnitudes = has_magnitudes(seen)
    unit = seen.units.most_common(1)[0][0] if seen.units and not magnitudes else ""
    return NumberFormat(
        decimal=signs[0],
        thousands=signs[1],
        currency=currency,
        unit="" if unit == "%" else unit,
        percent=unit == "%",
        magnitudes=magnitudes,
        hundredths=unit == "%" and _are_shares(seen.bare),
        # Only some amounts are negative.
        parentheses=0 < seen.parentheses < seen.rows,
        # Among whole numbers, 2- may be a grade.
        minus_behind=seen.minus_behind > 0 and any("." in core or "," in core for core in seen.cores),
    )


def _are_shares(cores: Iterable[str]) -> bool:
    """Return whether numbers are from 0 to 1, and not only these two."""
    different = {*cores}
    return bool(different - {"0", "1"}) and all(map(_SHARE.fullmatch, different))


def has_magnitudes(seen: Seen) -> bool:
    """Return whether endings such as k and M multiply the numbers before them.

    They do if there are several, beside a currency, and beside numbers without one: 45k and 52000. One ending
    behind all numbers may be a unit, as 64 M and 5G, and so are metres.
    """
    powers = {power_of(unit) for unit in seen.units}
    if not powers or None in powers:
        return False
    if len(powers) > 1 or seen.currencies:
        return True
    return seen.scaled.total() < seen.rows and not UNITS_TOO.issuperset(seen.units)


def _has_points_between_thousands(seen: Seen) -> bool:
    """Return whether a column such as 3.421 and 658 has points between thousands.

    Decimals without their last zeros would have one or two digits too.
    """
    # In 1.234k, the point precedes decimals.
    plain = [core for core, count in seen.cores.items() if count > seen.scaled[core]]
    if not all(core.isdigit() or _ONE_GROUP.fullmatch(core) for core in seen.cores):
        return False
    has_group = any("." in core for core in plain)
    return has_group and any(core.isdigit() and len(core) >= DIGITS_OF_GROUP for core in plain)


def sign_of(text: str) -> DecimalSign | None:
    """Return the sign before the decimals of a text that has only one reading; None for others."""
    match = PARTS.fullmatch(plain_characters(text)) if len(text) <= LONGEST else None
    return None if match is None else _sign_of_core(match["core"])


def _sign_of_core(core: str) -> DecimalSign | None:
    has_point, has_comma = (
        any(pattern.fullmatch(core) for (decimal, _), pattern in _PATTERNS.items() if decimal == sign)
        for sign in (".", ",")
    )
    if has_point == has_comma:
        return None
    return "." if has_point else ","


def is_certain(seen: Seen, form: NumberFormat, decimal: DecimalSign) -> bool:
    """Return whether texts in a format are numbers beyond doubt.

    Groups of digits of one length with blanks may be telephone numbers, and 1,2 may be a list.
    """
    if form.currency or form.unit or form.percent or form.magnitudes:
        return True
    if form.thousands and any(form.decimal in core for core in seen.cores):
        return True
    if form.thousands == " " and len(seen.with_blank) == 1 and seen.with_blank.total() == seen.rows > 1:
        return False
    if form.decimal == "," != decimal and not form.thousands:
        commas = Counter({core: count for core, count in seen.cores.items() if "," in core})
        short = sum(count for core, count in commas.items() if _SHORT_DECIMAL.fullmatch(core))
        return short < commas.total()
    return True


def other_reading(seen: Seen, form: NumberFormat, decimal: DecimalSign) -> NumberFormat | None:
    """Return the format that fits all texts too, but gives other numbers; None if there is none.

    In 1.234 and 1,234 the mark may divide thousands or precede decimals.
    """
    matches = {core: _ONE_GROUP.fullmatch(core) for core in seen.cores}
    marks = {match["mark"] for match in matches.values() if match is not None}
    if len(marks) != 1:
        return None
    mark = marks.pop()
    plain = [core for core, match in matches.items() if match is None]
    if any(not core.isdigit() for core in plain):
        return None
    # In a file with decimal commas, a point divides thousands. Beside whole numbers, a comma does.
    if decimal == "," != mark or (mark == "," and plain and form.thousands == ","):
        return None
    other: DecimalSign = "," if mark == "." else "."
    thousands: ThousandsMark = "." if mark == "." else ","
    signs = {"decimal": other, "thousands": thousands}
    if form.thousands == mark:
        signs = {"decimal": "." if mark == "." else ",", "thousands": ""}
    return form.model_copy(update=signs)


def has_decimal_commas(texts: Iterable[str]) -> bool:
    """Return whether the first texts of a column surely are numbers with decimal commas, such as 97,98 €."""
    present = [text for text in texts if text.strip()]
    seen = look_at((text, 1) for text in present)
    if not seen.rows or seen.rows < NEARLY_ALL * len(present):
        return False
    form = format_of(seen, ".")
    if form is None or form.decimal != "," or not is_certain(seen, form, "."):
        return False
    return any(_DECIMALS.search(core) for core in seen.cores)


def has_both_signs(seen: Seen, rows: int) -> bool:
    """Return whether nearly all texts of a column are numbers, some with a comma and some with a point.

    Args:
        seen: their parts.
        rows: how many rows have a value.
    """
    points = commas = others = 0
    for core, count in seen.cores.items():
        sign = _sign_of_core(core)
        points += count * (sign == ".")
        commas += count * (sign == ",")
        others += count * (sign is None and any(fits.fullmatch(core) for fits in _PATTERNS.values()))
    least = FEWEST_OF_A_SIGN * rows
    return points + commas + others >= NEARLY_ALL * rows and points >= least and commas >= least


class Numbers(NamedTuple):
    """Texts that were read as numbers.

    Attributes:
        values: a number for each text, NaN for missing ones and for misfits.
        misfits: the places of texts that are no numbers and no words for missing ones.
    """

    values: Array
    misfits: list[int]


def read_numbers(texts: Array, form: NumberFormat, is_gap: Callable[[str], bool]) -> Numbers:
    """Read texts in a format.

    Args:
        texts: (texts,).
        form: the format.
        is_gap: whether a text is a word for a missing number.
    """
    numbers = np.full(len(texts), np.nan)
    misfits = []
    read = reader_of(form)
    places = np.arange(len(texts))
    if len(texts) > MANY:
        numbers = read_plain(texts, form)
        places = np.flatnonzero(np.isnan(numbers))
    for place, text in zip(places.tolist(), texts[places].tolist(), strict=True):
        if not text:
            continue
        if (number := read(text)) is not None:
            numbers[place] = number
        elif not is_gap(text):
            misfits.append(place)
    return Numbers(numbers, misfits)
