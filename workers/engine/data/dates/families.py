"""Lists the formats in which programs and people write dates, and chooses the order of day and month.

Formats whose texts look alike are a family: `01/02/2021` has two orders. All values of a column choose one.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jobs.spec.data.dates.formats import EVERY_YEAR, pattern_of
from workers.engine.arrays import Array
from workers.features.date_texts import DIGIT_YEARS


@dataclass(frozen=True)
class Family:
    """Formats whose texts look alike.

    Attributes:
        orders: the formats, the most usual first.
        is_settled: whether the first one is meant wherever it fits, as by a standard.
        years: the first and the last plausible year; other texts of this form are likely no dates.
        accepts: whether texts of this form are dates; None if all are.
    """

    orders: tuple[str, ...]
    is_settled: bool = True
    years: tuple[int, int] = EVERY_YEAR
    accepts: Callable[[Sequence[str]], bool] | None = None


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
    is_padded = all(re.match(r"\d\d\.\d\d\.\d\d", text) for text in texts)
    return is_padded or any(int(text.split(".")[0]) > LAST_MONTH for text in texts)


def _have_years(texts: Sequence[str]) -> bool:
    """Return whether the numbers behind months are years: Dec-24 may be a day, but Dec-60 is none."""
    return any(not 1 <= int(text[-2:]) <= 31 for text in texts)


def _numeric() -> list[Family]:
    families = []
    for mark in "/-. ":
        d_m, m_d = f"%d{mark}%m", f"%m{mark}%d"
        years_first = (f"%Y{mark}{m_d}", f"%Y{mark}{d_m}")
        families += [
            # In a request, a day before a month could be ISO 8601 too.
            Family(years_first[:1] if mark == "-" else years_first),
            Family((f"{d_m}{mark}%Y", f"{m_d}{mark}%Y"), is_settled=mark == "."),
        ]
        if mark in "/-":
            orders = (f"{d_m}{mark}%y", f"{m_d}{mark}%y", f"%y{mark}{m_d}")
            families.append(Family(orders, is_settled=False))
    return [*families, Family(("%d.%m.%y",), accepts=_are_days)]


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
    *(Family((form,), accepts=_have_years) for form in ("%b-%y", "%b %y", "%b/%y")),
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


class Order:
    """A format of a family, with the moments that it gives to the column's texts.

    Attributes:
        form: the format.
        moments: (texts,), NaT for those that it does not fit.
        rows: how many rows it fits.
    """

    def __init__(self, form: str, moments: Array, counts: Array) -> None:
        self.form, self.moments = form, moments
        self.rows = int(counts[~np.isnat(moments)].sum())


Evidence = Literal["steps", "order"]


@dataclass(frozen=True)
class Choice:
    """The chosen order, and which others remain possible.

    Attributes:
        order: the chosen one.
        others: formats that fit as many rows, and give other dates.
        evidence: what has chosen, if no date is impossible: the steps between the dates, or their order.
        rival: a format that fits rows which the chosen one does not, and how many.
    """

    order: Order
    others: tuple[str, ...] = ()
    evidence: Evidence | None = None
    rival: tuple[str, int] | None = None


EVEN_SHARE, EVEN_LEAD = 0.6, 0.2
"""So many of the steps are equal, and so much more than in the other order, if steps choose an order."""
SETTLED_SHARE = 0.8
"""A standard order is chosen unless another one fits many more rows; a typing error fits another one too."""
MIN_STEPS = 2
MIN_FIRST_DAYS = 4
"""So many dates are the first of a month by chance seldom."""
MIN_EVEN = 10
"""Fewer numbers may look like dates in even steps by chance."""
MIN_RISING = 6
"""Fewer dates may rise by chance."""
MIN_CERTAIN = 12
"""More dates than this in the order of the rows leave no doubt."""
UNUSUAL = "%y/%m/%d"
"""An order that is chosen if it must be, and otherwise not worth a question."""


def choose_order(orders: Sequence[Order], counts: Array, *, is_settled: bool) -> Choice:
    """Return the order in which a column's dates are written.

    Impossible dates decide first; then whether the dates rise from row to row in one order alone; then even
    steps between them.

    Args:
        orders: at least one, the most usual first.
        counts: how many rows have each text.
        is_settled: whether the first order is meant if no date is impossible.
    """
    most = max(order.rows for order in orders)
    fitting = [order for order in orders if order.rows == most]
    if is_settled and orders[0].rows >= SETTLED_SHARE * most:
        return Choice(orders[0], rival=_rival(orders[0], orders, counts))
    if len(fitting) == 1:
        return Choice(fitting[0], rival=_rival(fitting[0], orders, counts))
    if all(_are_equal(order, fitting[0]) for order in fitting):
        return Choice(fitting[0])
    best, evidence = _by_evidence(fitting)
    if evidence == "order" and len(counts) > MIN_CERTAIN:
        return Choice(best, evidence=evidence)
    others = tuple(order.form for order in fitting if not _are_equal(order, best) and order.form != UNUSUAL)
    return Choice(best, others, evidence)


def _by_evidence(fitting: Sequence[Order]) -> tuple[Order, Evidence | None]:
    """Return the order that fits best, and by what; the first one if nothing decides."""
    rising = [order for order in fitting if _rises(order.moments)]
    if len(rising) == 1:
        return rising[0], "order"
    steps = [(order, *_evenness(order.moments)) for order in fitting]
    # A year of months looks like days in January too, but days seldom stop before the 13th.
    monthly = [order for order, share, is_monthly in steps if is_monthly and share >= EVEN_SHARE]
    if monthly:
        return monthly[0], "steps"
    (best, share, _), (_, second_share, _) = sorted(steps, key=lambda step: -step[1])[:2]
    if share >= EVEN_SHARE and share - second_share >= EVEN_LEAD:
        return best, "steps"
    return fitting[0], None


def _are_equal(one: Order, other: Order) -> bool:
    return np.array_equal(one.moments, other.moments, equal_nan=True)


def _rival(chosen: Order, orders: Sequence[Order], counts: Array) -> tuple[str, int] | None:
    misfits = np.isnat(chosen.moments)
    rows = [(int(counts[misfits & ~np.isnat(order.moments)].sum()), order.form) for order in orders]
    most, form = max(rows)
    return (form, most) if most else None


def _evenness(moments: Array) -> tuple[float, bool]:
    """Return which share of the steps between dates is the usual one, and whether these are months.

    If all are the first day of a month, all steps count as equal.
    """
    days = np.unique(moments[~np.isnat(moments)].astype("datetime64[D]"))
    if len(days) <= MIN_STEPS:
        return 0.0, False
    months = days.astype("datetime64[M]")
    places = (days - months.astype("datetime64[D]")).astype(np.int64)
    if len(days) >= MIN_FIRST_DAYS and (places == 0).all():
        return 1.0, True
    is_monthly = bool((places == places[0]).all())
    steps = np.diff(months if is_monthly else days).astype(np.int64)
    counts = np.unique(steps, return_counts=True)[1]
    return float(counts.max() / len(steps)), is_monthly


def is_even(moments: Array) -> bool:
    """Return whether dates follow each other in even steps, over the end of a month at least."""
    days = np.unique(moments.astype("datetime64[D]"))
    if len(days) < MIN_EVEN or days[0].astype("datetime64[M]") == days[-1].astype("datetime64[M]"):
        return False
    return _evenness(days)[0] >= EVEN_SHARE


def _rises(moments: Array) -> bool:
    """Return whether the dates rise or fall from text to text, which are in the order of their first rows."""
    dates = moments[~np.isnat(moments)].astype(np.int64)
    steps = np.diff(dates)
    return len(dates) >= MIN_RISING and bool((steps >= 0).all() or (steps <= 0).all())
