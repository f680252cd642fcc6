"""Declares how a column's texts are numbers, and reads one text by it.

A profile decides the format by all texts of a column; requests to a served model are read by the same format.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen
from jobs.spec.data.magnitudes import NAMES, ending_pattern, power_of
from jobs.spec.data.plain_characters import plain_characters

DecimalSign = Literal[".", ","]
ThousandsMark = Literal["", ",", ".", " ", "'"]
ZERO = re.compile(r"[+-]?0[0-9]")
"""Begin of a code such as a postal code: a zero before another digit."""

MOST_WHOLE = 2**64
LONGEST = 200
"""Characters. No number is longer, and a long text would take long to compare."""


class NumberFormat(Frozen):
    """How the texts of a column are numbers.

    A currency, a unit, a percent sign and marks of thousands may be absent in single texts.
    """

    decimal: DecimalSign = Field(default=".", description="before the decimals")
    thousands: ThousandsMark = Field(
        default="", description="between groups of three digits; a blank is any space"
    )
    currency: str = Field(
        default="", max_length=8, description="its sign or code, before or behind the number"
    )
    unit: str = Field(default="", max_length=20, description="behind the number")
    percent: bool = Field(default=False, description="a percent sign is behind the number: 12 % is 12")
    parentheses: bool = Field(default=False, description="(5) is -5, as accountants write it")
    minus_behind: bool = Field(
        default=False,
        exclude_if=lambda is_used: not is_used,
        description="5- is -5, as SAP and other programs of accounts write it",
    )

    magnitudes: bool = Field(
        default=False,
        exclude_if=lambda is_used: not is_used,
        description="endings such as k, M and bn multiply: 45k is 45000, and 1.5M is 1500000",
    )

    hundredths: bool = Field(
        default=False,
        exclude_if=lambda is_used: not is_used,
        description="a percent sign divides by 100, since the others are shares: 12 % is 0.12",
    )

    @model_validator(mode="after")
    def _has_two_signs(self) -> Self:
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both {self.decimal!r}; choose two different signs")
        if self.percent and self.unit:
            raise ValueError(f"numbers have the unit {self.unit!r} or a percent sign, not both")
        if self.hundredths and not self.percent:
            raise ValueError("hundredths belongs to percent = true")
        if self.magnitudes and (self.percent or self.unit):
            raise ValueError("numbers with magnitudes such as k have no unit and no percent sign")
        return self

    @property
    def is_plain(self) -> bool:
        """Return whether numbers are written as programs write them."""
        return self == NumberFormat()

    @property
    def example(self) -> str:
        """Return a text in this format."""
        number = f"1{self.thousands}234{self.decimal}5"
        sign = f"{self.currency} " if len(self.currency) > 1 else self.currency
        behind = "%" if self.percent else self.unit
        number += "k" if self.magnitudes else ""
        text = f"{sign}{number}{'-' if self.minus_behind else ''}{f' {behind}' if behind else ''}"
        return f"({text})" if self.parentheses else text


def core_pattern(decimal: str, thousands: str) -> str:
    """Return the regular expression of a number's digits and marks, without sign and exponent."""
    whole = r"[0-9]+"
    if thousands:
        mark = re.escape(thousands)
        whole = rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|{whole}"
    if thousands == ",":
        # India divides lakhs and crores: 12,34,567.
        whole = rf"[1-9][0-9]?(?:,[0-9]{{2}})+,[0-9]{{3}}|{whole}"
    sign = re.escape(decimal)
    return rf"(?:(?:{whole})(?:{sign}[0-9]*)?|{sign}[0-9]+)"


def pattern_of(form: NumberFormat) -> str:
    """Return the regular expression of a whole text with a number, for both `re` and RE2."""
    currency = rf"(?:{re.escape(form.currency)} *)?" if form.currency else ""
    endings = [re.escape(text) for text in (form.currency, form.unit, "%" if form.percent else "") if text]
    behind = rf"(?: *(?:{'|'.join(endings)}))?" if endings else ""
    number = rf"((?:{core_pattern(form.decimal, form.thousands)})(?:[eE][+-]?[0-9]+)?)"
    if form.magnitudes:
        number += rf"(?: *(?:{NAMES})\.?)?"
    forms = [rf"([+-]?) *{currency}([+-]?){number}{behind}"]
    if form.parentheses:
        forms.append(rf"{currency}\( *{currency}{number}{behind} *\){behind}")
    if form.minus_behind:
        forms.append(rf"{currency}{number} *-{behind}")
    return "|".join(forms)


def read_number(text: str, form: NumberFormat) -> float | None:
    """Return the number in a text; None if the text has another form."""
    number: float | None = reader_of(form)(text)
    return number


def read_whole(text: str, form: NumberFormat) -> int | None:
    """Return the whole number in a text exactly, also one that no float is; None if there is none."""
    number: Decimal | None = reader_of(form, Decimal)(text)
    # The integers of files have 64 bits; an exponent could make far longer ones.
    if number is None or abs(number) >= MOST_WHOLE or number != int(number):
        return None
    return int(number)


@lru_cache(maxsize=4096)
def numbers_among(words: tuple[str, ...], form: NumberFormat) -> tuple[float, ...]:
    """Return the numbers among words: those in a format, and others as programs write them, such as -999."""
    found = []
    for word in words:
        number = read_number(word, form)
        number = read_number(word, NumberFormat()) if number is None else number
        if number is not None:
            found.append(number)
    return tuple(found)


def _multiplied(digits: str, power: int) -> str:
    """Return a number times a power of ten, by its exponent: a product of 1.005 would be rounded."""
    digits, _, exponent = digits.lower().partition("e")
    return f"{digits}e{int(exponent or 0) + power}"


@lru_cache(maxsize=4096)
def reader_of(form: NumberFormat, convert: Callable[[str], Any] = float) -> Callable[[str], Any]:
    """Return the function that reads a text in a format; see `read_number`.

    Args:
        form: the format.
        convert: makes the number of digits with a decimal point.
    """
    fullmatch, thousands, decimal = re.compile(pattern_of(form)).fullmatch, form.thousands, form.decimal
    search = ending_pattern(form.currency).search if form.magnitudes else None

    def value_of(digits: str, text: str) -> Any:
        if thousands:
            digits = digits.replace(thousands, "")
        if decimal == ",":
            digits = digits.replace(",", ".")
        if search is not None and (ending := search(text)) is not None:
            return convert(_multiplied(digits, power_of(ending[1], ending[2] or "") or 0))
        if form.hundredths and "%" in text:
            return convert(_multiplied(digits, -2))
        return convert(digits)

    def read(text: str) -> Any:
        if len(text) > LONGEST:
            return None
        text = plain_characters(text)
        if (match := fullmatch(text)) is None:
            return None
        sign, inner, number, *negative = match.groups()
        if number is None:
            return -value_of(next(digits for digits in negative if digits is not None), text)
        if sign and inner:
            return None
        value = value_of(number, text)
        return -value if sign == "-" or inner == "-" else value

    return read
