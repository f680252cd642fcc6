"""Reads text columns as numbers by their whole column, and offers the readings that a person may prefer."""

from functools import partial
from typing import Any

import numpy as np

from jobs.spec.data.columns import ColumnRequest, ColumnType
from jobs.spec.data.gap_words import is_gap, named_words
from jobs.spec.data.magnitudes import power_of
from jobs.spec.data.number_format import DecimalSign, NumberFormat, numbers_among, read_number
from jobs.spec.data.offers import Offer
from jobs.spec.data.plain_characters import plain_characters
from workers.engine.arrays import Array
from workers.engine.data.reading.column_texts import SHOWN_CHARACTERS, ColumnTexts
from workers.engine.data.reading.column_types import TypedColumn, convert
from workers.engine.data.reading.exact_numbers import were_rounded
from workers.engine.data.reading.number_arrays import MANY, count_forms
from workers.engine.data.reading.number_texts import (
    Numbers,
    Seen,
    format_of,
    has_both_signs,
    has_codes,
    is_certain,
    look_at,
    other_reading,
    read_numbers,
    sign_of,
)
from workers.engine.errors import BadData

TRIED = 0.3
"""If so many of the first values may be numbers, the whole column is tried."""
NEARLY = 0.6
"""If so many values are numbers, reading the column as numbers is offered."""
MOST_UNITS = 5
FEW_VALUES = 20
"""A target with so many different numbers with a unit has classes, whose names keep the unit. A feature gets
the offer to keep them.
"""


