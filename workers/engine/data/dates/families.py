"""Lists the formats in which programs and people write dates.

Formats whose texts look alike are a family: `01/02/2021` has two orders. All values of a column choose one;
see `orders`.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jobs.spec.data.dates.formats import EVERY_YEAR, pattern_of
from workers.features.date_texts import DIGIT_YEARS


@dataclass(frozen=True)
class Family:
    """Formats whose texts look alike.

    Attributes:
        orders: the formats, the most usual first.
        is_settled: whether the first one is meant wherever it fits, as by a standard.
        years: the first and the last plausible year; other texts of this form are likely no dates.
        accepts: whether texts of this form are dates; None if all are.
        doubt: another meaning of texts that are not accepted; empty if these are certainly no dates.
    """

    orders: tuple[str, ...]
    is_settled: bool = True
    years: tuple[int, int] = EVERY_YEAR
    accepts: Callable[[Sequence[str]], bool] | None = None
    doubt: str = ""


CALENDAR_YEARS = (1700, 2199)
"""Plausible years of months."""
LAST_MONTH = 12


def _are_no_seasons(texts: Sequence[str]) -> bool:
    """Return whether texts such as 2001-02 are months, and not all winters from a year to the next."""
    years = [(int(text[:4]), int(text[5:])) for text in texts]
    return len(years) < 2 or not all((first + 1) % 100 == second for first, second in years)


def _are_days(texts: Sequence[str]) -> bool:
    """Return whether all texts have two digits for each part, or one has a day that no version has.

    1.2.10 alone is rather a version or a chapter.
    """
    is_padded = all(re.search(r"\b\d\d\.\d\d\.\d\d\b", text) for text in texts)
    return is_padded or any(int(text.split(".")[0]) > LAST_MONTH for text in texts)


def _are_padded(texts: Sequence[str]) -> bool:
    """Return whether all texts have two digits for each part; 1 2 10 alone is rather a list of numbers."""
    return all(re.search(r"\b\d\d \d\d \d\d\b", text) for text in texts)


def _have_years(texts: Sequence[str]) -> bool:
    """Return whether the numbers behind months are years: Dec-24 may be a day, but Dec-60 is none."""
    return any(not 1 <= int(text[-2:]) <= 31 for text in texts)


def _numeric() -> list[Family]:
    families = []
    for mark in "/-. ":
        d_m, m_d = f"%d{mark}%m", f"%m{mark}%d"
        short = (f"{d_m}{mark}%y", f"{m_d}{mark}%y", f"%y{mark}{m_d}")
        accepts = {".": _are_days, " ": _are_padded}.get(mark)
        families += [
            Family((f"%Y{mark}{m_d}", f"%Y{mark}{d_m}")),
            Family((f"{d_m}{mark}%Y", f"{m_d}{mark}%Y"), is_settled=mark == "."),
            Family(short, is_settled=False, accepts=accepts),
        ]
    return families


_NAMED = (
    *("%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d.%b.%Y", "%d. %b %Y", "%d%b%Y", "%d %b, %Y", "%d de %b de %Y"),
    *("%d-%b-%y", "%d %b %y", "%d/%b/%y", "%d. %b %y", "%d%b%y"),
    *("%b %d, %Y", "%b %d %Y", "%b %d,%Y", "%b-%d-%Y", "%b/%d/%Y", "%b %d, %y", "%b %d %y"),
    *("%Y-%b-%d", "%Y %b %d", "%Y/%b/%d"),
)
_PERIODS = (
    *("%b %Y", "%b-%Y", "%b/%Y", "%b, %Y", "%b. %Y", "%b de %Y", "%Y-%b", "%Y %b", "%YM%m", "%Y-M%m"),
    *("%YQ%q", "%Y-Q%q", "%Y Q%q", "%Y/Q%q", "%Y.Q%q", "Q%q %Y", "Q%q-%Y", "Q%q/%Y", "Q%q%Y", "%qQ%Y"),
    *("%G-W%V", "%GW%V", "%G W%V", "%G-W%V-%u"),
)
_OTHERS = (
    *("%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %z %Y"),
    *("%Y年%m月%d日", "%Y年%m月", "%Y년 %m월 %d일"),
)
_CLOCK = "%H:%M "
_DIGITS = ("%Y%m%d", "%Y%m%d%H%M%S", "%Y%m%d_%H%M%S", "%Y%m%d-%H%M%S")

_PLAIN = (*_numeric(), *(Family((form,)) for form in _NAMED))
FAMILIES: tuple[Family, ...] = (
    *_PLAIN,
    *(
        Family(tuple(prefix + form for form in family.orders), family.is_settled)
        for family in _PLAIN
        for prefix in ("%a, ", "%a ")
    ),
    *(Family(tuple(_CLOCK + form for form in family.orders), family.is_settled) for family in _PLAIN),
    *(Family((form,)) for form in (*_PERIODS, *_OTHERS)),
    *(Family((form,), years=CALENDAR_YEARS, accepts=_are_no_seasons) for form in ("%Y-%m", "%Y/%m")),
    *(Family((form,), years=CALENDAR_YEARS) for form in ("%m/%Y", "%m-%Y")),
    *(
        Family((form,), accepts=_have_years, doubt="days of a month without a year")
        for form in ("%b-%y", "%b %y", "%b/%y")
    ),
    *(Family((form,), years=DIGIT_YEARS) for form in _DIGITS),
)
LENGTHS = range(6, 80)


def families_of(text: str) -> tuple[Family, ...]:
    """Return the families that a text may belong to."""
    if len(text) not in LENGTHS or sum(map(str.isdigit, text)) < 2:
        return ()
    # To all patterns digits are alike, so many texts are looked up at once.
    return _families_of_form(re.sub(r"[0-9]", "0", text))


@functools.lru_cache(maxsize=10_000)
def _families_of_form(text: str) -> tuple[Family, ...]:
    return tuple(
        family for family in FAMILIES if any(re.match(pattern_of(form).regex, text) for form in family.orders)
    )