class NumberTexts:
    """A text column that may be numbers.

    Args:
        name: the column's name.
        texts: its texts.
        request: the rules that a person has stated for it.
        decimal: the file's decimal sign.
        is_target: whether it is the target.
        is_other_offered: whether the reading by the other decimal sign is offered.
    """

    def __init__(
        self,
        name: str,
        texts: ColumnTexts,
        request: ColumnRequest,
        decimal: DecimalSign,
        *,
        is_target: bool = False,
        is_other_offered: bool = False,
    ) -> None:
        self._name, self._texts, self._request, self._decimal = name, texts, request, decimal
        self._is_target = is_target
        self._offered: DecimalSign = "." if is_other_offered else decimal
        # Stated words are empty texts by now. Of those, a form of numbers may be one: 123 has the form 999.
        self._is_gap = partial(is_gap, stated=None if request.gap_words is None else ())

    @property
    def gap_words(self) -> tuple[str, ...] | None:
        """Return the stated words for missing values."""
        return self._request.gap_words

    def proposed(self) -> TypedColumn:
        """Return the numbers if all values are some; else no values, and offers if most of them are."""
        head = self._texts.first(lambda text: not self._is_gap(text))
        seen = look_at((text, 1) for text in head)
        if not head or seen.rows < TRIED * len(head):
            return self._typed(None)
        seen = self._look()
        form = None if has_codes(seen) else format_of(seen, self._decimal)
        if form is None:
            return self._typed(None)
        numbers = self._read(form)
        if numbers.misfits:
            return self._typed(None, findings=self._mixed(seen), offers=self._nearly(numbers, form))
        if were_rounded(self._texts.values, numbers.values):
            return self._typed(None)
        has_classes = self._is_target and (form.unit or form.magnitudes) and self._has_few_values()
        if has_classes or not is_certain(seen, form, self._decimal):
            return self._typed(None, offers=(self._uncertain(form, head[0]),))
        values = self._texts.spread(numbers.values)
        return self._typed(values, form, offers=(*self._gap_words(), *self._other_readings(seen, form)))

    def requested(self, kind: ColumnType) -> TypedColumn:
        """Return the numbers; values that are none are missing.

        Raises:
            BadData: no value is a number, or one is not whole, as an integer is, or has too many digits.
        """
        seen = self._look()
        form = self._request.number_format or format_of(seen, self._decimal)
        form = form or NumberFormat(decimal=self._decimal)
        numbers = self._read(form)
        misfits = self._texts.misfits(numbers.misfits)
        if kind == "integer" and were_rounded(self._texts.values, numbers.values):
            raise BadData(
                f"column {self._name!r} has whole numbers with more digits than a 64-bit float holds, so "
                "different ones would become the same; choose the type category"
            )
        values = convert(self._texts.spread(numbers.values), kind, self._name).values
        if misfits is None:
            return self._typed(values, form, kind, offers=self._other_readings(seen, form))
        present = self._present()
        if misfits.count == present:
            written = "" if self._request.number_format is None else f" in the format {form.example!r}"
            raise BadData(
                f"column {self._name!r} is not of type {kind}: no value is a number{written}, "
                f"row {misfits.rows[0]} has {misfits.examples[0]}"
            )
        is_one = misfits.count == 1
        finding = (
            f"Column {self._name!r}: {misfits.count:,} of {present:,} values {'is' if is_one else 'are'} no "
            f"number{'' if is_one else 's'} and {'counts' if is_one else 'count'} as missing; row "
            f"{misfits.rows[0]} has {misfits.examples[0]!r}."
        )
        if misfits.effect and not self._is_target:
            finding += f" {misfits.effect}"
        offers = self._other_readings(seen, form)
        return self._typed(values, form, kind, misfits=misfits, findings=(finding,), offers=offers)

    def _typed(
        self,
        values: Array | None,
        form: NumberFormat | None = None,
        kind: ColumnType = "number",
        **notes: Any,
    ) -> TypedColumn:
        return TypedColumn(values, kind, form, self._request.gap_words, **notes)

    def _read(self, form: NumberFormat) -> Numbers:
        """Return the numbers of the texts; those that are stated as missing are so in each writing."""
        numbers = read_numbers(self._texts.values, form, self._is_gap)
        if not (gaps := numbers_among(self._request.gap_words or (), form)):
            return numbers
        return numbers._replace(values=np.where(np.isin(numbers.values, gaps), np.nan, numbers.values))

    def _look(self) -> Seen:
        values, codes = self._texts
        counted = self._texts.counted()
        if len(values) > MANY:
            every = np.ones(len(values), int)
            counted = count_forms(
                values, every if codes is None else np.bincount(codes, minlength=len(values))
            )
        return look_at((text, count) for text, count in counted if not self._is_gap(text))

    def _present(self) -> int:
        return sum(count for text, count in self._texts.counted() if not self._is_gap(text))

    def _has_few_values(self) -> bool:
        different: set[str] = set()
        for text, _ in self._texts.counted():
            different.add(text)
            if len(different) > FEW_VALUES:
                return False
        return True

    def _nearly(self, numbers: Numbers, form: NumberFormat) -> tuple[Offer, ...]:
        """Return the offer to read a column as numbers in which nearly all values are some."""
        misfits, present = self._texts.misfits(numbers.misfits), self._present()
        if misfits is None or present - misfits.count < NEARLY * present:
            return ()
        others = misfits.count - 1
        more = f", and {others:,} more {'rows have' if others > 1 else 'row has'} no number" if others else ""
        if self._is_target:
            effect = f"leave out the {f'{misfits.count:,} other rows' if others else 'other row'}"
        else:
            effect = f"the {misfits.count:,} other values count" if others else "the other value counts"
            effect += " as missing"
            effect += "; requests with such values are refused" if misfits.refused else ""
        kind = _described(form)
        return (
            Offer(
                finding=f"Column {self._name!r}: {present - misfits.count:,} of {present:,} values are "
                f"numbers{kind}; row {misfits.rows[0]} has {misfits.examples[0]!r}{more}.",
                label=f"Read as numbers; {effect}",
                change=ColumnRequest(name=self._name, type="number"),
            ),
        )

    def _mixed(self, seen: Seen) -> tuple[str, ...]:
        """Return a finding if the values have several units or currencies, which are not merged."""
        for kind, counts in (("units", seen.units), ("currencies", seen.currencies)):
            is_unit = 2 <= len(counts) <= MOST_UNITS and counts.total() >= NEARLY * self._present()
            # 1A and 2B are the names of seats.
            if is_unit and not all(len(unit) == 1 and unit.isalpha() for unit in counts):
                named = " and ".join(f"{unit!r} in {rows:,}" for unit, rows in counts.most_common())
                return (
                    f"Column {self._name!r} has numbers with several {kind}: {named} rows. They are not "
                    f"merged; write them in one of the {kind}.",
                )
        if has_both_signs(seen, self._present()):
            comma = self._texts.first(lambda text: sign_of(text) == ",")[0]
            point = self._texts.first(lambda text: sign_of(text) == ".")[0]
            return (
                f"Column {self._name!r} has numbers with decimal commas and with decimal points, such as "
                f"{comma!r} and {point!r}, so they are read as words: write them with one of the signs.",
            )
        return ()

    def _uncertain(self, form: NumberFormat, text: str) -> Offer:
        number = read_number(text, form)
        shown = text[:SHOWN_CHARACTERS]
        return Offer(
            finding=f"Column {self._name!r}: values such as {shown!r} may be numbers; they are read as "
            "words.",
            label=f"Read as numbers: {shown!r} is {number:g}",
            change=ColumnRequest(name=self._name, type="number"),
        )

    def _gap_words(self) -> tuple[Offer, ...]:
        """Return the offer to keep words that people write for a missing number, such as unknown."""
        if self._request.gap_words is not None:
            return ()
        counts = self._texts.gap_words()
        words = [word for word in counts if not is_gap(word, "booleans")]
        if not words:
            return ()
        return (
            self._offer_words(
                f"{named_words(words, counts)} of {self._texts.rows:,} rows counts as a missing number."
            ),
        )

    def _other_readings(self, seen: Seen, form: NumberFormat) -> tuple[Offer, ...]:
        """Return offers for the other readings of texts that are numbers."""
        if self._request.number_format is not None:
            return ()
        other = other_reading(seen, form, self._offered)
        marks = () if other is None else self._with_other_marks(form, other)
        return (*self._other_endings(seen, form, has_marks=bool(marks)), *marks)

    def _other_endings(self, seen: Seen, form: NumberFormat, *, has_marks: bool) -> tuple[Offer, ...]:
        """Return offers for the other readings of the text behind or before the digits."""
        if form.magnitudes:
            return self._without_magnitudes(seen, form)
        if form.hundredths:
            return self._without_hundredths(seen, form)
        if form.minus_behind and self._request.type is None:
            example = self._texts.first(lambda text: "-" in plain_characters(text)[1:])[0]
            finding = f"numbers with a minus behind them, such as {example!r}, are negative."
            return (self._offer_words(finding),)
        if (form.unit or form.percent or form.currency) and seen.bare:
            mark = form.unit or form.currency or "%"
            bare = seen.bare.total()
            marked = seen.units["%"] if form.percent else seen.units[mark] or seen.currencies[mark]
            others = "the others" if marked + bare == seen.rows else f"{bare:,}"
            return (
                self._offer_words(
                    f"{marked:,} of {seen.rows:,} numbers are written with {mark!r}, and {others} without; "
                    "all of these are read as the same unit."
                ),
                *self._with_magnitudes(form),
            )
        # 3G, 4G and 5G are names. A person who chose the type knows.
        is_name = len(form.unit) == 1 or self._has_few_values()
        if form.unit and is_name and self._request.type is None and not has_marks:
            example = self._texts.first(lambda text: not self._is_gap(text))[0]
            return (
                self._offer_words(
                    f"numbers such as {example!r} are read without {form.unit!r}, as a unit; it may belong "
                    "to a name."
                ),
                *self._with_magnitudes(form),
            )
        return self._with_magnitudes(form)

    def _without_magnitudes(self, seen: Seen, form: NumberFormat) -> tuple[Offer, ...]:
        """Return the offers to read endings that multiply as a unit or as words."""
        endings = [unit for unit, _ in seen.units.most_common()]
        text = self._with_ending(*endings)
        marked = seen.scaled.total()
        number = read_number(text, form)
        finding = (
            f"{marked:,} of {seen.rows:,} numbers are written with {named_endings(endings)}, which "
            f"multiplies them: {text!r} is read as {number:.15g}."
        )
        words = self._offer_words(finding)
        if len(endings) > 1:
            return (words,)
        other = form.model_copy(update={"magnitudes": False, "unit": endings[0]})
        return (*self._offer_format(finding, text, other), words)

    def _without_hundredths(self, seen: Seen, form: NumberFormat) -> tuple[Offer, ...]:
        """Return the offers to read percents beside shares such as 0.42 as the numbers before the sign."""
        text = self._with_ending("%")
        finding = (
            f"{seen.units['%']:,} of {seen.rows:,} numbers are written with '%', and the others are from 0 "
            f"to 1, so {text!r} is read as {read_number(text, form):.15g}."
        )
        other = form.model_copy(update={"hundredths": False})
        return (*self._offer_format(finding, text, other), self._offer_words(finding))

    def _with_magnitudes(self, form: NumberFormat) -> tuple[Offer, ...]:
        """Return the offer to read a unit such as k, behind all numbers, as one that multiplies them."""
        if power_of(form.unit) is None:
            return ()
        text, other = self._with_ending(form.unit), form.model_copy(update={"magnitudes": True, "unit": ""})
        number = read_number(text, form)
        finding = (
            f"{form.unit!r} is read as a unit, so {text!r} is {number:.15g}; it may multiply the numbers."
        )
        return self._offer_format(finding, text, other)

    def _with_ending(self, *endings: str) -> str:
        """Return the first text with an ending, and perhaps a currency behind it."""
        found = self._texts.first(lambda text: bool(look_at([(text, 1)]).units.keys() & {*endings}))
        return found[0].strip()

    def _offer_format(self, finding: str, text: str, other: NumberFormat) -> tuple[Offer, ...]:
        """Return the offer of another format; none if a text such as 12 k€ is no number in it."""
        if (number := read_number(text, other)) is None:
            return ()
        return (
            Offer(
                finding=f"Column {self._name!r}: {finding}",
                label=f"Read {text!r} as {number:.15g}",
                change=ColumnRequest(name=self._name, number_format=other),
            ),
        )

    def _offer_words(self, finding: str) -> Offer:
        return Offer(
            finding=f"Column {self._name!r}: {finding}",
            label="Read as words",
            change=ColumnRequest(name=self._name, type="category"),
        )

    def _with_other_marks(self, form: NumberFormat, other: NumberFormat) -> tuple[Offer, ...]:
        """Return the offer to read a mark in the other way, with a text that is a number in both."""

        def has_two_readings(text: str) -> bool:
            number, then = read_number(text, form), read_number(text, other)
            return None not in (number, then) and number != then

        texts = self._texts.first(has_two_readings)
        return (offer_other_reading(self._name, texts[0], form, other),) if texts else ()


def offer_other_reading(name: str, text: str, form: NumberFormat, other: NumberFormat) -> Offer:
    """Return the offer to read a mark that may divide thousands or precede decimals in the other way."""
    now, then = read_number(text, form), read_number(text, other)
    mark = "point" if "." in text else "comma"
    return Offer(
        finding=f"Column {name!r}: all values with a {mark} have three digits behind it, so it may divide "
        f"thousands or precede decimals; {text!r} is read as {now!r}.",
        label=f"Read {text!r} as {then!r}",
        change=ColumnRequest(name=name, number_format=other),
    )


def named_endings(endings: list[str]) -> str:
    """Return endings of numbers for a sentence."""
    *others, last = map(repr, endings[:MOST_UNITS])
    return f"{', '.join(others)} or {last}" if others else last


def _described(form: NumberFormat) -> str:
    """Return how numbers are written, for a sentence; empty if they are plain."""
    if form.magnitudes:
        return ", some with an ending that multiplies them"
    mark = form.unit or form.currency or ("%" if form.percent else "")
    return f" with {mark!r}" if mark else ""
